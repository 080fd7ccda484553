package launch

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/config"
)

// loseGhost is the end of a ghost before the ranks. Windows cannot go on without what it has of
// them, unless the ranks serve themselves from then on (--ghost-failure fallback).
func (j *job) loseGhost(e *RankError, number int) {
	if settings(j.config.lookup).GhostFailure != config.GhostFailures[1].Name || !j.rankTable.begun {
		j.fail(e)
		return
	}
	if j.ending {
		return
	}
	if w := j.printer.errors(); w != nil {
		_, _ = fmt.Fprintf(w, "xrun: %v: its ranks serve their windows themselves from the next fence on\n", e) // a closed terminal is no reason to end the job
	}
	j.broadcast(order{Op: opEnded, Ranks: []int{number}})
	j.checkDeserter()
}
