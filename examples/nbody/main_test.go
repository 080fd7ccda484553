package main

import (
	"io"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		for _, bodies := range []int{1, 4, 101} {
			var out strings.Builder
			err := mpi.Run(n, func(p *mpi.Proc) error {
				return run(p.World(), options{bodies: bodies, steps: 5, seed: 7}, &out)
			})
			if err != nil || !strings.Contains(out.String(), "5 steps") {
				t.Errorf("%d ranks, %d bodies: %v, %q", n, bodies, err, out.String())
			}
		}
	}
}

// An answer with one body out of place is refused.
func TestJudge(t *testing.T) {
	o := options{bodies: 10, seed: 3}
	all := scatterBodies(o.bodies, o.seed)
	moved := append([]float64(nil), all.pos...)
	if why := judge(io.Discard, o, all, moved); why != "" {
		t.Errorf("bodies that did not move: %s", why)
	}
	moved[4] += 1e-6
	if judge(io.Discard, o, all, moved) == "" {
		t.Error("a body out of place was not noticed")
	}
}
