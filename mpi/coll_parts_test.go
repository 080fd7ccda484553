package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi"
)

// Parts of other lengths, at other places or of other elements in the memory of the call before are not taken for
// those of that call; of two ranks they go through slots after the first calls, of three they are messages.
func TestCollectives_partsOfTheCallBefore(t *testing.T) {
	onRanks(t, []int{2, 3}, func(p *mpi.Proc) error {
		c := p.World()
		n, me := c.Size(), c.Rank()
		out, in := make([]uint16, 16*n), make([]uint16, 16*n)
		for round := range 8 {
			for _, lengths := range [][]int{{1, 2, 1}, {3, 1, 2}, {3, 1, 2}, {0, 4, 1}} {
				counts, displs := lengths[:n], make([]int, n)
				for i := 1; i < n; i++ {
					displs[i] = displs[i-1] + counts[i-1] + round%2
				}
				for i := range out {
					out[i] = uint16(1000*me + 100*round + i)
				}
				part := func(rank, from, count int) (want []uint16) {
					for i := range count {
						want = append(want, uint16(1000*rank+100*round+from+i))
					}
					return want
				}
				check := func(what string, err error, got, want []uint16) error {
					if err != nil || !slices.Equal(got, want) {
						return fmt.Errorf("%s of %v at %v: %v, want %v, %w", what, counts, displs, got, want, err)
					}
					return nil
				}
				root := round % n
				clear(in)
				err := mpi.Scatterv(c, out, counts, displs, in[:counts[me]], root)
				if err = check("Scatterv", err, in[:counts[me]], part(root, displs[me], counts[me])); err != nil {
					return err
				}
				for _, all := range []bool{false, true} {
					clear(in)
					if all {
						err = mpi.Allgatherv(c, out[:counts[me]], in, counts, displs)
					} else {
						err = mpi.Gatherv(c, out[:counts[me]], in, counts, displs, root)
					}
					for i := range n {
						if got := in[displs[i]:][:counts[i]]; err != nil || all || me == root {
							if err = check("Gatherv", err, got, part(i, 0, counts[i])); err != nil {
								return err
							}
						}
					}
				}
				sent, at := slices.Repeat([]int{counts[me]}, n), make([]int, n)
				for i := range at {
					at[i] = 4 * i
				}
				outs, ins := make([][]uint16, n), make([][]uint16, n)
				for i := range n {
					outs[i], ins[i] = out[at[i]:][:counts[me]], in[displs[i]:][:counts[i]]
				}
				for _, f := range []func() error{
					func() error { return mpi.Alltoallv(c, out, sent, at, in, counts, displs) },
					func() error { return mpi.Alltoallw(c, outs, ins) },
				} {
					clear(in)
					err := f()
					for i := range n {
						if err = check("Alltoall of parts", err, ins[i], part(i, 4*me, counts[i])); err != nil {
							return err
						}
					}
				}
			}
		}
		for _, c := range []struct{ at, length, odd int }{{0, 2, 0}, {0, 2, 0}, {1, 2, 0}, {1, 1, 0}, {1, 1, 1}, {0, 1, 1}} { // slices that have moved, or have another length
			outs, ins := make([][]uint16, n), make([][]uint16, n)
			for i := range n {
				k := c.length + (i+me+c.odd)%2
				outs[i], ins[i] = out[4*i+c.at:][:k], in[4*i+c.at:][:k]
			}
			clear(in)
			err := mpi.Alltoallw(p.World(), outs, ins)
			for i := range n {
				if want := 1000*i + 700 + 4*me + c.at; err != nil || ins[i][0] != uint16(want) || in[4*i+c.at+len(ins[i])] != 0 {
					return fmt.Errorf("Alltoallw of %d elements at %d: %v, %w", len(ins[i]), c.at, in, err)
				}
			}
		}
		ones := slices.Repeat([]int{1}, n)
		wide, gathered := mem.ScalarsOf[uint32](mem.BytesOf(out)), mem.ScalarsOf[uint32](mem.BytesOf(in))
		for range 2 { // as many elements of another length
			out[0], wide[1] = uint16(me), uint32(me)<<16
			if err := mpi.Gatherv(c, out[:1], in, ones, nil, 0); err != nil || me == 0 && in[n-1] != uint16(n-1) {
				return fmt.Errorf("Gatherv of short elements: %v, %w", in[:n], err)
			}
			if err := mpi.Gatherv(c, wide[1:2], gathered, ones, nil, 0); err != nil || me == 0 && gathered[n-1] != uint32(n-1)<<16 {
				return fmt.Errorf("Gatherv of longer elements: %v, %w", gathered[:n], err)
			}
		}
		return nil
	})
}

// Reductions with the memory of the call before are that call only if the root, the counts and the lengths are alike, too.
func TestCollectives_reductionsOfTheCallBefore(t *testing.T) {
	onRanks(t, []int{2, 3}, func(p *mpi.Proc) error {
		c := p.World()
		n, me := c.Size(), c.Rank()
		in, out := make([]uint32, 4*n), make([]uint32, 4*n)
		ranks := uint32(n * (n - 1) / 2)
		for round := range 6 {
			for i := range in {
				in[i] = uint32(1000*round + 10*i + me)
			}
			sum := func(i int) uint32 { return uint32(n*(1000*round+10*i)) + ranks }
			check := func(what string, err error, got []uint32, from int) error {
				for i, v := range got {
					if v != sum(from+i) {
						return fmt.Errorf("%s: %v from %d on, want %d first, %w", what, got, from, sum(from), err)
					}
				}
				return err
			}
			for _, root := range []int{0, 0, n - 1, n - 1, 0} {
				clear(out)
				err := mpi.Reduce(c, in, out, mpi.Sum, root)
				switch {
				case me == root:
					err = check("Reduce", err, out, 0)
				case slices.Max(out) != 0:
					err = fmt.Errorf("Reduce to rank %d: %v, %w", root, out, err)
				}
				if err != nil {
					return err
				}
			}
			copy(out, in)
			given := out
			if me == 0 {
				given = nil
			}
			if err := mpi.Reduce(c, given, out, mpi.Sum, 0); err != nil || me == 0 && check("Reduce in place", err, out, 0) != nil {
				return fmt.Errorf("Reduce in place: %v, %w", out, err)
			}
			for k := range 6 { // with all of out only the counts differ
				counts, at := [][]int{{4, 2, 2}, {4, 2, 2}, {2, 4, 2}}[k%3][:n], 0
				for _, n := range counts[:me] {
					at += n
				}
				all := at
				for _, n := range counts[me:] {
					all += n
				}
				room := out
				if k < 3 {
					room = out[:counts[me]]
				}
				err := mpi.ReduceScatter(c, in[:all], room, counts, mpi.Sum)
				if err = check("ReduceScatter", err, out[:counts[me]], at); err != nil {
					return err
				}
			}
			for _, each := range []int{4, 4, 2} {
				err := mpi.ReduceScatterBlock(c, in[:each*n], out[:each], mpi.Sum)
				if err = check("ReduceScatterBlock", err, out[:each], each*me); err != nil {
					return err
				}
			}
			err := mpi.ReduceScatterBlock(c, in[:0], out[:2], mpi.Sum)
			if err = errors.Join(err, mpi.Reduce(c, in[:2], out[:2], mpi.Max, 0)); err != nil || me == 0 && out[1] != in[1]+uint32(n-1) {
				return fmt.Errorf("Reduce of the maximum: %v, %w", out, err)
			}
		}
		return nil
	})
}
