package coll

// reduceTable is from runs of 4 ranks over UDP on loopback: up the tree they took
// 95 us, by Rabenseifner's 110 for 64 KiB, 227 and 260 us for 256 KiB, 1.16 and
// 0.83 ms for 1 MiB. 4 ranks of one host with 2 cores took 10 us by slots and 48 up the tree for 64 KiB, 27 and 94 for
// 256 KiB, 0.39, 0.30 and by Rabenseifner's 0.74 ms for 1 MiB; 2 took 7.1 us by slots and 11 by messages for 128 KiB,
// 25 and 20 for 256 KiB from huge pages; 8 took
// 0.74 ms up the tree and 1.25 by Rabenseifner's for 1 MiB.
var reduceTable = table{
	name: "reduce",
	flat: []rule{
		{upTo: 512 << 10, use: binomial},
		{ranks: 4, use: rabenseifner},
		{use: binomial},
	},
	hosts: []rule{
		{upTo: 1 << 20, use: hosts},
		{ranks: 4, use: rabenseifner},
		{use: binomial},
	},
	near:    []rule{{upTo: 128 << 10, use: slots}, {upTo: 256 << 10, ranks: 3, use: slots}},
	oneHost: []rule{{ranks: 3, most: 8, use: binomial}},
	has:     []algorithm{binomial, rabenseifner, slots},
	onHosts: []algorithm{hosts},
}

// Reduce reduces the vectors in of all members and gives the result to member
// root in out, which others do not need. in and out may be the same.
func Reduce(s *Schedule, t Team, in, out []byte, root int) {
	switch {
	case len(in) == 0:
		return
	case t.Size == 1:
		s.Copy(out, in)
		return
	case !s.commutes:
		t.Hosts = nil // ranks of a host need not follow one another
	}
	switch use := t.within(s.elem).choose(ofReduce, len(in)); {
	case use == hosts:
		ReduceHosts(s, t, in, out, root)
	case use == slots:
		ReduceSlots(s, t, in, out, root)
	case use == rabenseifner && s.count(in) >= t.Size:
		ReduceRabenseifner(s, t, in, out, root)
	default:
		if near := t.grouped(s, root); near.Ranks != nil && s.commutes {
			t, root = near, 0
		}
		ReduceBinomial(s, t, in, out, root)
	}
}
