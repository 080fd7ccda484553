package coll

// alltoallTable is by the bytes of a block. Bruck's copies and sends each block
// log2 p / 2 times to save messages. Pairwise keeps many ranks from sending to one
// at the same time; few need not wait for one another: 4 ranks on two hosts took
// 0.78 ms by linear and 1.25 pairwise for 512 KiB, 2.3 and 2.7 ms for 1 MiB, and 4
// on a host each 0.60 and 0.85 ms for 256 KiB. Two on each of two hosts took, on 2 cores and with
// slots, 60 us by linear and 30 by hosts for 8 bytes, 69 and 66 for 4 KiB, at MTU 1500 126 and 48, 150 and 213 for 16 KiB.
var alltoallTable = table{
	name: "alltoall",
	flat: []rule{
		{upTo: 256, ranks: 8, use: bruck},
		{upTo: 256 << 10, use: linear},
		{ranks: 9, use: pairwise},
		{upTo: 4 << 20, use: linear},
		{use: pairwise},
	},
	near:      []rule{{use: slots}},
	nearHosts: []rule{{upTo: 8 << 10, use: hosts}},
	has:       []algorithm{bruck, pairwise, linear, slots},
	onHosts:   []algorithm{hosts},
}

// Alltoall gives member j the j-th of the equal blocks of out, which becomes
// block t.Me of its in. They must not overlap.
func Alltoall(s *Schedule, t Team, out, in []byte) {
	if len(out) == 0 {
		return
	}
	if t.choose(ofAlltoall, len(out)/t.Size) == hosts {
		AlltoallHosts(s, t, out, in)
		return
	}
	shared := t
	if n := len(out) - len(out)/t.Size; t.Size <= piecesFew { // for others
		t = t.swaps(n)
	} else {
		t = t.within(n)
	}
	switch use := t.choose(ofAlltoall, len(out)/t.Size); use {
	case slots:
		AlltoallSlots(s, t, out, in)
	case bruck:
		AlltoallBruck(s, t, out, in)
	default:
		blocks, room := s.EvenParts(out, t.Size), s.EvenParts(in, t.Size)
		if t.Hosts != nil && use == linear && len(out)/t.Size <= shared.partMost() {
			AlltoallParts(s, shared, blocks, room)
			return
		}
		use.alltoall(s, t, blocks, room)
	}
}

// piecesFew is how many members have several pieces for one another: 4 took 36 us by slots and 63 by messages for blocks of 32 KiB, 6 took 98
// and 82 for 10 KiB, 8 took 220 and 160 for 16 KiB.
const piecesFew = 4

// Alltoallv is Alltoall with blocks of any length: member j must expect as much
// from this one as out[j] has.
func Alltoallv(s *Schedule, t Team, out, in []Block) {
	if t.Size == 2 && t.within(max(s.Len(out[1-t.Me]), s.Len(in[1-t.Me]))).slotted() { // both know how long what both give is
		swapPair(s, t, out, in)
		return
	}
	if t.partMost() > 0 {
		AlltoallParts(s, t, out, in)
		return
	}
	t.chooseParts(s, out, in).alltoall(s, t, out, in)
}

// chooseParts chooses how blocks of any length are sent: on the wire both ways are the same, so that ranks may choose differently.
func (t Team) chooseParts(s *Schedule, out, in []Block) algorithm {
	longest := 0
	for i := range out {
		longest = max(longest, s.Len(out[i]), s.Len(in[i]))
	}
	t.Slots = nil
	return t.choose(ofAlltoall, longest)
}

func (use algorithm) alltoall(s *Schedule, t Team, out, in []Block) {
	switch use {
	case pairwise:
		AlltoallPairwise(s, t, out, in)
	default:
		AlltoallLinear(s, t, out, in)
	}
}
