package arq

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// Receiver is the receiving half of a peer: which units have arrived, and
// when to say so. Duplicates and what lies outside of the window end here;
// letting them through would corrupt memory.
type Receiver struct {
	sh   *Shared
	next serial.U32 // all before it have arrived
	top  serial.U32 // one past the highest that has arrived
	bits []uint64   // ring: what has arrived from next on; nil while all is in order

	unacked  int32     // units that arrived since the last acknowledgement
	arrival  mono.Time // of the newest
	deadline mono.Time // when to acknowledge
}

// Init makes r ready. first is the LSN of the first unit. A Receiver may be
// made ready again for another association.
func (r *Receiver) Init(sh *Shared, first serial.U32) {
	if r.bits != nil {
		clear(r.bits)
		r.sh.giveBits(r.bits)
	}
	*r = Receiver{sh: sh, next: first, top: first, deadline: mono.Never}
}

// Rest gives back the memory that is only needed while something is missing.
func (r *Receiver) Rest() {
	if r.bits != nil && r.InOrder() {
		r.sh.giveBits(r.bits)
		r.bits = nil
	}
}

// Next returns the LSN of the first unit that has not arrived.
func (r *Receiver) Next() serial.U32 { return r.next }

// InOrder reports whether nothing has arrived beyond a gap.
func (r *Receiver) InOrder() bool { return r.top == r.next }

func (r *Receiver) slot(lsn serial.U32) (word *uint64, bit uint64) {
	i := uint32(lsn) & uint32(r.sh.cfg.Window-1)
	return &r.bits[i/64], 1 << (i % 64)
}

// Fresh reports whether lsn lies in the window and has not arrived before.
func (r *Receiver) Fresh(lsn serial.U32) bool {
	if uint32(lsn-r.next) >= uint32(r.sh.cfg.Window) {
		return false
	}
	if !lsn.Less(r.top) {
		return true
	}
	word, bit := r.slot(lsn)
	return *word&bit == 0
}

// Mark notes that a fresh unit was placed and returns the new Next: all
// before it may be delivered.
func (r *Receiver) Mark(lsn serial.U32) serial.U32 {
	r.unacked++
	if lsn == r.next && r.top == r.next {
		r.next++
		r.top++
		return r.next
	}
	if r.bits == nil {
		r.bits = r.sh.takeBits()
	}
	word, bit := r.slot(lsn)
	*word |= bit
	r.top = r.top.Max(lsn + 1)
	for r.next != r.top {
		word, bit := r.slot(r.next)
		if *word&bit == 0 {
			break
		}
		*word &^= bit
		r.next++
	}
	return r.next
}

// Arrived is called once for each datagram, before its units are marked: an
// answer to them may go out before the datagram is done with.
func (r *Receiver) Arrived(now mono.Time) { r.arrival = now }

// Presses reports whether the acknowledgement cannot wait, so that AckDue is to
// be called at once: there is a gap, or there are many units.
func (r *Receiver) Presses() bool { return int(r.unacked) >= r.sh.cfg.AckEvery || !r.InOrder() }

// AckDue is called once for each datagram, after its units were marked. It
// asks for an acknowledgement of what has arrived by now: at once when urgent
// (a gap, a duplicate) or when there are many units, soon when the sender
// waits for it, else late enough to ride on data.
func (r *Receiver) AckDue(now mono.Time, urgent, soon bool) {
	switch {
	case urgent || r.Presses():
		r.deadline = now
	case r.unacked == 0: // something has acknowledged them already
	case soon:
		r.deadline = min(r.deadline, now.Add(r.sh.cfg.AckSoon))
	default:
		r.deadline = min(r.deadline, now.Add(r.sh.cfg.AckDelay))
	}
}

// Deadline returns when an acknowledgement is due.
func (r *Receiver) Deadline() mono.Time { return r.deadline }

// Acked notes that a datagram carried the acknowledgement. A datagram without
// SACK words does not tell about gaps, so it only counts when there are none.
func (r *Receiver) Acked(withSack bool) {
	if withSack || r.InOrder() {
		r.unacked = 0
		r.deadline = mono.Never
	}
}

// Held returns for how long the newest unit has been kept without an
// acknowledgement: what a header that is written now says in its field Held.
func (r *Receiver) Held(now mono.Time) mono.Duration { return now.Sub(r.arrival) }

// SackWords returns how many words Sack has to offer.
func (r *Receiver) SackWords() int {
	if r.InOrder() {
		return 0
	}
	return (int(r.top-r.next) - 1 + 63) / 64
}

// Sack returns word w of the selective acknowledgement: bit i tells whether
// Next+1+64w+i has arrived.
func (r *Receiver) Sack(w int) (word uint64) {
	base := r.next.Add(int32(1 + 64*w))
	for i := range 64 {
		lsn := base.Add(int32(i))
		if !lsn.In(r.next, uint32(r.top-r.next)) {
			break
		}
		if at, bit := r.slot(lsn); *at&bit != 0 {
			word |= 1 << i
		}
	}
	return word
}
