package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

func TestBarrier_waitsForTheLast(t *testing.T) {
	w := newSimWorld(sim.Config{}, 6)
	const late = 3 * mono.Millisecond
	w.launch(func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 4 {
			task.Sleep(late)
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if now := task.Now(); now < mono.Time(late) {
			return fmt.Errorf("left the barrier at %v, before rank 4 entered", mono.Duration(now))
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestBcast_andAllreduce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7} {
		simulate(t, sim.Config{}, n, func(p *mpi.Proc) error {
			c := p.World()
			for i, length := range []int{0, 1, 5, 3000, 150_000} {
				root := i % n
				v := make([]int64, length)
				if c.Rank() == root {
					for k := range v {
						v[k] = int64(k * (i + 1))
					}
				}
				if err := mpi.Bcast(c, v, root); err != nil {
					return err
				}
				for k := range v {
					if v[k] != int64(k*(i+1)) {
						return fmt.Errorf("%d ranks, Bcast of %d: element %d is %d", n, length, k, v[k])
					}
				}
				sum := make([]int64, length)
				if err := mpi.Allreduce(c, v, sum, mpi.Sum); err != nil {
					return err
				}
				for k := range v {
					v[k] += int64(c.Rank())
				}
				if err := mpi.Allreduce(c, mpi.InPlace[int64](), v, mpi.Max); err != nil {
					return err
				}
				for k := range v {
					if want := int64(n * k * (i + 1)); sum[k] != want || v[k] != int64(k*(i+1)+n-1) {
						return fmt.Errorf("%d ranks, Allreduce of %d: element %d: sum %d, max %d", n, length, k, sum[k], v[k])
					}
				}
			}
			return nil
		})
	}
}

func TestCollectives_doNotMeetMessages(t *testing.T) {
	simulate(t, sim.Config{}, 3, func(p *mpi.Proc) error {
		c := p.World()
		in := []int{-1}
		r, err := mpi.Irecv(c, in, mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return err
		}
		v := []int{c.Rank() + 1}
		if err := mpi.Allreduce(c, nil, v, mpi.Sum); err != nil {
			return err
		}
		if v[0] != 6 {
			return fmt.Errorf("sum is %d", v[0])
		}
		if err := mpi.Send(c, []int{c.Rank()}, (c.Rank()+1)%3, 0); err != nil {
			return err
		}
		st, err := r.Wait()
		if err := wantStatus(st, err, (c.Rank()+2)%3, 0, 8); err != nil {
			return err
		}
		return nil
	})
}

func TestBcast_lengthsDisagree(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		err := mpi.Bcast(c, make([]byte, 10+c.Rank()), 0)
		if c.Rank() == 0 {
			return err
		}
		return wantClass(err, mpi.ErrTruncate)
	})
}

