package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// A message from memory of one ghost into that of another is there while both ranks compute, whichever of the two has
// called MPI first: the sender's ghost has both halves.
func TestMeet_whileBothCompute(t *testing.T) {
	oneGoroutine(t)
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC, mpi.Hybrid} {
		for _, way := range []struct {
			ghosts     int
			rendezvous mpi.Rendezvous
			allocates  bool
			senderLate mono.Duration // behind the receive, or, if negative, before it
			sync, want bool
		}{
			{1, mpi.RendezvousWrite, false, 10 * mono.Millisecond, false, true}, {1, mpi.RendezvousWrite, true, -10 * mono.Millisecond, true, true},
			{2, mpi.RendezvousWrite, true, 10 * mono.Millisecond, true, true}, {1, mpi.RendezvousRead, true, -10 * mono.Millisecond, false, true},
			{0, mpi.RendezvousWrite, true, 10 * mono.Millisecond, false, false},
		} {
			what := fmt.Sprintf("%v, %+v", transport, way)
			w := newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, 2, way.ghosts)
			w.mpi.Transport, w.mpi.Rendezvous = transport, way.rendezvous
			const size = 1 << 20
			w.launch(func(task *sim.Task, p *mpi.Proc) error {
				c := p.World()
				memory, free, err := memoryOf(p, way.allocates, 2*size)
				for i := range 2 {
					if err = errors.Join(err, c.Barrier()); err != nil {
						return err
					}
					var r mpi.Request
					if c.Rank() == 0 {
						pattern(memory, 3)
						task.Sleep(max(way.senderLate, 0))
						start := mpi.Isend[byte]
						if way.sync {
							start = mpi.Issend[byte]
						}
						r, err = start(c, memory[3:][:size], 1, 5)
					} else {
						clear(memory)
						task.Sleep(max(-way.senderLate, 0))
						r, err = mpi.Irecv(c, memory[7:][:size], 0, 5)
					}
					if err != nil {
						return err
					}
					task.Sleep(300 * mono.Millisecond)
					came := c.Rank() == 0 || checkSlice(memory, size) == nil
					called := task.Now()
					_, err = r.Wait()
					took := task.Now().Sub(called)
					clear(memory[:size/2*(1-c.Rank())])
					if c.Rank() == 1 {
						err = errors.Join(err, checkSlice(memory, size))
					}
					if way.want && (i > 0 || transport != mpi.RC) && (!came || took > mono.Millisecond) { // over rc they connect before
						err = errors.Join(err, fmt.Errorf("round %d: it was there: %v, and the end took %v", i, came, took))
					} else if !way.want && c.Rank() == 1 && came {
						err = errors.Join(err, errors.New("by whom?"))
					}
				}
				return errors.Join(err, free())
			})
			if err := w.Run(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// checkSlice checks what was sent from byte 3 on of a pattern, and received from byte 7 on of zeros.
func checkSlice(memory []byte, size int) error {
	whole := make([]byte, 2*size)
	pattern(whole, 3)
	copy(whole[7:], whole[3:][:size])
	clear(whole[:7])
	clear(whole[7+size:])
	for i := range memory {
		if memory[i] != whole[i] {
			return fmt.Errorf("%w: byte %d", errData, i)
		}
	}
	return nil
}
