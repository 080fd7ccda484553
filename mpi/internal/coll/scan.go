package coll

// Scan makes v the reduction of the vectors in of this member and those before
// it. Exclusive, it leaves out this one: member 0 needs no v. in is v, or apart
// from it.
func Scan(s *Schedule, t Team, in, v []byte, exclusive bool) {
	noteOrder(s, t, 0, inOrder)
	switch {
	case len(in) == 0:
	case t.near(s.elem) && len(in) <= scanNear(t.Size):
		ScanSlots(s, t, in, v, exclusive)
	case len(in) > scanHostsLeast && len(in) <= scanHostsMost && t.Hosts != nil && t.Hosts.inOrder && t.nearAll(s.elem):
		ScanHosts(s, t, in, v, exclusive)
	case len(in) <= scanShort && t.Size > scanFew:
		ScanDoubling(s, t, in, v, exclusive)
	default:
		ScanChain(s, t, in, v, exclusive)
	}
}

// scanNear returns up to how many bytes the members of a host reduce what all below have, of so many
// members: 4 ranks of 2 cores took 86 us by slots for 256 KiB and 135 by the chain, 2 took 9.7 and 9.6 for 128 KiB, 21 and 19 for 256 KiB.
func scanNear(members int) int {
	if members == 2 {
		return 128 << 10
	}
	return 1 << 20 / members
}

// Vectors longer than scanHostsLeast, and up to scanHostsMost, go from host to host where these have several ranks: two
// on each of two hosts and 2 cores took 95 us by the chain and 57 by hosts for 64 KiB, 226 and 205 for 256 KiB, 35 and
// 36 for 16 KiB, 540 and 700 for 1 MiB.
const (
	scanHostsLeast = 16 << 10
	scanHostsMost  = 256 << 10
)

// Rounds take less time than a chain of more members than scanFew, for vectors up to scanShort.
const (
	scanShort = 256 << 10
	scanFew   = 8
)