func TestOps(t *testing.T) {
	in, inout := []int8{0, 1, -3, 5}, []int8{2, 0, -4, 3}
	for _, c := range []struct {
		name string
		op   mpi.Op[int8]
		want []int8
	}{
		{"Sum", mpi.Sum[int8], []int8{2, 1, -7, 8}},
		{"Prod", mpi.Prod[int8], []int8{0, 0, 12, 15}},
		{"Max", mpi.Max[int8], []int8{2, 1, -3, 5}},
		{"Min", mpi.Min[int8], []int8{0, 0, -4, 3}},
		{"BAnd", mpi.BAnd[int8], []int8{0, 0, -4, 1}},
		{"BOr", mpi.BOr[int8], []int8{2, 1, -3, 7}},
		{"BXor", mpi.BXor[int8], []int8{2, 1, 1, 6}},
		{"LAnd", mpi.LAnd[int8], []int8{0, 0, 1, 1}},
		{"LOr", mpi.LOr[int8], []int8{1, 1, 1, 1}},
		{"LXor", mpi.LXor[int8], []int8{1, 1, 0, 0}},
	} {
		got := slices.Clone(inout)
		c.op(in, got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCollectives_againAndAgain calls with the same buffers what is not the same:
// the schedule of the call before must not be taken for it.
func TestCollectives_againAndAgain(t *testing.T) {
	simulate(t, sim.Config{}, 3, func(p *mpi.Proc) error {
		c := p.World()
		v, in := make([]uint64, 4), make([]uint64, 4)
		for round := range 3 {
			for root := range 3 {
				v[0] = uint64(10*round + c.Rank())
				if err := mpi.Bcast(c, v, root); err != nil || v[0] != uint64(10*round+root) {
					return fmt.Errorf("Bcast from %d: %d, %w", root, v[0], err)
				}
			}
			for i, want := range []uint64{3, 2, 0} {
				v[0] = uint64(c.Rank())
				op := []mpi.Op[uint64]{mpi.Sum[uint64], mpi.Max[uint64], mpi.Prod[uint64]}[i]
				if err := mpi.Allreduce(c, nil, v, op); err != nil || v[0] != want {
					return fmt.Errorf("Allreduce %d: %d, want %d, %w", i, v[0], want, err)
				}
			}
			copy(in, maps(c.Rank(), 4))
			err := mpi.Allreduce(c, in, v, mpi.Sum)
			err2 := mpi.Allreduce(c, in, v, affine, mpi.NonCommutative)
			if err := errors.Join(err, err2, expect("in order", v, composed(4, 0, 3)), c.Barrier()); err != nil {
				return err
			}
			short := mpi.Allreduce(c, in[:2], v[:2], mpi.BXor)
			other := mpi.Allreduce(c, nil, v[:1], mpi.Min)
			if err := errors.Join(short, other, mpi.Scan(c, nil, v[:1], mpi.Max), c.Barrier()); err != nil {
				return err
			}
		}
		return nil
	})
}

// A call with the memory of the one before is that one only if all else is alike, too: the operation,
// the elements, the root, and what is in place.
func TestCollectives_memoryOfTheCallBefore(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		me := uint64(c.Rank())
		in, out := make([]uint64, 4), make([]uint64, 4)
		for round := range uint64(3) {
			ops := []mpi.Op[uint64]{mpi.Sum[uint64], mpi.Max[uint64], mpi.Sum[uint64]}
			for i, want := range []uint64{2*round + 3, round + 2, 2*round + 3} {
				in[0] = round + me + 1
				if err := mpi.Allreduce(c, in, out, ops[i]); err != nil || out[0] != want {
					return fmt.Errorf("Allreduce %d: %d, want %d, %w", i, out[0], want, err)
				}
			}
			small, sums := mem.ScalarsOf[uint8](mem.BytesOf(in)), mem.ScalarsOf[uint8](mem.BytesOf(out))
			small[0], small[1] = 200, 0
			if err := mpi.Allreduce(c, small, sums, mpi.Sum); err != nil || sums[0] != 144 || sums[1] != 0 {
				return fmt.Errorf("Allreduce of bytes: %v, %w", sums, err)
			}
			for root := range 2 {
				in[3] = me + 5
				if err := mpi.Bcast(c, in, root); err != nil || in[3] != uint64(root)+5 {
					return fmt.Errorf("Bcast from %d: %d, %w", root, in[3], err)
				}
			}
			in[0], in[1], out[2*me] = me, 10+me, 20+me
			err := mpi.Allgather(c, in[:2], out)
			if err != nil || out[0] != 0 || out[1] != 10 || out[2] != 1 || out[3] != 11 {
				return fmt.Errorf("Allgather: %v, %w", out, err)
			}
			out[2*me] = 20 + me
			if err = mpi.Allgather(c, nil, out); err != nil || out[0] != 20 || out[2] != 21 {
				return fmt.Errorf("Allgather in place: %v, %w", out, err)
			}
			halves, other := mem.BytesOf(in)[:6], mem.BytesOf(out)[:6]
			if err = mpi.Alltoall(c, halves, other); err != nil {
				return err
			}
			err = mpi.Alltoall(c, mem.ScalarsOf[uint16](halves), mem.ScalarsOf[uint16](other))
			if mpi.ClassOf(err) != mpi.ErrCount {
				return fmt.Errorf("three elements for two ranks: %w", err)
			}
		}
		return nil
	})
}

// Long collectives have the memory of the arena that is kept for them, whose pages are there, and give it back.
func TestCollectives_memoryOfTheArena(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		v := make([]int64, 48<<10)
		calls, inside := 0, 0
		sum := func(in, inout []int64) {
			if calls++; mpi.InArena(p, mem.BytesOf(in)) || mpi.InArena(p, mem.BytesOf(inout)) {
				inside++
			}
			mpi.Sum(in, inout)
		}
		for i, blocking := range []bool{true, false, true, false} { // each would keep the memory from the next one
			var err error
			if calls, inside = 0, 0; blocking {
				err = mpi.Allreduce(p.World(), mpi.InPlace[int64](), v, sum)
			} else {
				var r mpi.Request
				if r, err = mpi.Iallreduce(p.World(), mpi.InPlace[int64](), v, sum); err == nil {
					_, err = r.Wait()
				}
			}
			if err != nil || calls == 0 || inside < calls {
				return fmt.Errorf("call %d: %d of %d operations had memory of the arena: %v", i, inside, calls, err)
			}
		}
		return nil
	})
}
