package coll

type allreduceAlgorithm uint8

const (
	allreduceDoubling allreduceAlgorithm = iota
	allreduceRabenseifner
	allreduceRing
)

// allreduceTable is from runs of 3 and 4 ranks over UDP on loopback. 4 ranks
// took 27, 37 and 50 us for 8 KiB, 138, 70 and 88 us for 32 KiB, 3.5, 2.5 and
// 2.5 ms for 2 MiB. With 3 ranks, of which Rabenseifner's lets one sit out, the
// ring took half the time of the others from 32 KiB on.
var allreduceTable = []rule[allreduceAlgorithm]{
	{upTo: 16 << 10, use: allreduceDoubling},
	{upTo: 1 << 20, ranks: 4, use: allreduceRabenseifner},
	{use: allreduceRing},
}

// Allreduce replaces v on all members by the reduction of all of them. All have
// the same length.
//
// All get the same bits: every element is reduced in one order only, or in
// orders that commutativity makes equal.
func Allreduce(s *Schedule, t Team, v []byte) {
	if t.Size == 1 || len(v) == 0 {
		return
	}
	if t.Hosts != nil && s.commutes && len(v) <= 1<<20 {
		AllreduceHosts(s, t, v)
		return
	}
	algorithm := choose(allreduceTable, len(v), t.Size)
	switch {
	case s.count(v) < t.Size:
		algorithm = allreduceDoubling // the others need an element per rank
	case algorithm == allreduceRing && !s.commutes:
		algorithm = allreduceRabenseifner // keeps the order
	}
	switch algorithm {
	case allreduceRabenseifner:
		AllreduceRabenseifner(s, t, v)
	case allreduceRing:
		AllreduceRing(s, t, v)
	default:
		AllreduceDoubling(s, t, v)
	}
}
