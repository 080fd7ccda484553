package coll

import (
	"slices"
	"testing"
)

func TestReduceScatter_everyOrder(t *testing.T) {
	type algorithm func(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte)
	pairwise := func(s *Schedule, t Team, _ []byte, blocks [][]byte, out []byte) {
		ReduceScatterPairwise(s, t, blocks, out)
	}
	onHosts := func(place func(int) int) algorithm {
		return func(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
			if t = hosted(t, place); t.Hosts != nil && t.Hosts.least == t.Hosts.most && s.commutes {
				ReduceScatterHosts(s, t, blocks, out)
			} else {
				pairwise(s, t, in, blocks, out)
			}
		}
	}
	share := slotted()
	variants[algorithm]{
		"choice": ReduceScatter, "pairwise": pairwise,
		"slots": func(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
			ReduceScatter(s, share(t), in, blocks, out)
		},
		"halving": func(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
			if s.commutes {
				ReduceScatterHalving(s, t, in, blocks, out)
			} else {
				pairwise(s, t, in, blocks, out)
			}
		},
		"hosts of 2": onHosts(inPairs), "hosts of 3": onHosts(placements[0]), "every third": onHosts(placements[1]),
		"hosts": func(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
			ReduceScatter(s, hosted(t, placements[0]), in, blocks, out)
		},
	}.each(t, func(t *testing.T, reduceScatter algorithm) {
		for _, n := range sizes {
			for _, each := range []int{0, 1, 5, 1000, 4000} {
				for _, red := range reductions {
					lengths, total := make([]int, n), 0
					for r := range lengths {
						lengths[r] = each * ((r + 1) % 3) * red.elem
						total += lengths[r]
					}
					want := cut(red.fold(total, 0, n), lengths)
					in, out := make([][]byte, n), make([][]byte, n)
					for r := range in {
						in[r] = words(total)
						if out[r] = words(lengths[r]); r%2 == 0 {
							out[r] = in[r][:lengths[r]] // in place
						}
					}
					err := world(n,
						func(s *Schedule, t Team) {
							s.Reduction(red.op, red.elem, red.commutes)
							reduceScatter(s, t, in[t.Me], cut(in[t.Me], lengths), out[t.Me])
						},
						func(r int) error { fill(in[r], r); return nil },
						func(r int) error { return same(out[r], want[r]) })
					if err != nil {
						t.Fatalf("%d of %T on %d ranks: %v", each, red.op, n, err)
					}
				}
			}
		}
	})
}

// Ranks of a host reduce in slots what has room in a ring, in one piece, and by messages what has not.
func TestReduceScatter_slots(t *testing.T) {
	for _, c := range []struct {
		n, bytes int
		want     bool
	}{{2, 256 << 10, true}, {2, 256<<10 + 8, false}, {4, 64 << 10, true}, {4, 64<<10 + 16, false}, {8, 32 << 10, true}, {8, 32<<10 + 32, false}} {
		var s Schedule
		s.Reduction(xor{}, 4, true)
		in := words(c.bytes)
		ReduceScatter(&s, slotted()(Team{Size: c.n}), in, s.Even(in, c.n), words(c.bytes/c.n))
		if got := slices.ContainsFunc(s.steps, func(st step) bool { return st.what == slotGive }); got != c.want {
			t.Errorf("%d bytes on %d ranks go through slots: %v, want %v", c.bytes, c.n, got, c.want)
		}
	}
}
