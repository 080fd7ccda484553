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
			const size = 1 << 20
			var called, ended mono.Time
			playHosted(t, what, 2, way.ghosts, transport, way.rendezvous, func(task *sim.Task, p *mpi.Proc) error {
				c := p.World()
				memory, free, err := memoryOf(p, way.allocates, size+10)
				if err = errors.Join(err, short(c), c.Barrier()); err != nil {
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
			if (ended < called) != way.want {
				t.Errorf("%s: the sender was done at %v, and the receiver called MPI at %v", what, ended, called)
			}
		}
	}
}

// short sends messages of some bytes from rank 1 to rank 0, which share frames.
func short(c *mpi.Comm) error {
	const n = 40
	var requests [n]mpi.Request
	var err error
	for i := range requests {
		word := []byte{byte(i)}
		if c.Rank() == 1 {
			requests[i], err = mpi.Isend(c, word, 0, 7)
		} else {
			requests[i], err = mpi.Irecv(c, word, 1, 7)
		}
		if err != nil {
			return err
		}
	}
	for i := range requests {
		if _, err = requests[i].Wait(); err != nil {
			return err
		}
	}
	return nil
}

// A receive that an older one stands before, of any source, of any tag, or like it, gets its message in its turn.
func TestInvite_behindOthers(t *testing.T) {
	const size = 300_000
	for _, older := range [][2]int{{mpi.AnySource, 5}, {1, mpi.AnyTag}, {1, 5}, {1, 6}} {
		w := newHostedWorld(sim.Config{Seed: 1, Limit: 20 * mono.Second}, 2, 2, 1)
		w.launch(func(task *sim.Task, p *mpi.Proc) error {
			c := p.World()
			memory, free, err := memoryOf(p, true, size)
			if err = errors.Join(err, c.Barrier()); err != nil {
				return err
			}
			own := make([]byte, size)
			if c.Rank() == 1 {
				task.Sleep(10 * mono.Millisecond)
				if older[1] == 6 {
					pattern(own, 3)
					err = mpi.Send(c, own, 0, 6)
				}
				for seed := range 2 {
					pattern(own, seed)
					err = errors.Join(err, mpi.Send(c, own, 0, 5))
				}
				return errors.Join(err, free())
			}
			first, err := mpi.Irecv(c, own, older[0], older[1])
			if err != nil {
				return err
			}
			second, err := mpi.Irecv(c, memory, 1, 5)
			if err != nil {
				return err
			}
			_, e1 := first.Wait()
			_, e2 := second.Wait()
			if older[1] == 6 {
				err = errors.Join(checkPattern(own, 3), checkPattern(memory, 0))
				_, e3 := mpi.Recv(c, own, 1, 5)
				return errors.Join(e1, e2, e3, err, checkPattern(own, 1), free())
			}
			return errors.Join(e1, e2, checkPattern(own, 0), checkPattern(memory, 1), free())
		})
		if err := w.Run(); err != nil {
			t.Errorf("%v: %v", older, err)
		}
	}
}

// A communicator is revoked, or a receive is cancelled, while its sender holds the invitation, or has accepted it: nothing
// is written to the memory when the receive is done, and no message is lost or received twice.
func TestInvite_retracted(t *testing.T) {
	const size = 300_000
	var came, gone, invited int
	for seed := range seeds(t, 100) {
		w, revokes, allocates, sleeps := recalling(uint64(seed), 9)
		w.launch(func(task *sim.Task, p *mpi.Proc) error {
			memory, free, err := memoryOf(p, allocates, size)
			if err != nil {
				return err
			}
			c, err := p.World().Dup()
			if err = errors.Join(err, c.Barrier()); err != nil {
				return err
			}
			if c.Rank() == 1 {
				own := make([]byte, size)
				pattern(own, 5)
				task.Sleep(sleeps[0])
				_, _, bad := c.Iprobe(0, 9)
				task.Sleep(sleeps[1])
				if err = mpi.Send(c, own[:10], 0, 2); err != nil && revokes {
					return errors.Join(wantClass(err, mpi.ErrRevoked), free())
				}
				err = errors.Join(bad, err, mpi.Send(c, own, 0, 1))
				invited += int(p.Stats().Invited)
				if err != nil && revokes {
					err = wantClass(err, mpi.ErrRevoked)
				}
				return errors.Join(err, free())
			}
			r, err := mpi.Irecv(c, memory, 1, 1)
			if err != nil {
				return err
			}
			task.Sleep(sleeps[2])
			if revokes {
				bad := c.Revoke()
				if _, err = r.Wait(); err == nil {
					came++
					return errors.Join(bad, checkPattern(memory, 5), free())
				}
				gone++
				pattern(memory, 6)
				task.Sleep(5 * mono.Millisecond)
				return errors.Join(bad, wantClass(err, mpi.ErrRevoked), checkPattern(memory, 6), free())
			}
			err = r.Cancel()
			st, waited := r.Wait()
			if err = errors.Join(err, waited); err != nil {
				return err
			}
			if !st.Cancelled() {
				came++
				return errors.Join(checkPattern(memory, 5), free())
			}
			gone++
			pattern(memory, 6)
			data := make([]byte, size)
			_, err = mpi.Recv(c, data, 1, 1)
			return errors.Join(err, checkPattern(data, 5), checkPattern(memory, 6), free())
		})
		if err := w.Run(); err != nil {
			t.Fatalf("seed %d, revokes %v, allocates %v: %v", seed, revokes, allocates, err)
		}
	}
	if came == 0 || gone == 0 || invited == 0 {
		t.Errorf("%d messages came and %d did not, %d went to a ghost: nothing was tested", came, gone, invited)
	}
	t.Logf("%d messages came and %d did not, %d went to a ghost", came, gone, invited)
}
