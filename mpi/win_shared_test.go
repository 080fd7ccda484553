package mpi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// sharedByAll has all ranks of c, which are on one host, write a part of the memory of each
// in a shared window, and read what the others have written. The last rank has none.
func sharedByAll(c *mpi.Comm, n int, apart bool) error {
	var hints *mpi.Info
	if apart {
		hints = info("alloc_shared_noncontig", "true")
	}
	mine := n * c.Size()
	if c.Size() > 1 && c.Rank() == c.Size()-1 {
		mine = 0
	}
	w, memory, err := mpi.WinAllocateShared[int64](c, mine, hints)
	if err == nil {
		err = w.LockAll(mpi.ModeNoCheck)
	}
	if err != nil {
		return err
	}
	all := make([][]int64, c.Size())
	for r := range all {
		if all[r], err = mpi.SharedQuery[int64](w, r); err != nil {
			return err
		}
		if len(all[r]) != 0 && len(all[r]) != n*c.Size() {
			return fmt.Errorf("rank %d has %d elements", r, len(all[r]))
		}
		for i := range len(all[r]) / c.Size() {
			all[r][c.Rank()*n+i] = int64(1000*c.Rank() + 100*r + i)
		}
	}
	for r := 1; r < c.Size() && !apart && len(all[r]) > 0; r++ {
		before, here := mem.BytesOf(all[r-1]), mem.BytesOf(all[r])
		if mem.AddressOf(before)+uint64(len(before)) != mem.AddressOf(here) {
			return fmt.Errorf("the memory of rank %d does not begin where that of the one before ends", r)
		}
	}
	first, unit, err := w.SharedQuery(mpi.ProcNull)
	if err != nil || unit != 8 || mem.AddressOf(first) != mem.AddressOf(mem.BytesOf(all[0])) {
		return fmt.Errorf("the first memory is %d bytes of unit %d: %w", len(first), unit, err)
	}
	if err := errors.Join(w.Sync(), c.Barrier(), w.Sync()); err != nil {
		return err
	}
	for r := range all {
		for k := range c.Size() {
			for i := range len(all[r]) / c.Size() {
				if got, want := all[r][k*n+i], int64(1000*k+100*r+i); got != want {
					return fmt.Errorf("rank %d: element %d of rank %d by rank %d is %d, want %d", c.Rank(), i, r, k, got, want)
				}
			}
		}
	}
	if len(memory) > 0 && &memory[0] != &all[c.Rank()][0] {
		return errors.New("the own memory is another one")
	}
	return errors.Join(w.UnlockAll(), w.Free())
}

func TestWinAllocateShared(t *testing.T) {
	before, err1 := holdingsNow()
	for _, ranks := range []int{1, 2, 5} {
		err := mpi.Run(ranks, func(p *mpi.Proc) error {
			c := p.World()
			return errors.Join(sharedByAll(c, 3, false), sharedByAll(c, 700, true), sharedByAll(p.Self(), 10, false))
		})
		if err != nil {
			t.Errorf("%d ranks: %v", ranks, err)
		}
	}
	after, err2 := holdingsNow()
	if err := errors.Join(err1, err2); err != nil || after.segments > before.segments {
		t.Errorf("%d segments are mapped still (%v)", after.segments-before.segments, err)
	}
}

