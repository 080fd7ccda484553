package coll

// Long messages are cut into segments where a rank does something with what has
// come while more of it comes: sends it on, or reduces it. Each of them is a
// message of its own, with a round trip to agree on where it goes; they are asked
// for all at once.
const (
	segmentLeast = 256 << 10 // bytes, where ranks pass them on
	reducedLeast = 1 << 20   // and where a rank only reduces what comes: that takes little of the time
	segmentsMost = 32
)

// segments returns how many segments n bytes are cut into.
func segments(n int) int { return segmentsOf(n, segmentLeast) }

// segmentsOf is segments of so many bytes at least.
func segmentsOf(n, least int) int { return min(max(1, n/least), segmentsMost) }

// segment returns segment i of b, which is cut into k of them anywhere.
func segment(b []byte, k, i int) []byte { return b[split(len(b), k, i):split(len(b), k, i+1)] }

// sendCut sends b in k segments.
func (s *Schedule) sendCut(t Team, to int, b []byte, k int) {
	for i := range k {
		s.send(t, to, segment(b, k, i))
	}
}

// recvCut receives b in k segments.
func (s *Schedule) recvCut(t Team, from int, b []byte, k int) {
	for i := range k {
		s.recv(t, from, segment(b, k, i))
	}
}

// sendAll sends b to all other members, to the next one first.
func (s *Schedule) sendAll(t Team, b []byte) {
	for i := 1; i < t.Size; i++ {
		s.send(t, t.off(t.Me+i), b)
	}
}
