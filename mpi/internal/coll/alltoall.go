package coll

// alltoallTable is by the bytes of a block. Bruck's copies and sends each block
// log2 p / 2 times to save messages; with 4 ranks over UDP on loopback it took as
// long as spread up to 256 bytes. Pairwise keeps many ranks from sending to one at
// the same time, and took twice as long as spread for 64 KiB.
var alltoallTable = table{
	name: "alltoall",
	flat: []rule{
		{upTo: 256, ranks: 8, use: bruck},
		{upTo: spreadLongest, use: spread},
		{use: pairwise},
	},
	hosts: []rule{
		{upTo: 256, ranks: 8, use: bruck},
		{upTo: spreadLongest, use: spread},
		{use: hosts},
	},
	has:     []algorithm{bruck, pairwise, spread},
	onHosts: []algorithm{hosts},
}

// spreadLongest is the longest block in bytes of which many are sent at a time.
const spreadLongest = 256 << 10

// Alltoall gives member j the j-th of the equal blocks of out, which becomes
// block t.Me of its in. They must not overlap.
func Alltoall(s *Schedule, t Team, out, in []byte) {
	if len(out) == 0 {
		return
	}
	switch use := t.choose(ofAlltoall, len(out)/t.Size); use {
	case bruck:
		AlltoallBruck(s, t, out, in)
	default:
		use.alltoall(s, t, s.Even(out, t.Size), s.Even(in, t.Size))
	}
}

// Alltoallv is Alltoall with blocks of any length: member j must expect as much
// from this one as out[j] has.
func Alltoallv(s *Schedule, t Team, out, in [][]byte) {
	longest := 0
	for i := range out {
		longest = max(longest, len(out[i]), len(in[i]))
	}
	// Ranks may choose differently: on the wire both are the same.
	t.choose(ofAlltoall, longest).alltoall(s, t, out, in)
}

func (use algorithm) alltoall(s *Schedule, t Team, out, in [][]byte) {
	switch use {
	case hosts:
		AlltoallHosts(s, t, out, in)
	case pairwise:
		AlltoallPairwise(s, t, out, in)
	default:
		AlltoallSpread(s, t, out, in)
	}
}
