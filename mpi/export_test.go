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

// Windows returns how many windows one is made of.
func Windows(w *Win) int { return 1 + len(w.layers) }

// Atomics returns how many atomics of verbs a rank has asked for.
func Atomics(p *Proc) uint64 { return p.ep.Stats.Atomics }

// HasGhost reports whether there is a ghost for this rank's memory of a window.
func HasGhost(w *Win) bool { return rma.RoutesOf(w.w).Own() }

// ServedByGhosts returns, for each rank of a window, whether this one asks a ghost for what it does
// with its memory.
func ServedByGhosts(w *Win) (all []bool) {
	for rank := range w.Size() {
		all = append(all, w.w.Account().Server(int32(rank), nil) >= rma.ByGhost)
	}
	return all
}

// LockMemory returns how many bytes a window has for locks among ranks of this host.
func LockMemory(w *Win) int {
	if w.common == nil {
		return 0
	}
	return len(w.common.Control)
}
