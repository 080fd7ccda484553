package coll

import "github.com/xwarp/xwarp/internal/base/mem"

// ReduceScatterPairwise goes round in p - 1 rounds: each rank sends to the one i
// above it the part that this one needs, and reduces what comes from the one i
// below.
//
// Why: for long vectors, any number of ranks, and operations that do not
// commute: parts come from the ranks below, downwards, and then from those
// above, downwards, so that two results that grow towards lower ranks keep the
// order.
// Cost: (p - 1) a + (p-1)/p n (b + g).
func ReduceScatterPairwise(s *Schedule, t Team, blocks [][]byte, out []byte) {
	acc, other := out, []byte(nil)
	if mem.AddressOf(blocks[0]) == mem.AddressOf(out) { // in place: others need what is there
		acc = s.Temp(len(out))
	}
	if !s.commutes || t.Size == 1 {
		pairwiseInOrder(s, t, blocks, acc)
	}
	for i := 1; i < t.Size && s.commutes; i++ {
		up, down := t.off(t.Me+i), t.off(t.Me-i)
		if i == 1 { // nothing is there yet
			s.swap(t, up, blocks[up], down, acc)
			s.combine(acc, blocks[t.Me], true)
			continue
		}
		if other == nil {
			other = s.Temp(len(out))
		}
		s.swap(t, up, blocks[up], down, other)
		s.combine(acc, other, true)
	}
	s.Copy(out, acc)
}

// pairwiseInOrder is ReduceScatterPairwise of what does not commute. acc is not one of blocks.
func pairwiseInOrder(s *Schedule, t Team, blocks [][]byte, acc []byte) {
	me := t.Me
	other, above := s.Temp(len(acc)), s.Temp(len(acc))
	s.Copy(acc, blocks[me])
	for i := 1; i < t.Size; i++ {
		up, down := t.off(me+i), t.off(me-i)
		in := other
		if down == t.Size-1 {
			in = above // the first one from above me
		}
		s.swap(t, up, blocks[up], down, in)
		switch {
		case down < me:
			s.combine(acc, other, true)
		case down < t.Size-1:
			s.combine(above, other, true)
		}
	}
	if me < t.Size-1 {
		s.combine(acc, above, false)
	}
}
