package record

// MaxRanges is how many separate ranges a ValidityMap holds. Chunks that come
// in order need one; each gap that is open at a time needs one more.
const MaxRanges = 16

// Range is the bytes from Start up to, not including, End of a message.
type Range struct {
	Start, End uint32
}

// ValidityMap is the set of bytes of a message that have arrived. It is a
// value of fixed size: a record costs the same whatever is sent to it. The zero
// value is the map of an empty message.
type ValidityMap struct {
	length uint32
	valid  uint32 // bytes in ranges
	n      int
	ranges [MaxRanges]Range // the first n, ascending, with a gap between any two
}

// Init empties m and sets the length of the message in bytes.
func (m *ValidityMap) Init(length uint32) {
	m.length, m.valid, m.n = length, 0, 0
}

// Length returns the length of the message in bytes.
func (m *ValidityMap) Length() uint32 { return m.length }

// Bytes returns how many bytes have arrived.
func (m *ValidityMap) Bytes() uint32 { return m.valid }

// Whole tells whether all bytes have arrived.
func (m *ValidityMap) Whole() bool { return m.valid == m.length }

// Ranges returns what has arrived, ascending; neighbours are one range. The
// slice belongs to m and is valid until the next Add or Init.
func (m *ValidityMap) Ranges() []Range { return m.ranges[:m.n] }

// Add adds the n bytes from off on. Adding bytes again changes nothing. It
// returns false, and changes nothing, when the range reaches past the end of
// the message or there is no room for one range more: the chunk is then to be
// dropped before it is placed, as if it had been lost.
func (m *ValidityMap) Add(off, n uint32) bool {
	if uint64(off)+uint64(n) > uint64(m.length) {
		return false
	}
	if n == 0 {
		return true
	}
	end := off + n
	if m.n > 0 && off == m.ranges[m.n-1].End { // in order, as most are
		m.ranges[m.n-1].End = end
		m.valid += n
		return true
	}
	return m.merge(off, end)
}

// merge adds [off, end), which may touch, overlap or join what is there.
func (m *ValidityMap) merge(off, end uint32) bool {
	i := 0
	for i < m.n && m.ranges[i].End < off {
		i++
	}
	j := i // [i, j) become one with it
	for j < m.n && m.ranges[j].Start <= end {
		m.valid -= m.ranges[j].End - m.ranges[j].Start
		j++
	}
	if i == j {
		if m.n == MaxRanges {
			return false
		}
		copy(m.ranges[i+1:], m.ranges[i:m.n])
		m.ranges[i] = Range{off, end}
		m.n++
	} else {
		m.ranges[i] = Range{min(off, m.ranges[i].Start), max(end, m.ranges[j-1].End)}
		m.n = i + 1 + copy(m.ranges[i+1:], m.ranges[j:m.n])
	}
	m.valid += m.ranges[i].End - m.ranges[i].Start
	return true
}

// Has tells whether all n bytes from off on have arrived.
func (m *ValidityMap) Has(off, n uint32) bool {
	end := uint64(off) + uint64(n)
	for _, r := range m.ranges[:m.n] {
		if off < r.End && n > 0 {
			return off >= r.Start && end <= uint64(r.End)
		}
	}
	return n == 0
}
