package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// A message into a window, or memory of Alloc, whose receiver computes, is there before the receiver calls MPI again,
// and its sender goes on, if there are ghosts: whichever of the two has come first.
func TestInvite_whileReceiverComputes(t *testing.T) {
	oneGoroutine(t)
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC, mpi.Hybrid} {
		for _, way := range []struct {
			ghosts     int
			rendezvous mpi.Rendezvous
			allocates  bool
			senderLate mono.Duration // behind the receive, or, if negative, before it
			seen       bool          // the receiver has seen the RTS when it posts the receive
			want       bool
		}{
			{1, mpi.RendezvousWrite, false, 10 * mono.Millisecond, false, true}, {1, mpi.RendezvousWrite, true, 10 * mono.Millisecond, false, true},
			{2, mpi.RendezvousWrite, true, -10 * mono.Millisecond, false, true}, {1, mpi.RendezvousWrite, false, -10 * mono.Millisecond, true, true},
			{1, mpi.RendezvousRead, true, 10 * mono.Millisecond, false, true}, {0, mpi.RendezvousWrite, false, 10 * mono.Millisecond, false, false},
		} {
			what := fmt.Sprintf("%v, %+v", transport, way)
			w := newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, 2, way.ghosts)
			w.mpi.Transport, w.mpi.Rendezvous = transport, way.rendezvous
			const size = 1 << 20
			var called, ended mono.Time
			w.launch(func(task *sim.Task, p *mpi.Proc) error {
				c := p.World()
				memory, free, err := memoryOf(p, way.allocates, size+10)
				if err = errors.Join(err, c.Barrier()); err != nil {
					return err
				}
				data := memory[3:][:size]
				if c.Rank() == 1 {
					own := make([]byte, size)
					pattern(own, 3)
					task.Sleep(max(way.senderLate, 0))
					if _, _, err = c.Iprobe(0, 9); err != nil { // it has heard of the invitation
						return err
					}
					if err = mpi.Send(c, own, 0, 5); err == nil {
						ended = task.Now()
					}
					if n := p.Stats().Invited; (n == 1) != way.want {
						err = errors.Join(err, fmt.Errorf("%d messages went to a ghost", n))
					}
					return errors.Join(err, free())
				}
				task.Sleep(max(-way.senderLate, 0))
				if way.seen {
					if _, err = c.Probe(1, 5); err != nil {
						return err
					}
				}
				r, err := mpi.Irecv(c, data, 1, 5)
				if err != nil {
					return err
				}
				task.Sleep(300 * mono.Millisecond)
				called = task.Now()
				if way.want {
					err = checkPattern(data, 3) // before this rank has called MPI again
				}
				st, waited := r.Wait()
				if st.Source != 1 || st.Tag != 5 || st.Bytes() != size {
					err = errors.Join(err, fmt.Errorf("the status is %+v", st))
				}
				return errors.Join(err, waited, checkPattern(data, 3), free())
			})
			if err := w.Run(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if (ended < called) != way.want {
				t.Errorf("%s: the sender was done at %v, and the receiver called MPI at %v", what, ended, called)
			}
		}
	}
}
