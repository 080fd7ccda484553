package coll

// bcastTable is from runs of 3 and 4 ranks over UDP on loopback: 4 ranks took
// 9 us down the tree and 30 by scatter and allgather for 2 KiB, 470 and 640 us
// for 512 KiB, 2.4 and 2.3 ms for 2 MiB. The chain is for lengths that hide its
// start.
var bcastTable = table{
	name: "bcast",
	flat: []rule{
		{upTo: 1 << 20, use: binomial},
		{upTo: 16 << 20, ranks: 4, use: scatter},
		{ranks: 3, use: chain},
		{use: binomial},
	},
	hosts: []rule{
		{upTo: 8 << 10, use: hosts},
		{upTo: 64 << 10, ranks: 17, use: hosts},
		{use: rails},
	},
	has:     []algorithm{binomial, chain, scatter},
	onHosts: []algorithm{hosts, rails},
}

// Bcast copies buf of member root into buf of all others. All have the same
// length and root.
func Bcast(s *Schedule, t Team, buf []byte, root int) {
	if t.Size == 1 || len(buf) == 0 {
		return
	}
	switch t.choose(ofBcast, len(buf)) {
	case hosts:
		BcastHosts(s, t, buf, root)
	case rails:
		BcastRails(s, t, buf, root)
	case scatter:
		BcastScatterAllgather(s, t, buf, root)
	case chain:
		BcastChain(s, t, buf, root)
	default:
		BcastBinomial(s, t, buf, root)
	}
}
