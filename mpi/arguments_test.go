package mpi_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// A send buffer that is, or reaches into, the receive buffer of the same call is
// refused, and not sometimes right (MPI 4.1, sections 2.3 and 6.2.3: no aliases).
func TestCollectives_sharedMemory(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		c := p.World()
		n := c.Size()
		v := make([]int64, 4*n)
		for what, call := range map[string]func() error{
			"Allreduce, the same":     func() error { return mpi.Allreduce(c, v, v, mpi.Sum) },
			"Allreduce, a part":       func() error { return mpi.Allreduce(c, v[:3], v[1:4], mpi.Sum) },
			"Reduce":                  func() error { return mpi.Reduce(c, v, v, mpi.Sum, c.Rank()) },
			"Scan":                    func() error { return mpi.Scan(c, v, v, mpi.Sum) },
			"Exscan":                  func() error { return mpi.Exscan(c, v, v, mpi.Sum) },
			"ReduceScatter":           func() error { return mpi.ReduceScatterBlock(c, v, v[:4], mpi.Sum) },
			"Allgather, its own part": func() error { return mpi.Allgather(c, v[4*c.Rank():4*c.Rank()+4], v) },
			"Gather":                  func() error { return mpi.Gather(c, v[:4], v, c.Rank()) },
			"Scatter":                 func() error { return mpi.Scatter(c, v, v[:4], c.Rank()) },
			"Alltoall":                func() error { return mpi.Alltoall(c, v, v) },
			"Iallreduce":              func() error { return second(mpi.Iallreduce(c, v, v, mpi.Sum)) },
			"AllreduceInit":           func() error { return second(mpi.AllreduceInit(c, v, v, mpi.Sum)) },
			"of data": func() error {
				return c.Allreduce(mpi.Slice(v), mpi.Typed(v, len(v), mpi.TypeInt64), mpi.OpSum)
			},
			"ReduceLocal": func() error { return mpi.ReduceLocal(mpi.Slice(v), mpi.Slice(v), mpi.OpSum) },
		} {
			if err := wantClass(call(), mpi.ErrBuffer); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		// Halves of one array share nothing.
		return mpi.Allreduce(c, v[:2*n], v[2*n:], mpi.Sum)
	})
}

// Where there is nothing to send or to receive, its displacement is of no account:
// programs compute them for ranks that have nothing, too.
func TestCounts_displacementsOfNothing(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		c := p.World()
		counts, displs := []int{2, 0, 1}, []int{1, 100, 0}
		mine := slices.Repeat([]int32{int32(c.Rank() + 1)}, counts[c.Rank()])
		want := []int32{3, 1, 1}
		check := func(what string, err error, got []int32) error {
			if err != nil || !slices.Equal(got, want) {
				return fmt.Errorf("%s: %v, %w", what, got, err)
			}
			return nil
		}
		all := make([]int32, 3)
		err := check("Allgatherv", mpi.Allgatherv(c, mine, all, counts, displs), all)
		if c.Rank() == 0 {
			clear(all)
			err = errors.Join(err, check("Gatherv", mpi.Gatherv(c, mine, all, counts, displs, 0), all))
		} else {
			err = errors.Join(err, mpi.Gatherv(c, mine, nil, nil, nil, 0))
		}
		back := make([]int32, len(mine))
		err = errors.Join(err, mpi.Scatterv(c, all, counts, []int{1, -7, 0}, back, 0))
		if !slices.Equal(back, mine) {
			err = errors.Join(err, fmt.Errorf("Scatterv: %v, want %v", back, mine))
		}
		return err
	})
}

// Fewer statuses than requests are refused before anything is waited for.
func TestStatuses_tooFew(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.World()
		a, err := mpi.Irecv(c, make([]int8, 1), 0, 0)
		b, err2 := mpi.Irecv(c, make([]int8, 1), 0, 1)
		list := []mpi.Request{a, b}
		_, err3 := mpi.GetStatusAll(list, make([]mpi.Status, 1))
		err = errors.Join(err, err2, wantClass(err3, mpi.ErrArg), wantClass(mpi.WaitallStatus(list, make([]mpi.Status, 1)), mpi.ErrArg))
		if err != nil || list[0].IsNull() {
			return fmt.Errorf("null %v: %w", list[0].IsNull(), err)
		}
		return errors.Join(mpi.Send(c, []int8{1}, 0, 0), mpi.Send(c, []int8{1}, 0, 1), mpi.WaitallStatus(list, make([]mpi.Status, 2)))
	})
}

// More elements than there are addresses are not none.
func TestAlloc_tooMany(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		_, big := mpi.Alloc[float64](p, 1<<61)
		_, most := mpi.Alloc[complex128](p, math.MaxInt)
		_, below := mpi.Alloc[int8](p, -1)
		return errors.Join(wantClass(big, mpi.ErrArg), wantClass(most, mpi.ErrArg), wantClass(below, mpi.ErrArg))
	})
}

