package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		for _, o := range []options{{keys: 0}, {keys: 1, seed: 2}, {keys: 5000, seed: 3}, {keys: 5000, seed: 4, equal: 3}} {
			var out strings.Builder
			err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), o, &out) })
			if err != nil || !strings.Contains(out.String(), "in order") {
				t.Errorf("%d ranks, %+v: %v, %q", n, o, err, out.String())
			}
		}
	}
}

func TestVerify_noticesWrongAnswers(t *testing.T) {
	for name, spoil := range map[string]func(rank int, keys []uint64) []uint64{
		"out of order":  func(rank int, keys []uint64) []uint64 { slices.Reverse(keys); return keys },
		"ranks swapped": func(rank int, keys []uint64) []uint64 { return []uint64{uint64(5 - rank)} },
		"lost":          func(rank int, keys []uint64) []uint64 { return keys[rank:] },
		"changed":       func(rank int, keys []uint64) []uint64 { keys[0] += uint64(rank); return keys },
	} {
		err := mpi.Run(2, func(p *mpi.Proc) error {
			keys := []uint64{uint64(10 * p.World().Rank()), uint64(10*p.World().Rank() + 5)}
			before := sumOf(keys)
			if verify(p.World(), before, spoil(p.World().Rank(), keys)) == nil {
				t.Errorf("%s: not noticed", name)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
