package coll

// gatherTable is by the bytes of a block. Up the tree a block is copied log2 p
// times, so longer ones go straight to the root; it is worth it where the root
// spends more time on messages than on bytes.
var gatherTable = table{
	name: "gather",
	flat: []rule{
		{upTo: 2 << 10, ranks: 5, use: binomial},
		{use: linear},
	},
	near: []rule{{use: slots}},
	has:  []algorithm{binomial, linear, slots},
}

// Gather puts the blocks mine of all members, which are equally long, one after
// the other into all of member root; all is nil elsewhere. mine may be in its
// place there already.
func Gather(s *Schedule, t Team, mine, all []byte, root int) {
	switch use := t.within(len(mine)).choose(ofGather, len(mine)); {
	case len(mine) == 0:
	case use == slots:
		GatherSlots(s, t, mine, all, root)
	case use == binomial:
		GatherBinomial(s, t, mine, all, root)
	case t.Me == root:
		GatherLinear(s, t, mine, s.Even(all, t.Size), root)
	default:
		GatherLinear(s, t, mine, nil, root)
	}
}

// Gatherv is Gather of blocks of any length: blocks are those of all members at the root, and nil elsewhere.
func Gatherv(s *Schedule, t Team, mine []byte, blocks [][]byte, root int) {
	n, pair := t.pair(mine, blocks, root)
	switch {
	case pair:
		gatherPair(s, t, mine, blocks, n, root)
	case t.Size > 2 && t.slotted():
		gatherParts(s, t, mine, blocks, root)
	default:
		GatherLinear(s, t, mine, blocks, root)
	}
}

// pair returns how long the block is that one of two members gives to the other one in Gatherv and Scatterv,
// as both know, and whether it goes through a slot.
func (t Team) pair(mine []byte, blocks [][]byte, root int) (n int, ok bool) {
	if t.Size != 2 {
		return 0, false
	}
	if n = len(mine); t.Me == root {
		n = len(blocks[1-root])
	}
	return n, t.near(n)
}
