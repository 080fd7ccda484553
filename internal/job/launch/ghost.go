package launch

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/config"
)

// loseGhost is the end of a ghost before the ranks. Windows cannot go on without what it has of
// them, unless the ranks serve themselves from then on (--ghost-failure fallback).
func (j *job) loseGhost(e *RankError, number int) {
	if j.finishing { // its agent is slow to say so: the ranks have ended, perhaps because of it
		if j.failure == nil && j.borne != error(e) {
			j.say("%v: the ranks have ended without it", e)
		}
		return
	}
	if settings(j.config.lookup).GhostFailure != config.GhostFailures[1].Name || !j.rankTable.begun {
		j.fail(e)
		return
	}
	if j.ending {
		return
	}
	j.say("%v: its ranks serve their windows themselves from the next fence on", e)
	j.broadcast(order{Op: opEnded, Ranks: []int{number}})
	j.checkDeserter()
}

// say tells a user what is wrong with a job that goes on.
func (j *job) say(format string, args ...any) {
	if w := j.printer.errors(); w != nil {
		_, _ = fmt.Fprintf(w, "xrun: "+format+"\n", args...) // a closed terminal is no reason to end the job
	}
}

// title names a rank or a ghost, as people count them.
func (j *job) title(rank int) string {
	if j.rankTable.ghost(rank) {
		return fmt.Sprint("ghost ", rank-j.plan.users())
	}
	return fmt.Sprint("rank ", rank)
}