// What cannot be shared is an error of its class, on all ranks, and what can be asked for of
// other windows is there.
func TestWinAllocateShared_errors(t *testing.T) {
	notShared := func(p *mpi.Proc) error {
		_, _, err := mpi.WinAllocateShared[int32](p.World(), 4, nil)
		return wantClass(err, mpi.ErrRMAShared)
	}
	simulate(t, sim.Config{}, 2, notShared)
	if err := mpi.RunWith(2, mpi.Config{NoShared: true}, notShared); err != nil {
		t.Error(err)
	}
	err := mpi.Run(3, func(p *mpi.Proc) error {
		c := p.World()
		mixed := func(hints *mpi.Info) (w *mpi.Win, err error) { // rank 0 has 3 bytes, the others 2 words each
			if c.Rank() == 0 {
				w, _, err = mpi.WinAllocateShared[byte](c, 3, hints)
			} else {
				w, _, err = mpi.WinAllocateShared[int64](c, 2, hints)
			}
			return w, err
		}
		_, odd := mixed(nil)
		_, _, huge := c.WinAllocateShared(1<<45, 1, nil)
		w, err := mixed(info("alloc_shared_noncontig", "true"))
		if err = errors.Join(err, wantClass(odd, mpi.ErrRMAShared), wantClass(huge, mpi.ErrNoMem)); err != nil {
			return err
		}
		of0, err0 := mpi.SharedQuery[byte](w, 0)
		of1, err1 := mpi.SharedQuery[int64](w, 1)
		_, errType := mpi.SharedQuery[int64](w, 0)
		_, errRank := mpi.SharedQuery[int64](w, 3)
		err = errors.Join(err0, err1, wantClass(errType, mpi.ErrType), wantClass(errRank, mpi.ErrRank))
		if len(of0) != 3 || len(of1) != 2 || w.Flavor() != mpi.FlavorShared || w.Flavor().String() != "shared" {
			err = errors.Join(err, fmt.Errorf("%d bytes, %d words, %v", len(of0), len(of1), w.Flavor()))
		}
		dynamic, errD := c.WinCreateDynamic(nil)
		_, _, noMemory := dynamic.SharedQuery(0)
		created, own, errC := winOf(p, 3)
		mine, errM := mpi.SharedQuery[int64](created, c.Rank())
		other, errO := mpi.SharedQuery[int64](created, (c.Rank()+1)%3)
		if len(mine) != 3 || &mine[0] != &own[0] || other != nil {
			err = errors.Join(err, fmt.Errorf("of memory of the program there are %d and %d elements", len(mine), len(other)))
		}
		allocated, _, errA := mpi.WinAllocate[int64](c, 5, nil)
		other, errB := mpi.SharedQuery[int64](allocated, (c.Rank()+1)%3)
		if len(other) != 5 {
			err = errors.Join(err, fmt.Errorf("of memory of a neighbour there are %d elements", len(other)))
		}
		err = errors.Join(err, errD, wantClass(noMemory, mpi.ErrRMAFlavor), errC, errM, errO, errA, errB)
		for _, one := range []*mpi.Win{w, dynamic, created, allocated} {
			err = errors.Join(err, one.Free())
		}
		_, _, freed := w.SharedQuery(0)
		return errors.Join(err, wantClass(freed, mpi.ErrWin))
	})
	if err != nil {
		t.Error(err)
	}
}

// Random traffic between ranks of one host, whose memory others load and store.
func TestWin_randomOnOneHost(t *testing.T) {
	for seed := range seeds(t, 12) {
		x := winTraffic{seed: uint64(seed), rounds: 20, ops: 30, block: 60, flavor: mpi.FlavorAllocate}
		if seed%3 == 1 {
			x.flavor = mpi.FlavorShared
		}
		if err := mpi.Run(2+seed%4, x.run); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Long accumulates and short ones on the same elements lose nothing of one another, whichever
// calls they are, and wherever the operands lie.
func TestWin_longBesideShort(t *testing.T) {
	rounds := 900
	if slow {
		rounds = 60
	}
	if err := mpi.Run(3, func(p *mpi.Proc) error { return longBesideShort(p.World(), rounds) }); err != nil {
		t.Error(err)
	}
}

func longBesideShort(c *mpi.Comm, rounds int) error {
	const words = 5000 // of several turns
	w, memory, err := mpi.WinAllocate[int64](c, words, nil)
	if err == nil {
		err = w.LockAll(0)
	}
	if err != nil {
		return err
	}
	ones, was, want, odd := make([]int64, words), make([]int64, words), make([]int64, words), make([]byte, 8*words+1)
	for i := range ones {
		ones[i] = 1
		binary.NativeEndian.PutUint64(odd[1+8*i:], 1)
	}
	add := func(at, n int) {
		for i := range n {
			want[at+i]++
		}
	}
	var old int64
	for i := range rounds {
		short := i%3 == c.Rank() // while the others are at long ones
		for k := range 40 {
			at := (i*1009 + k*61) % (words - 40)
			add(at, 1)
			add(at, 1)
			add(at, k)
			if !short {
				continue
			}
			err = errors.Join(err, mpi.FetchAndOp(w, 1, &old, 0, at, mpi.OpSum), mpi.Accumulate(w, ones[:k], 0, at, mpi.OpSum))
			for next := old + 1; ; next = old + 1 {
				if err = errors.Join(err, mpi.CompareAndSwap(w, next, next-1, &old, 0, at)); old == next-1 || err != nil {
					break
				}
			}
		}
		for range 4 {
			for range 3 * (c.Size() - 1) {
				add(0, words)
			}
			if !short {
				err = errors.Join(err, mpi.GetAccumulate(w, ones, was, 0, 0, mpi.OpSum), mpi.Accumulate(w, ones, 0, 0, mpi.OpSum),
					w.Accumulate(mpi.Bytes(odd, 1, words, mpi.TypeInt64), mpi.At{}, mpi.OpSum))
			}
		}
	}
	if err = errors.Join(err, w.UnlockAll(), c.Barrier()); err == nil && c.Rank() == 0 && !slices.Equal(memory, want) {
		err = fmt.Errorf("%w: something was lost", errData)
	}
	return errors.Join(err, w.Free())
}
