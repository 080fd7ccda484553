package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// ServeAsGhost lets a process that is not among the ranks of its job be a ghost until the job is
// over, and ends it.
func ServeAsGhost(p *Proc) error { return errors.Join(p.serve(), p.close()) }

// PutsBy returns how many Puts and Gets of a rank each ghost of a job has done, by its number.
func PutsBy(w *Win) map[int]uint64 {
	done := map[int]uint64{}
	for _, s := range w.w.Account().Counts().Served {
		if n := s.Puts + s.Gets; n > 0 {
			done[s.By-rma.ByGhost] = n
		}
	}
	return done
}
