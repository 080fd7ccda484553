package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// The collectives are tested against what one loop would compute. Element i of
// the vector of rank r is value(r, i); every rank knows all of them.

func value[T mpi.Scalar](r, i int) T {
	var v T
	for range (r*7+i*3)%11 + 1 { // 1 to 11, in any type
		v++
	}
	return v
}

func vector[T mpi.Scalar](r, n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = value[T](r, i)
	}
	return v
}

func expect[T mpi.Scalar](what string, got, want []T) error {
	if slices.Equal(got, want) {
		return nil
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
	return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
}

// wait waits for a request that was just started.
func wait(r mpi.Request, err error) error {
	if err != nil {
		return err
	}
	_, err = r.Wait()
	return err
}

// twice starts a persistent operation twice.
func twice(o *mpi.Persistent, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(wait(o.Start()), wait(o.Start()), o.Free())
}

// form is one of the three ways to call a collective.
type form int

const (
	blocking form = iota
	nonblocking
	persistent
)

// call calls a collective in one of its forms.
func (f form) call(now func() error, later func() (mpi.Request, error), often func() (*mpi.Persistent, error)) error {
	switch f {
	case nonblocking:
		return wait(later())
	case persistent:
		return twice(often())
	}
	return now()
}

// oracle tests the collectives of one type, length and form.
type oracle[T mpi.Scalar] struct {
	c    *mpi.Comm
	n    int // elements
	form form
}

func (o oracle[T]) all() error {
	for _, test := range []func() error{o.bcast, o.gather, o.allgather, o.alltoall, o.reduce, o.reduceScatter, o.scan} {
		if err := test(); err != nil {
			return fmt.Errorf("rank %d of %d, %d elements of %T, form %d: %w", o.c.Rank(), o.c.Size(), o.n, *new(T), o.form, err)
		}
	}
	return nil
}

// roots are those to test with: all of them where that is no great matter.
func (o oracle[T]) roots() []int {
	p := o.c.Size()
	if o.n > 8 || p > 8 {
		return []int{p / 2}
	}
	roots := make([]int, p)
	for i := range roots {
		roots[i] = i
	}
	return roots
}

func (o oracle[T]) bcast() error {
	c := o.c
	err := o.form.call(c.Barrier, c.Ibarrier, c.BarrierInit)
	if err != nil {
		return err
	}
	for _, root := range o.roots() {
		v := make([]T, o.n)
		if c.Rank() == root {
			v = vector[T](root, o.n)
		}
		err := o.form.call(
			func() error { return mpi.Bcast(c, v, root) },
			func() (mpi.Request, error) { return mpi.Ibcast(c, v, root) },
			func() (*mpi.Persistent, error) { return mpi.BcastInit(c, v, root) })
		if err = errors.Join(err, expect("Bcast", v, vector[T](root, o.n))); err != nil {
			return err
		}
	}
	return nil
}

// concat is the vectors of all ranks, of counts(r) elements.
func (o oracle[T]) concat(count func(r int) int) []T {
	var all []T
	for r := range o.c.Size() {
		all = append(all, vector[T](r, count(r))...)
	}
	return all
}

// counts are different lengths, and places with gaps, the last rank first.
func (o oracle[T]) counts() (counts, displs []int, total int) {
	p := o.c.Size()
	counts, displs = make([]int, p), make([]int, p)
	for r := p - 1; r >= 0; r-- {
		counts[r], displs[r] = o.n*(r%3), total
		total += counts[r] + 1
	}
	return counts, displs, total
}

// spread is what a v form makes of the vectors of all ranks.
func (o oracle[T]) spread(counts, displs []int, total int) []T {
	all := make([]T, total)
	for r, n := range counts {
		copy(all[displs[r]:], vector[T](r, n))
	}
	return all
}

func (o oracle[T]) gather() error {
	c, me := o.c, o.c.Rank()
	whole := o.concat(func(int) int { return o.n })
	counts, displs, total := o.counts()
	for _, root := range o.roots() {
		mine, all := vector[T](me, o.n), []T(nil)
		if me == root {
			all = make([]T, len(whole))
			if root%2 == 1 { // in place
				copy(all[me*o.n:], mine)
				mine = nil
			}
		}
		err := o.form.call(
			func() error { return mpi.Gather(c, mine, all, root) },
			func() (mpi.Request, error) { return mpi.Igather(c, mine, all, root) },
			func() (*mpi.Persistent, error) { return mpi.GatherInit(c, mine, all, root) })
		back := make([]T, o.n)
		err = errors.Join(err, o.form.call(
			func() error { return mpi.Scatter(c, all, back, root) },
			func() (mpi.Request, error) { return mpi.Iscatter(c, all, back, root) },
			func() (*mpi.Persistent, error) { return mpi.ScatterInit(c, all, back, root) }))
		if me == root {
			err = errors.Join(err, expect("Gather", all, whole))
			all = make([]T, total)
		}
		mine = vector[T](me, counts[me])
		err = errors.Join(err, expect("Scatter", back, vector[T](me, o.n)), o.form.call(
			func() error { return mpi.Gatherv(c, mine, all, counts, displs, root) },
			func() (mpi.Request, error) { return mpi.Igatherv(c, mine, all, counts, displs, root) },
			func() (*mpi.Persistent, error) { return mpi.GathervInit(c, mine, all, counts, displs, root) }))
		back = make([]T, counts[me])
		err = errors.Join(err, o.form.call(
			func() error { return mpi.Scatterv(c, all, counts, displs, back, root) },
			func() (mpi.Request, error) { return mpi.Iscatterv(c, all, counts, displs, back, root) },
			func() (*mpi.Persistent, error) { return mpi.ScattervInit(c, all, counts, displs, back, root) }))
		if me == root {
			err = errors.Join(err, expect("Gatherv", all, o.spread(counts, displs, total)))
		}
		if err = errors.Join(err, expect("Scatterv", back, mine)); err != nil {
			return err
		}
	}
	return nil
}

func (o oracle[T]) allgather() error {
	c, me := o.c, o.c.Rank()
	whole := o.concat(func(int) int { return o.n })
	counts, displs, total := o.counts()
	for _, inPlace := range []bool{false, true} {
		all, mine := make([]T, len(whole)), vector[T](me, o.n)
		allv, minev := make([]T, total), vector[T](me, counts[me])
		if inPlace {
			copy(all[me*o.n:], mine)
			copy(allv[displs[me]:], minev)
			mine, minev = nil, mpi.InPlace[T]()
		}
		err := errors.Join(o.form.call(
			func() error { return mpi.Allgather(c, mine, all) },
			func() (mpi.Request, error) { return mpi.Iallgather(c, mine, all) },
			func() (*mpi.Persistent, error) { return mpi.AllgatherInit(c, mine, all) },
		), o.form.call(
			func() error { return mpi.Allgatherv(c, minev, allv, counts, displs) },
			func() (mpi.Request, error) { return mpi.Iallgatherv(c, minev, allv, counts, displs) },
			func() (*mpi.Persistent, error) { return mpi.AllgathervInit(c, minev, allv, counts, displs) },
		), expect("Allgather", all, whole), expect("Allgatherv", allv, o.spread(counts, displs, total)))
		if err != nil {
			return err
		}
	}
	return nil
}

// block is what rank r gives rank to.
func (o oracle[T]) block(r, to, n int) []T { return vector[T](3*r+5*to, n) }

func (o oracle[T]) alltoall() error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	for _, inPlace := range []bool{false, true} {
		if inPlace && o.form == persistent {
			continue // twice is as never
		}
		var out, in, want []T
		var outs, ins, wants [][]T
		outCounts, inCounts := make([]int, p), make([]int, p)
		for r := range p {
			out, want = append(out, o.block(me, r, o.n)...), append(want, o.block(r, me, o.n)...)
			n := o.n * ((r + me) % 3)
			outs, wants = append(outs, o.block(me, r, n)), append(wants, o.block(r, me, n))
			ins = append(ins, make([]T, n))
			outCounts[r], inCounts[r] = n, n
		}
		in = make([]T, len(want))
		outv, wantv := slices.Concat(outs...), slices.Concat(wants...)
		inv := make([]T, len(wantv))
		if inPlace {
			in, inv, ins = out, outv, outs
			out, outv, outs, outCounts = nil, nil, nil, nil
		}
		err := errors.Join(o.form.call(
			func() error { return mpi.Alltoall(c, out, in) },
			func() (mpi.Request, error) { return mpi.Ialltoall(c, out, in) },
			func() (*mpi.Persistent, error) { return mpi.AlltoallInit(c, out, in) },
		), o.form.call(
			func() error { return mpi.Alltoallv(c, outv, outCounts, nil, inv, inCounts, nil) },
			func() (mpi.Request, error) { return mpi.Ialltoallv(c, outv, outCounts, nil, inv, inCounts, nil) },
			func() (*mpi.Persistent, error) {
				return mpi.AlltoallvInit(c, outv, outCounts, nil, inv, inCounts, nil)
			},
		), o.form.call(
			func() error { return mpi.Alltoallw(c, outs, ins) },
			func() (mpi.Request, error) { return mpi.Ialltoallw(c, outs, ins) },
			func() (*mpi.Persistent, error) { return mpi.AlltoallwInit(c, outs, ins) },
		), expect("Alltoall", in, want), expect("Alltoallv", inv, wantv), expect("Alltoallw", slices.Concat(ins...), wantv))
		if err != nil {
			return err
		}
	}
	return nil
}

