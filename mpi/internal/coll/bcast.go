package coll

// bcastTable: 4 ranks on a host each took 36 us down the tree and 46 by scatter and
// allgather for 16 KiB over AF_XDP, 0.34 and 0.41 ms for 256 KiB, 1.8 and 1.5 ms for
// 1 MiB. The chain is for lengths that hide its start. Two on each of two hosts took
// 12.9 us by hosts and 12.8 by multiLeader for 4 KiB, 28 and 24 us for 16 KiB, 0.59 and
// 0.36 ms for 1 MiB; with slots on 2 cores 18 and 30 us for 16 KiB, 0.43 and 0.65 ms for 1 MiB. Ranks of one host
// with 2 cores, with a barrier: 2 took 7 us by slots and 12 by a message for 128 KiB, and 12 and 17, but for themselves 10.5 and 8.4, for
// 256 KiB; 4 took 36 us by slots, 62 by linear and 75 down the tree for 256 KiB; 8 took 56, 122 and 167 for 128 KiB, 150 by slots and by linear
// and 220 down the tree for 256 KiB, for themselves 98, 23 and 59.
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
		{use: multiLeader},
	},
	near: []rule{ // all of it has room in a ring
		{upTo: 128 << 10, most: 2, use: slots},
		{upTo: 256 << 10, ranks: 3, most: 4, use: slots},
		{upTo: 128 << 10, ranks: 5, most: 8, use: slots},
		{upTo: 64 << 10, ranks: 9, use: slots},
	},
	oneHost:   []rule{{upTo: 16 << 10, use: binomial}, {ranks: 3, most: 8, use: linear}},
	nearHosts: []rule{{upTo: 1 << 20, use: hosts}},
	has:       []algorithm{binomial, chain, linear, scatter, slots},
	onHosts:   []algorithm{hosts, multiLeader},
}

// Bcast copies buf of member root into buf of all others. All have the same
// length and root.
func Bcast(s *Schedule, t Team, buf []byte, root int) {
	if t.Size == 1 || len(buf) == 0 {
		return
	}
	note(s, t, root)
	switch t.choose(ofBcast, len(buf)) {
	case hosts:
		BcastHosts(s, t, buf, root)
	case multiLeader:
		BcastMultiLeader(s, t, buf, root)
	case slots:
		BcastSlots(s, t, buf, root)
	case scatter:
		BcastScatterAllgather(s, t, buf, root)
	case linear:
		BcastLinear(s, t, buf, root)
	case chain:
		BcastChain(s, t, buf, root)
	default:
		if near := t.grouped(s, root); near.Ranks != nil {
			t, root = near, 0
		}
		BcastBinomial(s, t, buf, root)
	}
}
