package main

import (
	"math"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		for _, o := range []options{{blocks: 1, size: 1, fill: 1}, {blocks: 3, size: 4}, {blocks: 6, size: 5, fill: 0.4, seed: 3}, {blocks: 2, size: 40, fill: 1}} {
			var out strings.Builder
			err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), o, &out) })
			if err != nil || !strings.Contains(out.String(), "are right") {
				t.Errorf("%d ranks, %+v: %v, %q", n, o, err, out.String())
			}
		}
	}
}

// A product with one wrong number is refused.
func TestVerify(t *testing.T) {
	o := options{blocks: 3, size: 4, fill: 1}
	err := mpi.Run(2, func(p *mpi.Proc) error {
		a, err := newMatrix(p.World(), o, 1)
		if err != nil {
			return err
		}
		b, err := newMatrix(p.World(), o, 2)
		if err != nil {
			return err
		}
		c, err := newProduct(p.World(), a, b)
		if err != nil {
			return err
		}
		m, err := newMultiplier(p.World(), a, b, c)
		if err != nil {
			return err
		}
		if err := p.World().Barrier(); err != nil {
			return err
		}
		if err := m.run(); err != nil {
			return err
		}
		if err := p.World().Barrier(); err != nil {
			return err
		}
		if err := verify(a, b, c); err != nil {
			t.Error("right and refused:", err)
		}
		if p.World().Rank() == 1 {
			c.mine[5]++
		}
		if verify(a, b, c) == nil {
			t.Error("a wrong number was not noticed")
		}
		return m.close()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOptions_check(t *testing.T) {
	for _, o := range []options{{}, {blocks: 1}, {blocks: 1, size: 1, fill: 2}, {blocks: 1, size: 1, fill: math.NaN()}, {blocks: 1, size: 2000}} {
		if o.check() == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
