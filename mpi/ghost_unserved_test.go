package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// A ghost is lost before a window is made, while it is, or behind that, and the other one of the host has heard
// of some of it only: the window is made and can be used, and freed, and so can the next one.
func TestWin_madeWhileGhostIsLost(t *testing.T) {
	oneGoroutine(t)
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

// A ghost stands still for so long that the ranks go on without it, and has old operations in its queues when it
// goes on: it does none of them.
func TestWin_ghostStandsStill(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD} { // over the others it takes the launcher to find it lost
		for _, n := range []int{1, 2000} { // a message, and RDMA Writes over RD
			m := mortalsOf(newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, 1, 1))
			m.mpi.Transport, m.mpi.Ghosts.Failure, m.stops = transport, mpi.GhostFallback, map[int]stop{}
			m.play(t, func(task *sim.Task, p *mpi.Proc) error {
				me := p.World().Rank()
				w, memory, err := mpi.WinAllocate[int64](p.World(), n, nil)
				if err = errors.Join(err, w.Fence(0), mpi.Put(w, slices.Repeat([]int64{1}, n), 1-me, 0), w.Fence(0), p.World().Barrier()); err != nil {
					return err
				}
				resumes := task.Now().Add(2 * mono.Second)
				m.stops[2] = stop{task.Now(), resumes}
				task.Sleep(mono.Millisecond)
				err = errors.Join(mpi.Put(w, slices.Repeat([]int64{2}, n), 1-me, 0), mpi.Accumulate(w, []int64{100}, 1-me, 0, mpi.OpSum))
				if err = errors.Join(err, wantClass(w.Fence(0), mpi.ErrGhostFailed)); err != nil {
					return err
				}
				if err = errors.Join(mpi.Put(w, slices.Repeat([]int64{3}, n), 1-me, 0), w.Fence(mpi.ModeNoSucceed)); err != nil {
					return err
				}
				if late := task.Now(); late >= resumes {
					return fmt.Errorf("the ghost goes on at %v, and the ranks are done at %v", resumes, late)
				}
				for task.Now() < resumes.Add(mono.Second) {
					task.Sleep(10 * mono.Millisecond)
					if !slices.Equal(memory, slices.Repeat([]int64{3}, n)) {
						return fmt.Errorf("%v, %d words: at %v there is %d", transport, n, task.Now(), memory[0])
					}
				}
				return errors.Join(p.World().Barrier(), w.Free())
			})
		}
	}
}
