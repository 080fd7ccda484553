package coll

type bcastAlgorithm uint8

const (
	bcastBinomial bcastAlgorithm = iota
	bcastScatterAllgather
	bcastChain
)

// bcastTable is from runs of 3 and 4 ranks over UDP on loopback: 4 ranks took
// 9 us down the tree and 30 by scatter and allgather for 2 KiB, 470 and 640 us
// for 512 KiB, 2.4 and 2.3 ms for 2 MiB. The chain is for lengths that hide its
// start.
var bcastTable = []rule[bcastAlgorithm]{
	{upTo: 1 << 20, use: bcastBinomial},
	{upTo: 16 << 20, ranks: 4, use: bcastScatterAllgather},
	{ranks: 3, use: bcastChain},
	{use: bcastBinomial},
}

// Bcast copies buf of member root into buf of all others. All have the same
// length and root.
func Bcast(s *Schedule, t Team, buf []byte, root int) {
	if t.Size == 1 || len(buf) == 0 {
		return
	}
	if t.Hosts != nil && len(buf) <= 1<<20 {
		BcastHosts(s, t, buf, root)
		return
	}
	switch choose(bcastTable, len(buf), t.Size) {
	case bcastScatterAllgather:
		BcastScatterAllgather(s, t, buf, root)
	case bcastChain:
		BcastChain(s, t, buf, root)
	default:
		BcastBinomial(s, t, buf, root)
	}
}
