package coll

// Scan makes v the reduction of the vectors in of this member and those before
// it. Exclusive, it leaves out this one: member 0 needs no v. in is v, or apart
// from it.
func Scan(s *Schedule, t Team, in, v []byte, exclusive bool) {
	switch {
	case len(in) == 0:
	case t.near(s.elem) && len(in) <= scanNearMost:
		ScanSlots(s, t, in, v, exclusive)
	case len(in) <= scanShort && t.Size > scanFew:
		ScanDoubling(s, t, in, v, exclusive)
	default:
		ScanChain(s, t, in, v, exclusive)
	}
}

const (
	// scanNearMost is up to how many bytes each member of a host reduces those of all below.
	scanNearMost = 64 << 10

	// Rounds take less time than a chain of more members than scanFew, for vectors up to scanShort.
	scanShort = 256 << 10
	scanFew   = 8
)
