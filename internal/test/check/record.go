package check

import "github.com/xwarp/xwarp/verbs"

// Recorded says that a Write-Record has ended at its target: from is the host
// that the completion names, r the region that the record names, mem what that
// holds now.
func (m *Model) Recorded(l *Life, wc *verbs.WC, from int, r *Region, mem []byte) {
	rec := wc.Record
	m.reached.when(rec.Whole, "record whole")
	m.reached.when(!rec.Whole, "record in part")
	o := m.recordAt(r, rec, from)
	switch {
	case wc.Status != verbs.Success && wc.Status != verbs.WRFlushErr:
		m.fail("%v: Write-Record ended with %v", l, wc.Status)
	case o == nil:
		m.fail("%v: host %d ended a Write-Record of %d bytes at %d that nobody has posted", l, from, rec.Len, rec.Addr)
	case !m.claims(o, rec, wc, mem):
	case rec.Whole && o.Wrong != "":
		m.fail("%v: recorded whole", o)
	case o.Stream != nil:
		m.once(o, rec.Valid)
	}
}

// once checks that no byte of a reliable Write-Record is claimed twice: not by
// two chunks, nor by two records.
func (m *Model) once(o *Op, valid []verbs.Range) {
	sum := 0
	for _, v := range valid {
		for _, c := range o.chunks {
			if v.Start < c.End && c.Start < v.End {
				m.fail("%v: bytes %d to %d were recorded twice", o, max(v.Start, c.Start), min(v.End, c.End))
			}
		}
		o.chunks = append(o.chunks, v)
	}
	for _, c := range o.chunks {
		sum += int(c.End - c.Start)
	}
	if sum == o.Len {
		o.placed = min(o.placed, m.now())
	}
}

// recordAt finds the request behind a record. No two that were right have the
// same place.
func (m *Model) recordAt(r *Region, rec *verbs.Record, from int) *Op {
	for _, o := range m.ops {
		if o.Code == verbs.OpRDMAWriteRecord && o.Grant != nil && o.Grant.Region == r && o.Life.Host == from &&
			uint64(o.offset()) == rec.Addr && uint32(o.Len) == rec.Len && (o.Wrong == "" || o.Partly) {
			return o
		}
	}
	return nil
}

// claims checks that all that the validity map claims is there.
func (m *Model) claims(o *Op, rec *verbs.Record, wc *verbs.WC, mem []byte) bool {
	sum, end := 0, -1
	for _, v := range rec.Valid {
		lo, hi := int(v.Start), int(v.End)
		if lo <= end || hi <= lo || hi > o.Len {
			m.fail("%v: validity map %v is not made of ascending, separate ranges inside of the message", o, rec.Valid)
			return false
		}
		for i := lo; i < hi; i++ {
			if mem[o.offset()+i] != byteOf(o.ID, i) {
				m.fail("%v: byte %d is claimed as valid by %v and is not there", o, i, rec.Valid)
				return false
			}
		}
		sum, end = sum+hi-lo, hi
	}
	whole := sum == o.Len
	if rec.Whole != whole || int(wc.ByteLen) != sum || m.rules.Chunks && len(rec.Valid) != 1 {
		m.fail("%v: record says whole: %v, %d bytes, but has %v", o, rec.Whole, wc.ByteLen, rec.Valid)
		return false
	}
	return true
}
