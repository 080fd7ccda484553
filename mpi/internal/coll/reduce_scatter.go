package coll

// reduceScatterTable is by the bytes of the whole vector. 4 ranks over UDP on
// loopback took 27 us by halving and 33 pairwise for 16 KiB, 87 and 43 us for
// 64 KiB, 2.4 and 0.55 ms for 1 MiB. With more ranks pairwise has more messages.
var reduceScatterTable = table{
	name: "reduce_scatter",
	flat: []rule{
		{upTo: 32 << 10, use: halving},
		{upTo: 256 << 10, ranks: 16, use: halving},
		{use: pairwise},
	},
	near: []rule{{upTo: 32 << 10, use: slots}}, // up to where messages reduce in the same order
	has:  []algorithm{halving, pairwise, slots},
}

// ReduceScatter reduces the vectors in of all members, and gives part i of the
// result, which has the length of blocks[i], to member i in out. blocks are the
// parts of in.
func ReduceScatter(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
	if len(in) == 0 {
		return
	}
	use := pairwise // keeps the order
	if s.commutes {
		use = t.within(len(in)).choose(ofReduceScatter, len(in))
	}
	switch use {
	case slots:
		ReduceScatterSlots(s, t, in, blocks, out)
	case halving:
		ReduceScatterHalving(s, t, in, blocks, out)
	default:
		ReduceScatterPairwise(s, t, blocks, out)
	}
}