// folded is the sum of the vectors of ranks from..to-1.
func (o oracle[T]) folded(n, from, to int) []T {
	sum := make([]T, n)
	for r := from; r < to; r++ {
		mpi.Sum(vector[T](r, n), sum)
	}
	return sum
}

func (o oracle[T]) reduce() error {
	c, me := o.c, o.c.Rank()
	want := o.folded(o.n, 0, c.Size())
	for _, root := range o.roots() {
		mine, got := vector[T](me, o.n), []T(nil)
		if me == root {
			got = make([]T, o.n)
			if root%2 == 1 && o.form != persistent { // in place
				mine, got = nil, mine
			}
		}
		err := o.form.call(
			func() error { return mpi.Reduce(c, mine, got, mpi.Sum, root) },
			func() (mpi.Request, error) { return mpi.Ireduce(c, mine, got, mpi.Sum, root) },
			func() (*mpi.Persistent, error) { return mpi.ReduceInit(c, mine, got, mpi.Sum, root) })
		if me == root {
			err = errors.Join(err, expect("Reduce", got, want))
		}
		if err != nil {
			return err
		}
	}
	mine, got := vector[T](me, o.n), make([]T, o.n)
	if o.form != persistent && o.n%2 == 1 {
		mine, got = nil, mine
	}
	return errors.Join(o.form.call(
		func() error { return mpi.Allreduce(c, mine, got, mpi.Sum) },
		func() (mpi.Request, error) { return mpi.Iallreduce(c, mine, got, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.AllreduceInit(c, mine, got, mpi.Sum) },
	), expect("Allreduce", got, want))
}

func (o oracle[T]) reduceScatter() error {
	c, me, p := o.c, o.c.Rank(), o.c.Size()
	counts, total := make([]int, p), 0
	begin := 0
	for r := range counts {
		if r == me {
			begin = total
		}
		counts[r] = o.n * ((r + 1) % 3) / p
		total += counts[r]
	}
	each := o.n / p
	for _, inPlace := range []bool{false, true} {
		if inPlace && o.form == persistent {
			continue
		}
		mine, got := vector[T](me, total), make([]T, counts[me])
		block, gotBlock := vector[T](me, each*p), make([]T, each)
		if inPlace {
			mine, got, block, gotBlock = nil, mine, nil, block
		}
		err := errors.Join(o.form.call(
			func() error { return mpi.ReduceScatter(c, mine, got, counts, mpi.Sum) },
			func() (mpi.Request, error) { return mpi.IreduceScatter(c, mine, got, counts, mpi.Sum) },
			func() (*mpi.Persistent, error) { return mpi.ReduceScatterInit(c, mine, got, counts, mpi.Sum) },
		), o.form.call(
			func() error { return mpi.ReduceScatterBlock(c, block, gotBlock, mpi.Sum) },
			func() (mpi.Request, error) { return mpi.IreduceScatterBlock(c, block, gotBlock, mpi.Sum) },
			func() (*mpi.Persistent, error) { return mpi.ReduceScatterBlockInit(c, block, gotBlock, mpi.Sum) },
		),
			expect("ReduceScatter", got[:counts[me]], o.folded(total, 0, p)[begin:begin+counts[me]]),
			expect("ReduceScatterBlock", gotBlock[:each], o.folded(each*p, 0, p)[me*each:(me+1)*each]))
		if err != nil {
			return err
		}
	}
	return nil
}

func (o oracle[T]) scan() error {
	c, me := o.c, o.c.Rank()
	mine, got, before := vector[T](me, o.n), make([]T, o.n), make([]T, o.n)
	err := errors.Join(o.form.call(
		func() error { return mpi.Scan(c, mine, got, mpi.Sum) },
		func() (mpi.Request, error) { return mpi.Iscan(c, mine, got, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.ScanInit(c, mine, got, mpi.Sum) },
	), o.form.call(
		func() error { return mpi.Exscan(c, mine, before, mpi.Sum) },
		func() (mpi.Request, error) { return mpi.Iexscan(c, mine, before, mpi.Sum) },
		func() (*mpi.Persistent, error) { return mpi.ExscanInit(c, mine, before, mpi.Sum) },
	), expect("Scan", got, o.folded(o.n, 0, me+1)), expect("Exscan", before, o.folded(o.n, 0, me)))
	if o.form == persistent {
		return err
	}
	got, before = vector[T](me, o.n), vector[T](me, o.n)
	want := o.folded(o.n, 0, me)
	if me == 0 {
		want = vector[T](0, o.n)
	}
	return errors.Join(err, mpi.Scan(c, nil, got, mpi.Sum), mpi.Exscan(c, nil, before, mpi.Sum),
		expect("Scan in place", got, o.folded(o.n, 0, me+1)), expect("Exscan in place", before, want))
}

func TestCollectives_likeTheOracle(t *testing.T) {
	for p := 1; p <= 13; p++ {
		if slow && p%4 != 0 {
			continue
		}
		err := mpi.Run(p, func(proc *mpi.Proc) error {
			c := proc.World()
			for _, f := range []form{blocking, nonblocking, persistent} {
				for _, n := range []int{0, 1, 3, 8, 1000} {
					if err := (oracle[int32]{c, n, f}).all(); err != nil {
						return err
					}
				}
				if err := (oracle[complex128]{c, 3, f}).all(); err != nil {
					return err
				}
				if err := (oracle[int8]{c, 17, f}).all(); err != nil {
					return err
				}
			}
			if p > 5 {
				return nil
			}
			return (oracle[float64]{c, 70_000, form(p % 3)}).all()
		})
		if err != nil {
			t.Fatalf("%d ranks: %v", p, err)
		}
	}
}
