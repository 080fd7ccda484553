package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
			const size = 1 << 20
			playHosted(t, what, 2, way.ghosts, transport, way.rendezvous, func(task *sim.Task, p *mpi.Proc) error {
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

// A message between two ghosts is cancelled, by either end, or its communicator revoked, or a ghost dies, at any time: it comes
// once or not at all, and no end has its memory back before nothing is read or written there any more.
func TestMeet_takenBack(t *testing.T) {
	const size = 300_000
	var came, gone, met, fell int
	for seed := range seeds(t, 200) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 11))
		w, revokes, allocates, _ := recalling(uint64(seed), 11)
		m := mortalsOf(w)
		m.mpi.Ghosts.Failure, m.tells = mpi.GhostFallback, true
		does, dies := rnd.IntN(3), rnd.IntN(4) // by whom; 0 and 1: a ghost of theirs
		var sleeps [2]mono.Duration
		for i := range sleeps {
			sleeps[i] = mono.Duration(rnd.IntN(int(2 * mono.Millisecond)))
		}
		after := mono.Duration(rnd.IntN(int(3 * mono.Millisecond)))
		m.play(t, func(task *sim.Task, p *mpi.Proc) error {
			memory, free, err := memoryOf(p, allocates, size)
			if err != nil {
				return err
			}
			c, err := p.World().Dup()
			if err = errors.Join(err, c.Barrier()); err != nil {
				return err
			}
			me := c.Rank()
			if me == 0 && dies < 2 {
				fell++
				m.killed[2+dies] = task.Now().Add(mono.Duration(rnd.IntN(int(3 * mono.Millisecond))))
			}
			task.Sleep(sleeps[me])
			var r mpi.Request
			if me == 0 {
				pattern(memory, 5)
				r, err = mpi.Isend(c, memory, 1, 1)
			} else {
				clear(memory)
				r, err = mpi.Irecv(c, memory, 0, 1)
			}
			if err != nil && revokes {
				return errors.Join(wantClass(err, mpi.ErrRevoked), free())
			}
			task.Sleep(after)
			if does == me && err == nil {
				if revokes {
					err = c.Revoke()
				} else {
					err = r.Cancel()
				}
			} else if does == 2 {
				task.Sleep(5 * mono.Millisecond)
			}
			st, waited := r.Wait()
			met += int(p.Stats().Met)
			switch {
			case waited != nil && revokes:
				gone++
				waited = wantClass(waited, mpi.ErrRevoked)
			case waited == nil && !st.Cancelled() && me == 1:
				came++
				waited = checkPattern(memory, 5)
			case st.Cancelled():
				gone++
			}
			pattern(memory, 7+me)
			if own := make([]byte, size); err == nil && st.Cancelled() && me == 0 { // the other end waits
				pattern(own, 5)
				err = mpi.Send(c, own, 1, 1)
			} else if err == nil && st.Cancelled() {
				_, err = mpi.Recv(c, own, 0, 1)
				err = errors.Join(err, checkPattern(own, 5))
			}
			task.Sleep(5 * mono.Millisecond)
			return errors.Join(err, waited, checkPattern(memory, 7+me), free())
		})
		if t.Failed() {
			t.Fatalf("seed %d, revokes %v, allocates %v, by %d, ghost %d dies", seed, revokes, allocates, does, dies)
		}
	}
	if came == 0 || gone == 0 || met == 0 || fell == 0 {
		t.Errorf("%d messages came, %d ends gave up, %d messages went from ghost to ghost, %d ghosts died: nothing was tested", came, gone, met, fell)
	}
	t.Logf("%d messages came, %d ends gave up, %d messages went from ghost to ghost, %d ghosts died", came, gone, met, fell)
}
