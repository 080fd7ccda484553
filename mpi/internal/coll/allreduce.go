package coll

// allreduceTable: 2 ranks over AF_XDP took 37 us by doubling and 42 by linear for
// 32 KiB, 136 and 163 for 256 KiB, 667 and 591 for 1 MiB. 4 ranks on a host each took
// 45 us by Rabenseifner's and 58 by doubling and by linear for 16 KiB, 136, 227 and 121
// for 64 KiB, 645, 516 and 338 for 256 KiB. Two on each of two hosts took, on 2 cores and
// with slots, 33 us by hosts and 36 by multiLeader for 4 KiB, 106 and 247 for 64 KiB, 433 and
// 594 for 256 KiB, 1.9 and 1.2 ms for 1 MiB. Linear and multiLeader have p^2 messages, so many
// ranks use them for long vectors at most. 2 of one host with 2 cores took 14 us by slots and 27 by linear for 128 KiB, 34 and 41 for 512 KiB by linear and by slots from huge pages; 4 took
// 66 and 122 us for 128 KiB, 0.15 and 0.15 ms for 256 KiB; 6 took 124 and 115 us for 64 KiB, 235 and 345 for 128 KiB; 8 took 123 and 189 for 32 KiB.
var allreduceTable = table{
	name: "allreduce",
	flat: []rule{
		{upTo: 16 << 10, use: doubling},
		{upTo: 1 << 20, ranks: 9, use: rabenseifner},
		{ranks: 9, use: ring},
		{ranks: 3, use: linear},
		{upTo: 256 << 10, use: doubling},
		{use: linear},
	},
	near: []rule{
		{upTo: 16 << 10, use: slots},
		{upTo: 256 << 10, most: 2, use: slots},
		{upTo: 128 << 10, most: 4, use: slots},
		{upTo: 32 << 10, most: 8, use: slots},
		{upTo: 64 << 10, most: 6, use: linear},
		{upTo: 128 << 10, most: 6, use: slots},
	},
	oneHost: []rule{{upTo: 64 << 10, most: 2, use: doubling}, {most: 2, use: linear}},
	hosts: []rule{
		{upTo: 256 << 10, use: hosts},
		{use: multiLeader},
	},
	has:     []algorithm{doubling, rabenseifner, ring, linear, slots},
	onHosts: []algorithm{hosts, multiLeader},
}

// Allreduce makes v on all members the reduction of the vectors in of all of them,
// which have the same length. in is v, or apart from it.
//
// All get the same bits: every element is reduced in one order only, or in
// orders that commutativity makes equal.
func Allreduce(s *Schedule, t Team, in, v []byte) {
	if t.Size == 1 || len(v) == 0 {
		s.Copy(v, in)
		return
	}
	use := s.allreduceBy(t, v)
	switch use {
	case linear:
		AllreduceLinear(s, t, in, v)
		return
	case multiLeader:
		AllreduceMultiLeader(s, t, in, v)
		return
	case slots:
		AllreduceSlots(s, t, in, v)
		return
	}
	s.Copy(v, in)
	switch use {
	case hosts:
		AllreduceHosts(s, t, v)
	case rabenseifner:
		AllreduceRabenseifner(s, t, v)
	case ring:
		AllreduceRing(s, t, v)
	default:
		AllreduceDoubling(s, t, v)
	}
}

// allreduceBy returns the algorithm for v.
func (s *Schedule) allreduceBy(t Team, v []byte) algorithm {
	if !s.commutes {
		t.Hosts = nil // ranks of a host need not follow one another
	}
	use, few := t.within(s.elem).choose(ofAllreduce, len(v)), s.count(v) < t.Size
	switch {
	case use == multiLeader && (few || t.Hosts.least == 1):
		return hosts
	case use == slots && !s.commutes && !few && t.Size > 2 && len(v) >= linearLeast:
		return linear
	case use == hosts, use == multiLeader, use == slots:
	case few:
		return doubling // the others need an element per rank
	case use == ring && !s.commutes:
		return rabenseifner // keeps the order
	}
	return use
}
