package coll

type reduceScatterAlgorithm uint8

const (
	reduceScatterHalving reduceScatterAlgorithm = iota
	reduceScatterPairwise
)

// reduceScatterTable is by the bytes of the whole vector. It follows MPICH's.
var reduceScatterTable = []rule[reduceScatterAlgorithm]{
	{upTo: 512 << 10, use: reduceScatterHalving},
	{use: reduceScatterPairwise},
}

// ReduceScatter reduces the vectors in of all members, and gives part i of the
// result, which has the length of blocks[i], to member i in out. blocks are the
// parts of in.
func ReduceScatter(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
	switch {
	case len(in) == 0:
	case s.commutes && choose(reduceScatterTable, len(in), t.Size) == reduceScatterHalving:
		ReduceScatterHalving(s, t, in, blocks, out)
	default:
		ReduceScatterPairwise(s, t, blocks, out)
	}
}
