package coll

// Scatter is Gather the other way round: member i gets the i-th of the equal
// blocks that all of member root consists of. mine may be in its place there.
func Scatter(s *Schedule, t Team, all, mine []byte, root int) {
	note(s, t, root)
	switch use := t.inPieces((t.Size-1)*len(mine)).choose(ofGather, len(mine)); {
	case len(mine) == 0:
	case len(mine) <= scatterHostsMost && t.Hosts != nil && t.Hosts.inOrder && t.nearAll(t.Hosts.most*len(mine)):
		ScatterHosts(s, t, all, mine, root)
	case use == slots && t.Size == 2:
		scatterPair(s, t, t.evenAt(s, all, root), mine, root)
	case use == slots:
		ScatterSlots(s, t, all, mine, root)
	case use == binomial:
		ScatterBinomial(s, t, all, mine, root)
	default:
		ScatterLinear(s, t, t.evenAt(s, all, root), mine, root)
	}
}

// scatterHostsMost is how many bytes a block has that goes to a host with those of its other ranks.
const scatterHostsMost = 4 << 10

// Scatterv is Gatherv the other way round.
func Scatterv(s *Schedule, t Team, blocks [][]byte, mine []byte, root int) {
	note(s, t, root)
	switch {
	case t.pair(mine, blocks, root):
		scatterPair(s, t, blocks, mine, root)
	case t.Size > 2 && t.slotted():
		scatterParts(s, t, blocks, mine, root)
	default:
		ScatterLinear(s, t, blocks, mine, root)
	}
}
