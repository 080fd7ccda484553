package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// onRanks runs body on n ranks, for several n.
func onRanks(t *testing.T, sizes []int, body func(p *mpi.Proc) error) {
	t.Helper()
	for _, n := range sizes {
		if err := mpi.Run(n, body); err != nil {
			t.Fatalf("%d ranks: %v", n, err)
		}
	}
}

// sumRanks adds up the ranks of a communicator in World, by messages of it.
func sumRanks(c *mpi.Comm) (int, error) {
	v := []int{c.Proc().World().Rank()}
	err := mpi.Allreduce(c, mpi.InPlace[int](), v, mpi.Sum)
	return v[0], err
}

// ring passes a token round, so that every pair of neighbours is used, and
// checks what the status says.
func ring(c *mpi.Comm) error {
	right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	in := []int{-1}
	st, err := mpi.Sendrecv(c, []int{c.Rank()}, right, 3, in, mpi.AnySource, 3)
	if err != nil {
		return err
	}
	if in[0] != left || st.Source != left {
		return fmt.Errorf("rank %d of %d got %d from %d, want %d", c.Rank(), c.Size(), in[0], st.Source, left)
	}
	return nil
}

func TestComm_split(t *testing.T) {
	onRanks(t, []int{1, 2, 5, 7}, func(p *mpi.Proc) error {
		w := p.World()
		color := w.Rank() % 3
		if w.Rank() == 4 {
			color = mpi.Undefined
		}
		c, err := w.Split(color, -w.Rank()) // the other way round
		if err != nil {
			return err
		}
		if color == mpi.Undefined {
			if c != nil {
				return errors.New("Undefined got a communicator")
			}
			return nil
		}
		var want []int
		for r := w.Size() - 1; r >= 0; r-- {
			if r%3 == color && r != 4 {
				want = append(want, r)
			}
		}
		sum := 0
		for _, r := range want {
			sum += r
		}
		if c.Size() != len(want) || want[c.Rank()] != w.Rank() {
			return fmt.Errorf("rank %d is %d of %d", w.Rank(), c.Rank(), c.Size())
		}
		if got, err := sumRanks(c); err != nil || got != sum {
			return fmt.Errorf("sum %d, want %d: %w", got, sum, err)
		}
		if err := ring(c); err != nil {
			return err
		}
		return c.Free()
	})
}

// A message of one communicator is not seen by receives of another.
func TestComm_dupKeepsApart(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w := p.World()
		d, err := w.Dup()
		if err != nil {
			return err
		}
		if w.Compare(d) != mpi.Congruent || w.Compare(w) != mpi.Ident {
			return errors.New("compares wrong")
		}
		if w.Rank() == 0 {
			if err := mpi.Send(w, []int{1}, 1, 0); err != nil {
				return err
			}
			return mpi.Send(d, []int{2}, 1, 0)
		}
		v := make([]int, 1)
		if _, err := mpi.Recv(d, v, mpi.AnySource, mpi.AnyTag); err != nil || v[0] != 2 {
			return fmt.Errorf("the duplicate got %d: %w", v[0], err)
		}
		if _, err := mpi.Recv(w, v, mpi.AnySource, mpi.AnyTag); err != nil || v[0] != 1 {
			return fmt.Errorf("World got %d: %w", v[0], err)
		}
		return nil
	})
}

func TestComm_createAndCreateGroup(t *testing.T) {
	onRanks(t, []int{5}, func(p *mpi.Proc) error {
		w := p.World()
		odd, err := w.Group().Incl(3, 1)
		if err != nil {
			return err
		}
		in := w.Rank()%2 == 1
		g := odd
		if !in {
			g = mpi.GroupEmpty()
		}
		c, err := w.Create(g)
		if err != nil || (c != nil) != in {
			return fmt.Errorf("Create: %v, %w", c, err)
		}
		if in {
			d, err := w.CreateGroup(odd, 9)
			if err != nil {
				return err
			}
			for _, x := range []*mpi.Comm{c, d} {
				if x.Size() != 2 || x.Rank() != map[int]int{3: 0, 1: 1}[w.Rank()] {
					return fmt.Errorf("rank %d is %d of %d", w.Rank(), x.Rank(), x.Size())
				}
				if got, err := sumRanks(x); err != nil || got != 4 {
					return fmt.Errorf("sum %d: %w", got, err)
				}
				if err := ring(x); err != nil {
					return err
				}
			}
		}
		return w.Barrier()
	})
}

