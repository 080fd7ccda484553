package check

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/verbs"
)

// Receiving says that a receive was posted.
func (m *Model) Receiving(l *Life, id uint64) {
	l.recvs[id] = struct{}{}
}

// Received says that a receive completion was polled: from is the host that it
// names, data the bytes that are in the buffer now.
func (m *Model) Received(l *Life, wc *verbs.WC, from int, data []byte) {
	if _, ok := l.recvs[wc.WRID]; !ok {
		m.fail("%v: completion %v of receive %#x, which is not posted", l, wc.Status, wc.WRID)
		return
	}
	delete(l.recvs, wc.WRID)
	switch {
	case wc.Status == verbs.WRFlushErr:
	case wc.Status != verbs.Success:
		m.fail("%v: receive %#x failed: %v; all of them are large enough", l, wc.WRID, wc.Status)
	default:
		m.deliver(l, wc, from, data)
	}
}

// deliver finds the stream that a message belongs to: the one that delivered
// last, or a later one whose first message it is.
func (m *Model) deliver(l *Life, wc *verbs.WC, from int, data []byte) {
	all := m.streams[[2]int{from, l.Host}]
	first := 0
	if s := l.newest[from]; s != nil {
		if s.heard < len(s.msgs) && m.is(s.msgs[s.heard], wc, data) {
			m.heard(l, s, wc)
			return
		}
		first = s.num + 1
	}
	for _, s := range all[min(first, len(all)):] {
		if s.heard == 0 && s.bound == nil && len(s.msgs) > 0 && m.is(s.msgs[0], wc, data) {
			s.bound, l.newest[from] = l, s
			m.heard(l, s, wc)
			return
		}
	}
	m.fail("%v: host %d delivered %s", l, from, m.unexpected(l, from, wc, data))
}

// is reports whether a completion and its data are those of message o.
func (m *Model) is(o *Op, wc *verbs.WC, data []byte) bool {
	if o.Code == verbs.OpRDMAWriteWithImm {
		return wc.Opcode == verbs.OpRecvRDMAWithImm && wc.ImmData == o.Imm
	}
	return wc.Opcode == verbs.OpRecv && len(data) == o.Len && differs(data, o.ID) < 0
}

// heard notes that the next message of s was delivered, and with it that all
// that was posted before it is in memory.
func (m *Model) heard(l *Life, s *Stream, wc *verbs.WC) {
	o := s.msgs[s.heard]
	s.heard++
	now := m.now()
	for i := o.pos; i >= 0 && s.ops[i].placed > now; i-- {
		if s.ops[i].verdict(now) == must && !s.ops[i].atomic() && s.ops[i].Code != verbs.OpRDMARead {
			s.ops[i].placed = now
		}
	}
	if o.verdict(now) == mustNot {
		m.fail("%v: delivered %v", l, o)
	}
	if s.wrong != nil && s.wrong.pos < o.pos {
		m.fail("%v: delivered %v, which comes after %v", l, o, s.wrong)
	}
	m.flags(l, o, wc)
}

// flags checks what a receive completion says besides the data.
func (m *Model) flags(l *Life, o *Op, wc *verbs.WC) {
	inv := wc.Flags&verbs.WCWithInv != 0
	imm := wc.Flags&verbs.WCWithImm != 0
	switch {
	case inv != (o.Code == verbs.OpSendWithInv):
		m.fail("%v: delivered %v with flags %b", l, o, wc.Flags)
	case inv && wc.InvKey != o.Inv.Key:
		m.fail("%v: delivered %v with key %#x invalidated, not %#x", l, o, wc.InvKey, o.Inv.Key)
	case wc.Flags&verbs.WCWithSolicited != 0 != o.Solicit:
		m.fail("%v: delivered %v with flags %b, solicited: %v", l, o, wc.Flags, o.Solicit)
	case imm != (o.Code == verbs.OpRDMAWriteWithImm):
		m.fail("%v: delivered %v with flags %b", l, o, wc.Flags)
	}
	if inv {
		o.Inv.end = min(o.Inv.end, m.now())
	}
}

// unexpected says, for people, what a message is that does not belong here.
func (m *Model) unexpected(l *Life, from int, wc *verbs.WC, data []byte) string {
	want := "nothing"
	if s := l.newest[from]; s != nil && s.heard < len(s.msgs) {
		want = s.msgs[s.heard].String()
	}
	return describe(m, wc, data) + "; next is " + want
}

func describe(m *Model, wc *verbs.WC, data []byte) string {
	if wc.Opcode == verbs.OpRecvRDMAWithImm {
		for _, o := range m.ops {
			if o.Code == verbs.OpRDMAWriteWithImm && o.Imm == wc.ImmData {
				return "out of turn: " + o.String()
			}
		}
		return "immediate data that nobody sent"
	}
	if len(data) >= 8 {
		if o := m.ops[binary.LittleEndian.Uint64(data)]; o != nil {
			switch i := differs(data, o.ID); {
			case i >= 0:
				return "with byte " + itoa(i) + " changed: " + o.String()
			case len(data) != o.Len:
				return itoa(len(data)) + " bytes of " + o.String()
			default:
				return "out of turn: " + o.String()
			}
		}
	}
	return itoa(len(data)) + " bytes that nobody sent, as " + wc.Opcode.String()
}
