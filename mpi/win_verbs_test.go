package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// What is one aligned word of 8 bytes is an atomic of verbs, where no message to the target is under
// way and the transport has atomics, and everything is right whatever it is.
func TestWin_verbsAtomics(t *testing.T) {
	for _, c := range []struct {
		transport mpi.Transport
		ghosts    int
		want      uint64
	}{{mpi.RD, 0, 5}, {mpi.RC, 0, 5}, {mpi.UD, 0, 0}, {mpi.RD, 1, 5}} {
		world := newHostedWorld(sim.Config{Seed: 1}, 2, 2, c.ghosts)
		world.mpi.Transport = c.transport
		world.launch(func(_ *sim.Task, p *mpi.Proc) error {
			w, memory, err := mpi.WinAllocate[int64](p.World(), 4, nil)
			memory[0] = 5
			odd := make([]byte, 17)
			at, misaligned := p.World().WinCreate(odd[1:], 1, nil)
			if err = errors.Join(err, misaligned, p.World().Barrier()); err != nil {
				return err
			}
			if p.World().Rank() == 0 {
				err = errors.Join(w.LockAll(0), at.LockAll(0), verbsAtomics(w, at), w.UnlockAll(), at.UnlockAll())
				if got := mpi.Atomics(p); err == nil && got != c.want {
					err = fmt.Errorf("%v, %d ghosts: %d atomics of verbs, want %d", c.transport, c.ghosts, got, c.want)
				}
			}
			return errors.Join(err, w.Free(), at.Free())
		})
		if err := world.Run(); err != nil {
			t.Error(err)
		}
	}
}

func verbsAtomics(w, misaligned *mpi.Win) error {
	var added, was, replaced, swapped, kept, second, behind int64
	var short int32
	var float, bits float64
	err := errors.Join(
		mpi.FetchAndOp(w, -2, &added, 1, 0, mpi.OpSum), w.Flush(1), // 5 becomes 3
		mpi.FetchAndOp(w, 100, &was, 1, 0, mpi.OpNoOp), w.Flush(1),
		mpi.FetchAndOp(w, 7, &replaced, 1, 0, mpi.OpReplace), w.Flush(1),
		mpi.CompareAndSwap(w, 9, 7, &swapped, 1, 0), w.Flush(1),
		mpi.CompareAndSwap(w, 1, 7, &kept, 1, 0),                   // 9 stays
		mpi.FetchAndOp(w, 1, &second, 1, 0, mpi.OpSum), w.Flush(1), // behind that one: a message
		mpi.Accumulate(w, []int64{50}, 1, 1, mpi.OpSum), mpi.FetchAndOp(w, 1, &behind, 1, 1, mpi.OpSum), w.Flush(1),
		mpi.FetchAndOp(w, 1.5, &float, 1, 2, mpi.OpSum), w.Flush(1),
		mpi.FetchAndOp(misaligned, int32(3), &short, 1, 0, mpi.OpSum), misaligned.Flush(1),
		mpi.FetchAndOp(misaligned, 2.5, &bits, 1, 8, mpi.OpReplace), misaligned.Flush(1),
	)
	got := fmt.Sprint(added, was, replaced, swapped, kept, second, behind, short, float, bits)
	if want := fmt.Sprint(5, 3, 3, 7, 9, 9, 50, 0, 0, 0); err == nil && got != want {
		err = fmt.Errorf("%w: what was there is %s, want %s", errData, got, want)
	}
	return err
}