func TestComm_intercommunicator(t *testing.T) {
	onRanks(t, []int{2, 3, 6}, func(p *mpi.Proc) error {
		w := p.World()
		side := w.Rank() % 2
		half, err := w.Split(side, 0)
		if err != nil {
			return err
		}
		inter, err := half.CreateInter(0, w, 1-side, 5)
		if err != nil {
			return err
		}
		dup, err := inter.Dup()
		if err != nil {
			return err
		}
		for _, x := range []*mpi.Comm{inter, dup} {
			if !x.Inter() || x.Size() != half.Size() || x.RemoteSize() != w.Size()-half.Size() || x.Rank() != half.Rank() {
				return fmt.Errorf("rank %d: %d of %d, %d on the other side", w.Rank(), x.Rank(), x.Size(), x.RemoteSize())
			}
			// Rank i of each side exchanges with rank i of the other, where there is one.
			if x.Rank() < x.RemoteSize() {
				in := []int{-1}
				st, err := mpi.Sendrecv(x, []int{w.Rank()}, x.Rank(), 0, in, mpi.AnySource, 0)
				if err != nil {
					return err
				}
				if want := 2*x.Rank() + 1 - side; in[0] != want || st.Source != x.Rank() {
					return fmt.Errorf("rank %d got %d from %d, want %d", w.Rank(), in[0], st.Source, want)
				}
			}
		}
		if err := errors.Join(inter.Barrier(), dup.Barrier()); err != nil {
			return err
		}
		all, err := dup.Merge(side == 0) // the odd ones first
		if err != nil {
			return err
		}
		want := half.Rank()
		if side == 0 {
			want += w.Size() - half.Size()
		}
		if all.Size() != w.Size() || all.Rank() != want {
			return fmt.Errorf("rank %d is %d of %d, want %d", w.Rank(), all.Rank(), all.Size(), want)
		}
		if err := ring(all); err != nil {
			return err
		}
		return errors.Join(inter.Free(), dup.Free(), all.Free(), half.Free())
	})
}

// Contexts of freed communicators are used again: more are made than there are.
func TestComm_freeGivesBack(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		for i := range 2100 {
			c, err := p.World().Dup()
			if err != nil {
				return fmt.Errorf("number %d: %w", i, err)
			}
			if err := c.Free(); err != nil {
				return err
			}
			if _, err := mpi.Recv(c, []int{0}, 0, 0); mpi.ClassOf(err) != mpi.ErrComm {
				return fmt.Errorf("after Free: %w", err)
			}
		}
		return nil
	})
}

func TestComm_allContextsTaken(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		for i := 1; ; i++ {
			if _, err := p.World().Dup(); err != nil {
				if i != 2046 || mpi.ClassOf(err) != mpi.ErrOther {
					return fmt.Errorf("number %d: %w", i, err)
				}
				return nil
			}
		}
	})
}

func TestComm_attributes(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		w := p.World()
		var gone []any
		kept := &mpi.Keyval{Copy: mpi.CopyAttr, Delete: func(_ *mpi.Comm, v any) error { gone = append(gone, v); return nil }}
		local := &mpi.Keyval{Delete: kept.Delete}
		err := errors.Join(w.SetAttr(kept, 1), w.SetAttr(local, 2), w.SetAttr(kept, 3))
		if err != nil {
			return err
		}
		d, err := w.Dup()
		if err != nil {
			return err
		}
		if v, ok := d.Attr(kept); !ok || v != 3 {
			return fmt.Errorf("the duplicate has %v", v)
		}
		if _, ok := d.Attr(local); ok {
			return errors.New("the duplicate has what is not copied")
		}
		if err := errors.Join(d.Free(), w.DeleteAttr(local)); err != nil {
			return err
		}
		if !slices.Equal(gone, []any{1, 3, 2}) {
			return fmt.Errorf("deleted %v", gone)
		}
		if err := w.DeleteAttr(local); mpi.ClassOf(err) != mpi.ErrKeyval {
			return fmt.Errorf("deleted twice: %w", err)
		}
		no := errors.New("no")
		refuses := &mpi.Keyval{Delete: func(*mpi.Comm, any) error { return no }}
		if d, err = w.Dup(); err != nil {
			return err
		}
		if err := d.SetAttr(refuses, 0); err != nil {
			return err
		}
		if err := d.DeleteAttr(refuses); mpi.ClassOf(err) != mpi.ErrOther {
			return fmt.Errorf("refused: %w", err)
		}
		if err := d.Free(); mpi.ClassOf(err) != mpi.ErrOther {
			return fmt.Errorf("refused to free it: %w", err)
		}
		no = nil // and the communicator is as before
		return errors.Join(d.Barrier(), d.Free(), w.SetAttr(kept, 7))
	})
}

