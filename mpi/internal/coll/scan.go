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
	case len(in) <= scanShort && t.Size > scanFew:
		ScanDoubling(s, t, in, v, exclusive)
	default:
		ScanChain(s, t, in, v, exclusive)
	}
}

// scanNear returns up to how many bytes the members of a host reduce what all below have, of so many
// members: 4 ranks of 2 cores took 86 us by slots for 256 KiB and 135 by the chain.
func scanNear(members int) int {
	if members == 2 {
		return pairMost
	}
	return 1 << 20 / members
}

// Rounds take less time than a chain of more members than scanFew, for vectors up to scanShort.
const (
	scanShort = 256 << 10
	scanFew   = 8
)
