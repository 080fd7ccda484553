package coll

// allgatherTable is by the bytes in all. 4 ranks over UDP on loopback took 26 us by
// few rounds and 33 round the ring for 16 KiB, 70 and 41 us for 64 KiB, where
// blocks that were joined are no longer sent eagerly. Where the ring is long it
// pays later.
var allgatherTable = table{
	name: "allgather",
	flat: []rule{
		{upTo: 32 << 10, use: doubling},
		{upTo: 256 << 10, ranks: 16, use: doubling},
		{ranks: 9, use: ring},
		{use: spread},
	},
	hosts: []rule{
		{upTo: 32 << 10, use: doubling},
		{use: rails},
	},
	has:     []algorithm{bruck, doubling, ring, spread},
	onHosts: []algorithm{rails},
}

// Allgather gives the equal blocks of all members to all, one after the other
// in all. mine may be in its place already.
func Allgather(s *Schedule, t Team, mine, all []byte) {
	if len(mine) == 0 {
		return
	}
	switch use := t.choose(ofAllgather, len(all)); {
	case use == doubling && t.Size == powerBelow(t.Size):
		AllgatherDoubling(s, t, mine, all)
	default:
		use.allgather(s, t, mine, s.Even(all, t.Size))
	}
}

// Allgatherv is Allgather with blocks of any length, which all members know,
// anywhere in memory.
func Allgatherv(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	total := 0
	for _, b := range blocks {
		total += len(b)
	}
	if total > 0 {
		t.choose(ofAllgather, total).allgather(s, t, mine, blocks)
	}
}

func (use algorithm) allgather(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	switch use {
	case rails:
		AllgatherRails(s, t, mine, blocks)
	case ring:
		AllgatherRing(s, t, mine, blocks)
	case spread:
		AllgatherSpread(s, t, mine, blocks)
	default:
		AllgatherBruck(s, t, mine, blocks)
	}
}