func TestComm_errhandler(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		w := p.World()
		var seen error
		w.SetErrhandler(func(c *mpi.Comm, err error) {
			if c != w {
				t.Error("another communicator")
			}
			seen = err
		})
		err := mpi.Send(w, []int{1}, 99, 0)
		if seen == nil || seen != err || mpi.ClassOf(err) != mpi.ErrRank {
			return fmt.Errorf("handler has seen %v of %w", seen, err)
		}
		w.SetErrhandler(nil)
		return nil
	})
}

func TestComm_badArguments(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w := p.World()
		all := w.Group()
		first, err := all.Incl(0)
		if err != nil {
			return err
		}
		c, err := w.Create(first)
		if err != nil {
			return err
		}
		for what, got := range map[string]struct {
			err  error
			want mpi.ErrorClass
		}{
			"color":      {second(w.Split(-5, 0)), mpi.ErrArg},
			"kind":       {second(w.SplitType(77, 0)), mpi.ErrArg},
			"no group":   {second(w.Create(nil)), mpi.ErrGroup},
			"tag":        {second(w.CreateGroup(all, -1)), mpi.ErrTag},
			"leader":     {second(w.CreateInter(9, w, 0, 0)), mpi.ErrRank},
			"World":      {w.Free(), mpi.ErrComm},
			"merge":      {second(w.Merge(false)), mpi.ErrComm},
			"no rank":    {second(all.Incl(2)), mpi.ErrRank},
			"twice":      {second(all.Incl(1, 1)), mpi.ErrRank},
			"excl":       {second(all.Excl(-1)), mpi.ErrRank},
			"stride":     {second(all.RangeIncl(mpi.Range{First: 0, Last: 1})), mpi.ErrArg},
			"backwards":  {second(all.RangeIncl(mpi.Range{First: 0, Last: 1, Stride: -1})), mpi.ErrArg},
			"range":      {second(all.RangeExcl(mpi.Range{First: 0, Last: 9, Stride: 1})), mpi.ErrArg},
			"translate":  {second(all.TranslateRank(5, all)), mpi.ErrRank},
			"no key":     {w.SetAttr(nil, 1), mpi.ErrKeyval},
			"not member": {second(w.CreateGroup(mpi.GroupEmpty(), 0)), mpi.ErrGroup},
		} {
			if mpi.ClassOf(got.err) != got.want {
				return fmt.Errorf("%s: %w, want class %v", what, got.err, got.want)
			}
		}
		if c != nil {
			if err := second(c.Create(all)); mpi.ClassOf(err) != mpi.ErrGroup {
				return fmt.Errorf("a larger group: %w", err)
			}
		}
		return nil
	})
}

func second[T any](_ T, err error) error { return err }

func TestGroup_operations(t *testing.T) {
	onRanks(t, []int{6}, func(p *mpi.Proc) error {
		all := p.World().Group()
		incl := func(ranks ...int) *mpi.Group {
			g, err := all.Incl(ranks...)
			if err != nil {
				t.Error(err)
			}
			return g
		}
		a, b := incl(4, 2, 0), incl(5, 4, 3)
		evens, err := all.RangeIncl(mpi.Range{First: 4, Last: 0, Stride: -2})
		if err != nil {
			return err
		}
		odds, err := all.RangeExcl(mpi.Range{First: 0, Last: 4, Stride: 2})
		if err != nil {
			return err
		}
		for what, c := range map[string]struct {
			got, want *mpi.Group
			as        mpi.Comparison
		}{
			"union":        {a.Union(b), incl(4, 2, 0, 5, 3), mpi.Ident},
			"intersection": {a.Intersection(b), incl(4), mpi.Ident},
			"difference":   {a.Difference(b), incl(2, 0), mpi.Ident},
			"range":        {evens, a, mpi.Ident},
			"excl":         {odds, incl(1, 3, 5), mpi.Ident},
			"order":        {a, incl(0, 2, 4), mpi.Similar},
			"other":        {a, b, mpi.Unequal},
			"empty":        {a.Difference(a), mpi.GroupEmpty(), mpi.Ident},
		} {
			if got := c.got.Compare(c.want); got != c.as {
				return fmt.Errorf("%s: %v", what, got)
			}
		}
		if r, err := a.TranslateRank(0, b); err != nil || r != 1 {
			return fmt.Errorf("translates to %d: %w", r, err)
		}
		if r, err := a.TranslateRank(1, b); err != nil || r != mpi.Undefined {
			return fmt.Errorf("translates to %d: %w", r, err)
		}
		return nil
	})
}
