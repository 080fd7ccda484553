package coll

import "github.com/xwarp/xwarp/internal/base/mem"

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
	t = t.swaps(len(mine))
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
	switch use := t.choose(ofAllgather, total); {
	case total == 0:
	case use == hosts && total == longest*len(blocks):
		allgatherEven(s, t, mine, blocks)
	default:
		t = t.swaps(longest)
		t.choose(ofAllgather, total).allgather(s, t, mine, blocks)
	}
}

// allgatherEven is AllgatherHosts of equal blocks anywhere in memory: where they lie is each rank's own matter.
func allgatherEven(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	if all := joined(blocks); all != nil {
		AllgatherHosts(s, t, mine, all)
		return
	}
	all := s.Temp(len(mine) * len(blocks))
	AllgatherHosts(s, t, mine, all)
	for i, b := range blocks {
		s.Copy(b, all[i*len(mine):(i+1)*len(mine)])
	}
}

// joined returns the memory that blocks are, one after the other, or nil.
func joined(blocks [][]byte) []byte {
	n := 0
	for _, b := range blocks {
		if mem.AddressOf(b) != mem.AddressOf(blocks[0])+uint64(n) {
			return nil
		}
		n += len(b)
	}
	if n > cap(blocks[0]) { // side by side by chance
		return nil
	}
	return blocks[0][:n]
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
