package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		for _, o := range []options{{queens: 1}, {queens: 3}, {queens: 8}, {queens: 9, static: true}} {
			var out strings.Builder
			err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), o, &out) })
			if err != nil || !strings.Contains(out.String(), fmt.Sprintf("fit in %d ways", solutions[o.queens])) {
				t.Errorf("%d ranks, %+v: %v, %q", n, o, err, out.String())
			}
		}
	}
}

// A task that was done twice, one that was left out, and a wrong sum are noticed.
func TestVerdict(t *testing.T) {
	o := options{queens: 6}
	for name, tasks := range map[string][]int{"twice": {3, 3}, "none": {}, "once": {3}} {
		err := mpi.Run(2, func(p *mpi.Proc) error {
			q, err := newQueue(p.World(), 1, false)
			if err != nil {
				return err
			}
			for range tasks {
				if p.World().Rank() == 1 {
					err = q.done(0, 4)
				}
			}
			if err != nil {
				return err
			}
			total, once, err := q.close()
			if err != nil {
				return err
			}
			if err := verdict(p.World(), o, total, once); (err == nil) != (name == "once") {
				t.Errorf("%s: %v", name, err)
			}
			if verdict(p.World(), o, 5, true) == nil {
				t.Error("a wrong sum was not noticed")
			}
			return nil
		})
		if err != nil {
			t.Error(name, err)
		}
	}
}

func TestBegin_known(t *testing.T) {
	for n := 1; n <= 10; n++ {
		total := int64(0)
		for task := range n * n {
			total += begin(n, task).solutions
		}
		if total != solutions[n] {
			t.Errorf("%d queens: %d solutions, want %d", n, total, solutions[n])
		}
	}
}

func TestOptions_check(t *testing.T) {
	for _, n := range []int{0, -1, 16} {
		if o := (options{queens: n}); o.check() == nil {
			t.Errorf("%d queens were accepted", n)
		}
	}
}
