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
	switch use := t.inPieces(len(mine)).choose(ofGather, len(mine)); {
	case len(mine) == 0:
	case use == slots:
		GatherSlots(s, t, mine, t.evenAt(s, all, root), len(mine), root)
	case use == binomial:
		GatherBinomial(s, t, mine, all, root)
	default:
		GatherLinear(s, t, mine, t.evenAt(s, all, root), root)
	}
}

// evenAt returns the equal blocks that all of member root consists of, and nil on others.
func (t Team) evenAt(s *Schedule, all []byte, root int) [][]byte {
	if t.Me != root {
		return nil
	}
	return s.Even(all, t.Size)
}

// Gatherv is Gather of blocks of any length: blocks are those of all members at the root, and nil elsewhere.
func Gatherv(s *Schedule, t Team, mine []byte, blocks [][]byte, root int) {
	switch {
	case t.pair(mine, blocks, root):
		GatherSlots(s, t, mine, blocks, t.given(mine, blocks, root), root)
	case t.Size > 2 && t.slotted():
		gatherParts(s, t, mine, blocks, root)
	default:
		GatherLinear(s, t, mine, blocks, root)
	}
}

// pair reports whether these are two members of whose blocks that of the other one than the root goes through slots in Gatherv and Scatterv: both
// know how long it is.
func (t Team) pair(mine []byte, blocks [][]byte, root int) bool {
	return t.Size == 2 && t.inPieces(t.given(mine, blocks, root)).slotted()
}

// given returns how long the block is that one of two members gives to the other one.
func (t Team) given(mine []byte, blocks [][]byte, root int) int {
	if t.Me == root {
		return len(blocks[1-root])
	}
	return len(mine)
}
