package coll

// allgatherTable is by the bytes in all. 4 ranks on a host each took 90 us by few
// rounds, 80 round the ring and 72 by linear for 64 KiB over AF_XDP, and 1.07, 1.02
// and 0.62 ms for 1 MiB; all on one host 59, 121 and 22 us for 256 KiB. Where the
// ring is long it pays later. Two on each of two hosts took 18 us by few rounds and
// 20 by multiLeader for 16 KiB, 93 and 51 us for 64 KiB; on 2 cores, with slots, 42 us by few
// rounds and 33 by hosts for 4 KiB, 172 by multiLeader and 91 by hosts for 128 KiB, 228 and 266 for 256 KiB.
var allgatherTable = table{
	name: "allgather",
	flat: []rule{
		{upTo: 32 << 10, use: doubling},
		{upTo: 256 << 10, ranks: 16, use: doubling},
		{ranks: 9, use: ring},
		{use: linear},
	},
	hosts: []rule{
		{upTo: 32 << 10, use: doubling},
		{use: multiLeader},
	},
	near:      []rule{{use: slots}},
	nearHosts: []rule{{upTo: 128 << 10, use: hosts}},
	has:       []algorithm{bruck, doubling, ring, linear, slots},
	onHosts:   []algorithm{hosts, multiLeader},
}

// Allgather gives the equal blocks of all members to all, one after the other
// in all. mine may be in its place already.
func Allgather(s *Schedule, t Team, mine, all []byte) {
	if len(mine) == 0 {
		return
	}
	use := t.choose(ofAllgather, len(all))
	if use == hosts {
		AllgatherHosts(s, t, mine, all)
		return
	}
	t = t.within(t.piece(len(mine)))
	switch use = t.choose(ofAllgather, len(all)); {
	case use == doubling && t.Size == powerBelow(t.Size):
		AllgatherDoubling(s, t, mine, all)
	default:
		use.allgather(s, t, mine, s.Even(all, t.Size))
	}
}

// Allgatherv is Allgather with blocks of any length, which all members know,
// anywhere in memory.
func Allgatherv(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	total, longest := 0, 0
	for _, b := range blocks {
		total += len(b)
		longest = max(longest, len(b))
	}
	if t = t.within(longest); total > 0 {
		t.choose(ofAllgather, total).allgather(s, t, mine, blocks)
	}
}

func (use algorithm) allgather(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	switch use {
	case multiLeader:
		AllgatherMultiLeader(s, t, mine, blocks)
	case slots:
		AllgatherSlots(s, t, mine, blocks)
	case ring:
		AllgatherRing(s, t, mine, blocks)
	case linear:
		AllgatherLinear(s, t, mine, blocks)
	default:
		AllgatherBruck(s, t, mine, blocks)
	}
}
