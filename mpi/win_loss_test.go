package mpi_test

import (
	"errors"
	"fmt"
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

// Ranks die while others free a window: what is heard of losses later does not reach its memory,
// which is mapped no more.
func TestWin_lossWhileFreed(t *testing.T) {
	freeing := [2]mono.Time{} // when all are in Free, without losses
	play := func(at mono.Time) {
		m := mortalsOf(newHostedWorld(sim.Config{Seed: 4}, 4, 1, 0))
		m.tells = true
		if at > 0 {
			m.killed[1], m.killed[2] = at, at.Add(500*mono.Millisecond)
		}
		m.play(t, func(task *sim.Task, p *mpi.Proc) error {
			c := p.World()
			w, _, err := mpi.WinAllocateShared[int64](c, 10, nil)
			if err != nil {
				return err
			}
			if err := errors.Join(w.Fence(0), mpi.Put(w, []int64{1}, (c.Rank()+1)%4, 0), w.Fence(0)); err != nil {
				return err
			}
			began := task.Now()
			err = w.Free()
			if at == 0 {
				freeing[0], freeing[1] = max(freeing[0], began), max(freeing[1], task.Now())
				return err
			}
			for lost := 1; lost <= 2; lost++ {
				if _, err := mpi.Recv(c, make([]int64, 1), lost, 0); mpi.ClassOf(err) != mpi.ErrProcFailed {
					return fmt.Errorf("rank %d was to be lost: %w", lost, err)
				}
			}
			return nil
		})
	}
	play(0)
	times := mono.Time(60)
	if slow {
		times = 15
	}
	for i := range times {
		play(freeing[0] + (freeing[1]-freeing[0])*i/times)
	}
}
