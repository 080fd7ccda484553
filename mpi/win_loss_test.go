package mpi_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// playLoss runs three ranks of which rank 1 falls silent, and gives them a window of four
// words. Ranks 0 and 2 begin when it has, and learn of it later.
func playLoss(t *testing.T, transport mpi.Transport, body func(p *mpi.Proc, w *mpi.Win) error) {
	t.Helper()
	m := newMortals(sim.Config{Seed: 4}, 3)
	m.mpi.Transport = transport
	m.killed[1] = mono.Time(0).Add(80 * mono.Millisecond)
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		w, _, err := winOf(p, 4)
		if err == nil {
			err = p.World().Barrier()
		}
		if err != nil {
			return err
		}
		if p.World().Rank() == 1 {
			_, err := mpi.Recv(p.World(), make([]int64, 1), 2, 6) // until the end
			return err
		}
		task.Sleep(100 * mono.Millisecond)
		return errors.Join(body(p, w), wantClass(w.Fence(0), mpi.ErrProcFailed), w.Free())
	})
}

// A Start that fails for one target is told to the others: their Wait does not wait for it.
func TestWin_startWithLostTarget(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD} {
		for _, targets := range [][]int{{1, 0}, {0, 1}} {
			playLoss(t, transport, func(p *mpi.Proc, w *mpi.Win) error {
				if p.World().Rank() == 0 {
					origins, err := w.Group().Incl(2)
					return errors.Join(err, w.Post(origins, 0), w.Wait())
				}
				group, err := w.Group().Incl(targets...)
				return errors.Join(err, wantClass(w.Start(group, 0), mpi.ErrProcFailed), wantClass(w.Complete(), mpi.ErrRMASync))
			})
		}
	}
}

// Answers that a dying rank owes, as many as may be under way, do not keep others waiting.
func TestWin_fetchesAtLostTarget(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD} {
		playLoss(t, transport, func(p *mpi.Proc, w *mpi.Win) error {
			c, got := p.World(), make([]int64, 1)
			if c.Rank() == 0 { // it serves its memory meanwhile
				_, err := mpi.Recv(c, got, 2, 1)
				return err
			}
			if err := w.LockAll(mpi.ModeNoCheck); err != nil {
				return err
			}
			for range 600 { // it fails when the loss is known
				_ = mpi.Get(w, got, 1, 0)
			}
			err := errors.Join(mpi.Put(w, []int64{7}, 0, 0), w.Flush(0), mpi.Get(w, got, 0, 0), w.Flush(0))
			if got[0] != 7 {
				err = errors.Join(err, fmt.Errorf("got %d", got[0]))
			}
			err = errors.Join(err, wantClass(w.Flush(1), mpi.ErrProcFailed), mpi.Send(c, got, 0, 1))
			_ = w.UnlockAll()
			return err
		})
	}
}

// Who waits for a request, and who flushes its target, both learn that the target is lost.
func TestWin_requestAtLostTarget(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD} {
		playLoss(t, transport, func(p *mpi.Proc, w *mpi.Win) error {
			if p.World().Rank() == 0 {
				return nil
			}
			got := make([]int64, 1)
			if err := w.LockAll(mpi.ModeNoCheck); err != nil {
				return err
			}
			r, err := mpi.RGet(w, got, 1, 0)
			err = errors.Join(err, wantClass(w.Flush(1), mpi.ErrProcFailed))
			_, failed := r.Wait()
			_ = w.UnlockAll()
			return errors.Join(err, wantClass(failed, mpi.ErrProcFailed))
		})
	}
}

// Goroutines whose short operations find no room, and that flush all at the same time, keep
// them apart: each is done once, where it belongs, before the flush returns.
func TestWin_threadsWithoutRoom(t *testing.T) {
	const workers, rounds, ops = 4, 40, 30
	err := mpi.RunWith(3, mpi.Config{Threads: mpi.ThreadMultiple, NoShared: true, Sends: 1, Receives: 4}, func(p *mpi.Proc) error {
		me := p.World().Rank()
		w, memory, err := winOf(p, 1+3*workers*ops)
		if err == nil {
			err = w.LockAll(0)
		}
		if err != nil {
			return err
		}
		errs := make([]error, workers)
		var group sync.WaitGroup
		for k := range workers {
			group.Go(func() {
				base := 1 + (me*workers+k)*ops
				got := make([]int64, ops)
				for round := range rounds {
					target := (me + 1 + (k+round)%2) % 3
					for i := range ops {
						err := mpi.Put(w, []int64{int64(1000*round + i)}, target, base+i)
						if i%3 == 0 {
							err = errors.Join(err, mpi.Accumulate(w, []int64{1}, target, 0, mpi.OpSum))
						}
						errs[k] = errors.Join(errs[k], err)
					}
					errs[k] = errors.Join(errs[k], w.FlushAll(), mpi.Get(w, got, target, base), w.Flush(target))
					for i, v := range got {
						if v != int64(1000*round+i) && errs[k] == nil {
							errs[k] = fmt.Errorf("round %d: element %d is %d", round, i, v)
						}
					}
				}
			})
		}
		group.Wait()
		if err := errors.Join(errors.Join(errs...), w.UnlockAll(), p.World().Barrier()); err != nil {
			return err
		}
		if want := int64(workers * rounds * ops / 3); memory[0] != want {
			return fmt.Errorf("rank %d: the sum is %d, want %d", me, memory[0], want)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
