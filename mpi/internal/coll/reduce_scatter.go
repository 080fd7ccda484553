package coll

// reduceScatterTable is by the bytes of the whole vector. 4 ranks over UDP on
// loopback took 27 us by halving and 33 pairwise for 16 KiB, 87 and 43 us for
// 64 KiB, 2.4 and 0.55 ms for 1 MiB. With more ranks pairwise has more messages. Two
// on each of two hosts took, on 2 cores at MTU 1500, 68 us by hosts, 88 by halving and 163 pairwise for
// 64 KiB, 443, 753 and 966 us for 1 MiB. 4 ranks on a host with 2 cores took 14 us by slots and 34 by messages for 64 KiB.
var reduceScatterTable = table{
	name: "reduce_scatter",
	flat: []rule{
		{upTo: 32 << 10, use: halving},
		{upTo: 256 << 10, ranks: 16, use: halving},
		{use: pairwise},
	},
	hosts:   []rule{{upTo: 32 << 10, use: halving}, {use: hosts}},
	near:    []rule{{upTo: 32 << 10, use: slots}, {upTo: 64 << 10, ranks: 3, use: slots}}, // up to 32 KiB messages reduce in the same order
	has:     []algorithm{halving, pairwise, slots},
	onHosts: []algorithm{hosts},
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
		use = t.upTo(len(in), longestOf(t.Size)).choose(ofReduceScatter, len(in))
	}
	if use == hosts && t.Hosts.least != t.Hosts.most {
		use = pairwise
	}
	switch use {
	case hosts:
		ReduceScatterHosts(s, t, blocks, out)
	case slots:
		ReduceScatterSlots(s, t, in, blocks, out)
	case halving:
		ReduceScatterHalving(s, t, in, blocks, out)
	default:
		ReduceScatterPairwise(s, t, blocks, out)
	}
}
