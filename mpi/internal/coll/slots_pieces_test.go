package coll

import (
	"errors"
	"testing"
)

// Blocks that are longer than a slot go through it piece by piece, also those that lie in their place already, and those of
// two members that are not equally long.
func TestSlots_pieces(t *testing.T) {
	for _, n := range []int{2, 3, 4, 6} {
		for _, each := range []int{slotOf(n) + 8, 2*slotOf(n) + 72, 5*slotOf(n) - 4} {
			share, all := slotted(), n*each
			out, swapped, scattered, gathered, in := bufs(n, all), bufs(n, all), bufs(n, each), bufs(n, all), bufs(n, all)
			err := world(n, func(s *Schedule, t Team) {
				t = share(t)
				me, root := t.Me, n/2
				own := gathered[me][me*each : (me+1)*each]
				AlltoallSlots(s, t, out[me], swapped[me])
				ScatterSlots(s, t, at(me == root, out[me]), scattered[me], root)
				GatherSlots(s, t, own, t.evenAt(s, gathered[me], root), each, root)
				Allgather(s, t, in[me][me*each:(me+1)*each], in[me])
				Barrier(s, t)
			}, func(me int) error {
				fill(out[me], me)
				fill(gathered[me], 10+me)
				fill(in[me], 20+me)
				return nil
			}, func(me int) (err error) {
				block := func(seed, i int) []byte { return filled(all, seed)[i*each : (i+1)*each] }
				for i := range n {
					part := func(b []byte) []byte { return b[i*each : (i+1)*each] }
					err = errors.Join(err, same(part(swapped[me]), block(i, me)), same(part(in[me]), block(20+i, i)))
					if me == n/2 {
						err = errors.Join(err, same(part(gathered[me]), block(10+i, i)))
					}
				}
				return errors.Join(err, same(scattered[me], block(n/2, me)))
			})
			if err != nil {
				t.Errorf("%d members, %d bytes: %v", n, each, err)
			}
		}
	}
}

func TestSlots_piecesOfPairs(t *testing.T) {
	const most = slotMost
	for _, lengths := range [][2]int{{0, 8}, {8, 0}, {most, most + 8}, {3*most - 8, 16}, {24, 4 * most}, {4 * most, 3*most + 8}} {
		share, all := slotted(), lengths[0]+lengths[1]
		in, own, sums, shifts := bufs(2, all), bufs(2, all), bufs(2, all), bufs(2, lineMost+1)
		out, swapped, scattered, gathered := bufs(2, all), bufs(2, all), bufs(2, all), bufs(2, all)
		blocks := func(b []byte) [][]byte { return [][]byte{b[:lengths[0]], b[lengths[0]:]} }
		err := world(2, func(s *Schedule, t Team) {
			t = share(t)
			me, n := t.Me, lengths[t.Me]
			s.Reduction(xor{}, 4, true)
			ReduceScatter(s, t, in[me], blocks(in[me]), sums[me][:n])
			ReduceScatter(s, t, own[me], blocks(own[me]), own[me][:n]) // in place
			BcastSlots(s, t, shifts[me], 0)                            // what follows begins somewhere in the ring
			var to, from [2]Block
			to[1-me], from[1-me] = Flat(out[me][:n]), Flat(swapped[me][:lengths[1-me]])
			swapPair(s, t, to[:], from[:])
			var root [][]byte
			if me == 1 {
				root = blocks(in[me])
			}
			Scatterv(s, t, root, scattered[me][:n], 1)
			if root = nil; me == 0 {
				root = blocks(gathered[me])
			}
			Gatherv(s, t, out[me][:n], root, 0)
			Barrier(s, t)
		}, func(me int) error {
			for _, b := range [][]byte{in[me], own[me], out[me]} {
				fill(b, me)
			}
			return nil
		}, func(me int) error {
			n, other := lengths[me], lengths[1-me]
			sum := blocks(reduction{xor{}, 4, true}.fold(all, 0, 2))[me]
			want := append(filled(all, 0)[:lengths[0]:lengths[0]], filled(all, 1)[:lengths[1]]...)
			if me != 0 {
				want = make([]byte, all)
			}
			return errors.Join(same(sums[me][:n], sum), same(own[me][:n], sum), same(swapped[me][:other], filled(all, 1-me)[:other]),
				same(scattered[me][:n], blocks(filled(all, 1))[me]), same(gathered[me], want))
		})
		if err != nil {
			t.Errorf("%v bytes: %v", lengths, err)
		}
	}
}

// Long vectors are reduced through slots in the order in which AllreduceLinear does it.
func TestSlots_reduceInTheOrderOfLinear(t *testing.T) {
	for n := 3; n <= 8; n++ {
		for _, length := range []int{linearLeast, 2*slotOf(n) - 5, 2*slotOf(n) + 4096} {
			share := slotted()
			in, near, far, place := bufs(n, length), bufs(n, length), bufs(n, length), bufs(n, length)
			err := world(n, func(s *Schedule, t Team) {
				t = share(t)
				s.Reduction(rounding{}, 1, true)
				AllreduceSlots(s, t, in[t.Me], near[t.Me])
				AllreduceLinear(s, t, in[t.Me], far[t.Me])
				AllreduceSlots(s, t, place[t.Me], place[t.Me])
			}, func(me int) error {
				fill(in[me], me)
				fill(place[me], me)
				return nil
			}, func(me int) error {
				return errors.Join(same(near[me], far[me]), same(place[me], far[me]))
			})
			if err != nil {
				t.Errorf("%d members, %d bytes: %v", n, length, err)
			}
		}
	}
}

func bufs(n, size int) (all [][]byte) {
	for range n {
		all = append(all, words(size))
	}
	return all
}

// at returns b if there is one, as others than the root give nothing.
func at(there bool, b []byte) []byte {
	if !there {
		return nil
	}
	return b
}
