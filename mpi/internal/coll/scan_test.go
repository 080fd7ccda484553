package coll

import (
	"errors"
	"testing"
)

func TestScan_everyOrder(t *testing.T) {
	type algorithm func(s *Schedule, t Team, in, v []byte, exclusive bool)
	share := slotted()
	variants[algorithm]{
		"choice": Scan, "doubling": ScanDoubling, "chain": ScanChain,
		"slots": func(s *Schedule, t Team, in, v []byte, exclusive bool) { Scan(s, share(t), in, v, exclusive) },
	}.each(t, func(t *testing.T, scan algorithm) {
		for _, n := range sizes {
			for _, count := range []int{0, 1, 7, 5000, 140_000} {
				if count > 1000 && n > 4 || count > 10_000 && n > 3 {
					continue
				}
				for _, red := range reductions {
					for i := range 4 {
						exclusive, apart := i%2 == 1, i > 1
						if err := testScan(scan, red, n, count, exclusive, apart); err != nil {
							t.Fatalf("%d of %T on %d ranks, exclusive %v, apart %v: %v", count, red.op, n, exclusive, apart, err)
						}
					}
				}
			}
		}
	})
}

func testScan(scan func(s *Schedule, t Team, in, v []byte, exclusive bool), red reduction, n, count int, exclusive, apart bool) error {
	length := count * red.elem
	in, v := make([][]byte, n), make([][]byte, n)
	for r := range v {
		v[r] = words(length)
		if in[r] = v[r]; apart {
			in[r] = words(length)
		}
	}
	return world(n,
		func(s *Schedule, t Team) {
			s.Reduction(red.op, red.elem, red.commutes)
			scan(s, t, in[t.Me], v[t.Me], exclusive)
		},
		func(r int) error { fill(v[r], 100); fill(in[r], r); return nil },
		func(r int) error {
			want := red.fold(length, 0, r+1)
			switch {
			case exclusive && r > 0:
				want = red.fold(length, 0, r)
			case exclusive && apart: // it is left alone
				want = filled(length, 100)
			}
			if apart {
				return errors.Join(same(v[r], want), same(in[r], filled(length, r)))
			}
			return same(v[r], want)
		})
}