// The Delete of one attribute may delete another one of the same communicator.
func TestAttributes_deleteDeletes(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		c, err := p.World().Dup()
		if err != nil {
			return err
		}
		var gone []string
		first := &mpi.Keyval{Delete: func(*mpi.Comm, any) error { gone = append(gone, "first"); return nil }}
		second := &mpi.Keyval{Delete: func(*mpi.Comm, any) error { gone = append(gone, "second"); return nil }}
		third := &mpi.Keyval{Delete: func(c *mpi.Comm, _ any) error {
			gone = append(gone, "third")
			return c.DeleteAttr(second)
		}}
		for _, k := range []*mpi.Keyval{first, second, third} {
			if err := c.SetAttr(k, 0); err != nil {
				return err
			}
		}
		if err := c.Free(); err != nil || !slices.Equal(gone, []string{"third", "second", "first"}) {
			return fmt.Errorf("deleted %v: %w", gone, err)
		}
		return nil
	})
}

// Weights of no edges are weights (MPI_WEIGHTS_EMPTY; MPI 4.1, section 8.5.4): a rank
// without neighbours can tell a weighted graph from another one.
func TestDistGraph_weightsOfNothing(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		for _, reorder := range []bool{false, true} {
			for _, weighted := range []bool{false, true} {
				var none mpi.Edges
				if weighted {
					none.Weights = []int{}
				}
				adjacent, err := c.DistGraphCreateAdjacent(none, none, reorder)
				if err != nil {
					return err
				}
				made, err := c.DistGraphCreate(nil, nil, none, reorder)
				if err != nil {
					return err
				}
				for _, g := range []*mpi.Comm{adjacent, made} {
					in, out, err := g.DistGraphNeighbors()
					if err != nil || (in.Weights != nil) != weighted || (out.Weights != nil) != weighted {
						return fmt.Errorf("reorder %v, weighted %v: %v, %v, %w", reorder, weighted, in.Weights, out.Weights, err)
					}
				}
			}
		}
		return nil
	})
}

// The dimensions of large numbers are found at once, of primes too.
func TestDimsCreate_large(t *testing.T) {
	for _, tc := range []struct {
		n    int
		dims []int
		want []int
	}{
		{math.MaxInt32, []int{0, 0}, []int{math.MaxInt32, 1}},
		{720720, []int{0, 0, 0, 0, 0, 0}, []int{13, 11, 10, 9, 8, 7}},
		{1 << 40, []int{0, 0, 1 << 20, 0}, []int{1 << 7, 1 << 7, 1 << 20, 1 << 6}},
		{735134400, make([]int, 9), []int{17, 13, 11, 10, 10, 9, 8, 7, 6}},
		{1 << 40, make([]int, 40), slices.Repeat([]int{2}, 40)},
		{6469693230, make([]int, 10), []int{29, 23, 19, 17, 13, 11, 7, 5, 3, 2}},
		{1, nil, nil},
	} {
		if err := mpi.DimsCreate(tc.n, tc.dims); err != nil || !slices.Equal(tc.dims, tc.want) {
			t.Errorf("%d: %v, %v, want %v", tc.n, tc.dims, err, tc.want)
		}
	}
}

// Any rank may give Undefined to SplitType, whatever kind the others want (MPI 4.1,
// section 7.4.2).
func TestSplitType_someUndefined(t *testing.T) {
	info, err := mpi.NewInfo("mpi_hw_resource_type", "host")
	if err != nil {
		t.Fatal(err)
	}
	onRanks(t, []int{1, 3}, func(p *mpi.Proc) error {
		w := p.World()
		for _, kind := range []mpi.SplitType{mpi.TypeShared, mpi.TypeHWGuided, mpi.TypeHWUnguided} {
			mine := kind
			if w.Rank() == w.Size()-1 {
				mine = mpi.Undefined
			}
			c, err := w.SplitTypeWithInfo(mine, 0, info)
			if err != nil {
				return err
			}
			if none := mine == mpi.Undefined || kind == mpi.TypeHWUnguided; (c == nil) != none {
				return fmt.Errorf("kind %d of %d on rank %d: nil %v, want %v", mine, kind, w.Rank(), c == nil, none)
			}
			if c != nil && c.Size() != w.Size()-1 {
				return fmt.Errorf("kind %d: %d ranks", kind, c.Size())
			}
			if err := w.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Nobody is there to make an intercommunicator with.
func TestCreateInter_procNull(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		_, err := p.Self().CreateInter(0, p.World(), mpi.ProcNull, 0)
		return wantClass(err, mpi.ErrRank)
	})
}

// AllocBytes leaves what was there before, and Alloc does not.
func TestProc_AllocBytes(t *testing.T) {
	const n = 100_000
	err := mpi.Run(1, func(p *mpi.Proc) error {
		b, err := p.AllocBytes(n)
		if err != nil {
			return err
		}
		for i := range b {
			b[i] = 7
		}
		if err = mpi.Free(p, b); err != nil {
			return err
		}
		if b, err = p.AllocBytes(n); err != nil {
			return err
		}
		if len(b) != n || b[n/2] != 7 {
			return fmt.Errorf("%d bytes, of which one is %d", len(b), b[n/2])
		}
		if err = mpi.Free(p, b); err != nil {
			return err
		}
		if b, err = mpi.Alloc[byte](p, n); err != nil {
			return err
		}
		if i := slices.IndexFunc(b, func(x byte) bool { return x != 0 }); i >= 0 {
			return fmt.Errorf("byte %d is not zero", i)
		}
		_, below := p.AllocBytes(-1)
		return errors.Join(wantClass(below, mpi.ErrArg), mpi.Free(p, b))
	})
	if err != nil {
		t.Error(err)
	}
}
