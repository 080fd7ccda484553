package coll

type reduceAlgorithm uint8

const (
	reduceBinomial reduceAlgorithm = iota
	reduceRabenseifner
)

// reduceTable is from runs of 4 ranks over UDP on loopback: up the tree they took
// 95 us, by Rabenseifner's 110 for 64 KiB, 227 and 260 us for 256 KiB, 1.16 and
// 0.83 ms for 1 MiB.
var reduceTable = []rule[reduceAlgorithm]{
	{upTo: 512 << 10, use: reduceBinomial},
	{ranks: 4, use: reduceRabenseifner},
	{use: reduceBinomial},
}

// Reduce reduces the vectors in of all members and gives the result to member
// root in out, which others do not need. in and out may be the same.
func Reduce(s *Schedule, t Team, in, out []byte, root int) {
	switch {
	case len(in) == 0:
	case t.Size == 1:
		s.Copy(out, in)
	case t.Hosts != nil && s.commutes && len(in) <= 1<<20:
		ReduceHosts(s, t, in, out, root)
	case s.count(in) >= t.Size && choose(reduceTable, len(in), t.Size) == reduceRabenseifner:
		ReduceRabenseifner(s, t, in, out, root)
	default:
		ReduceBinomial(s, t, in, out, root)
	}
}
