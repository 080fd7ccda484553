package coll

// Scan replaces v by the reduction of the vectors of this member and those
// before it. Exclusive, it leaves out this one: member 0 keeps what it has.
func Scan(s *Schedule, t Team, v []byte, exclusive bool) {
	switch {
	case len(v) == 0 || t.Size == 1:
	case t.near(len(v)):
		ScanSlots(s, t, v, exclusive)
	case len(v) <= scanShort || t.Size == 2:
		ScanDoubling(s, t, v, exclusive)
	default:
		ScanChain(s, t, v, exclusive)
	}
}

// scanShort is up to how many bytes the rounds of a scan cost more than its
// bytes.
const scanShort = 256 << 10
