package coll

// reduceScatterTable is by the bytes of the whole vector. 4 ranks over UDP on
// loopback took 27 us by halving and 33 pairwise for 16 KiB, 87 and 43 us for
// 64 KiB, 2.4 and 0.55 ms for 1 MiB. With more ranks pairwise has more messages. Two
// on each of two hosts took, on 2 cores at MTU 1500, 68 us by hosts, 88 by halving and 163 pairwise for
// 64 KiB, 443, 753 and 966 us for 1 MiB. 4 ranks on a host with 2 cores took 14 us by slots and 34 by messages for 64 KiB, 8 took
// 0.38 ms by halving and 0.65 pairwise for 256 KiB, 0.70 and 0.99 for 1 MiB.
var reduceScatterTable = table{
	name: "reduce_scatter",
	flat: []rule{
		{upTo: 32 << 10, use: halving},
		{upTo: 256 << 10, ranks: 16, use: halving},
		{use: pairwise},
	},
	hosts:   []rule{{upTo: 32 << 10, use: halving}, {use: hosts}},
	near:    []rule{{upTo: 64 << 10, use: slots}, {upTo: 256 << 10, most: 2, use: slots}},
	oneHost: []rule{{upTo: 128 << 10, ranks: 3, most: 4, use: halving}, {upTo: 1 << 20, ranks: 5, most: 8, use: halving}},
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
	whole := len(in) // that a slot has to have room for
	if t.Size == 2 {
		whole = s.elem
	}
	use := pairwise // keeps the order
	if s.commutes {
		use = t.upTo(whole, longestOf(t.Size)).choose(ofReduceScatter, len(in))
	}
	if use == hosts && t.Hosts.least != t.Hosts.most {
		use = pairwise
	}
	switch {
	case use == hosts:
		ReduceScatterHosts(s, t, blocks, out)
	case use == slots && t.Size == 2:
		reduceScatterPair(s, t, blocks, out)
	case use == slots:
		ReduceScatterSlots(s, t, in, blocks, out)
	case use == halving:
		ReduceScatterHalving(s, t, in, blocks, out)
	default:
		ReduceScatterPairwise(s, t, blocks, out)
	}
}
