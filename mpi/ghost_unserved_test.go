package mpi_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// A ghost is lost before a window is made, while it is, or behind that, and the other one of the host has heard
// of some of it only: the window is made and can be used, and freed, and so can the next one.
func TestWin_madeWhileGhostIsLost(t *testing.T) {
	for _, c := range []struct {
		transport mpi.Transport
		layout    string
	}{{mpi.RD, "overlapping"}, {mpi.RC, "table"}, {mpi.RC, "overlapping"}, {mpi.UD, "table"}} {
		for ghost := range 2 {
			making := mono.Time(0) // when the last one is made, without a loss
			for at := mono.Time(0); at <= making; at += max(making/40, 1) {
				m := mortalsOf(newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, 1, 2))
				m.mpi.Transport, m.tells = c.transport, true
				m.mpi.Ghosts.Failure, m.mpi.Ghosts.Binding = mpi.GhostFallback, mpi.GhostByTurn
				first := making == 0
				m.play(t, func(task *sim.Task, p *mpi.Proc) error {
					began := task.Now()
					if !first {
						m.killed[2+ghost] = began.Add(mono.Duration(at))
					}
					for round := range 2 {
						w, _, err := mpi.WinAllocate[int64](p.World(), 1, info("window_layout", c.layout))
						if err != nil {
							return err
						}
						if first {
							making = max(making, mono.Time(task.Now().Sub(began)))
						}
						err = w.Fence(0)
						if class := mpi.ClassOf(err); err != nil && class != mpi.ErrGhostFailed {
							return err
						}
						if err = w.Free(); err != nil {
							return fmt.Errorf("%v, layout %s, ghost %d lost at %v, window %d: %w", c.transport, c.layout, ghost, mono.Duration(at), round, err)
						}
					}
					return nil
				})
			}
		}
	}
}
