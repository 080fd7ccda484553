package main

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 4, 6} {
		for _, o := range []options{{size: 1, panel: 3}, {size: 10, panel: 64}, {size: 67, panel: 16, seed: 9}} {
			var out strings.Builder
			err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), o, &out) })
			if err != nil || !strings.Contains(out.String(), "is right") {
				t.Errorf("%d ranks, %+v: %v, %q", n, o, err, out.String())
			}
		}
	}
}

// A product with one wrong number is refused.
func TestVerify(t *testing.T) {
	err := mpi.Run(4, func(p *mpi.Proc) error {
		g, err := newGrid(p.World(), 20)
		if err != nil {
			return err
		}
		a, b, c := g.matrix(), g.matrix(), g.matrix()
		g.fill(a, 1)
		g.fill(b, 2)
		if err := g.multiply(c, a, b, 7); err != nil {
			return err
		}
		if g.comm.Rank() == 3 {
			c[5]++
		}
		if g.verify(c, a, b) == nil {
			t.Error("a wrong number was not noticed")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
