package check

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// Completed says that a send completion was polled. data is what the request
// has put into the memory of its poster: what a Read or an atomic returned.
func (m *Model) Completed(l *Life, wc *verbs.WC, data []byte) {
	o := m.ops[wc.WRID]
	switch {
	case o == nil || o.Life != l:
		m.fail("%v: completion %v of a request that it never posted: %#x", l, wc.Status, wc.WRID)
	case o.done:
		m.fail("%v: completed once more, with %v, after it had ended at %v", o, wc.Status, mono.Duration(o.ended))
	case wc.Opcode != o.Code:
		m.fail("%v: its completion says %v", o, wc.Opcode)
	case wc.Status == verbs.Success && !o.Signaled:
		m.fail("%v: completed with success, but was not signalled", o)
	default:
		m.judge(o, wc, data)
		m.advance(o)
		m.finish(o, wc.Status == verbs.Success)
	}
}

// advance ends what was posted before o on the same stream: it would have
// completed before o, had it failed or been signalled.
func (m *Model) advance(o *Op) {
	s := o.Stream
	if s == nil {
		return
	}
	for ; s.next < o.pos; s.next++ {
		switch earlier := s.ops[s.next]; {
		case earlier.done:
		case earlier.Signaled || s.failed != nil:
			m.fail("%v: completed before %v", o, earlier)
		default:
			m.finish(earlier, true)
		}
	}
	s.next = o.pos + 1
}

// judge decides whether o may end like this.
func (m *Model) judge(o *Op, wc *verbs.WC, data []byte) {
	verdict := o.verdict(m.now())
	if wc.Status == verbs.Success {
		switch {
		case verdict == mustNot && !m.silent(o):
			m.fail("%v: succeeded", o)
		case o.Stream != nil && o.Stream.failed != nil:
			m.fail("%v: succeeded after %v had failed", o, o.Stream.failed)
		case verdict != mustNot:
			m.judgeData(o, wc, data)
		}
		return
	}
	if !m.mayFail(o, verdict, wc.Status) {
		m.fail("%v: failed without a reason: %v", o, wc.Status)
	}
	for i, b := range data {
		if verdict == mustNot && b != canary {
			m.fail("%v: was refused and changed byte %d of its buffer", o, i)
			return
		}
	}
}

// silent reports whether o may complete with success though it was refused: a
// Write is done when all of it has arrived (RFC 5040, section 5.5), and the
// refusal comes after that, to end the association.
func (m *Model) silent(o *Op) bool {
	return o.writes() || o.Code == verbs.OpSend || o.Code == verbs.OpSendWithInv
}

// mayFail reports whether there is a reason for o to fail with a status.
func (m *Model) mayFail(o *Op, v verdict, status verbs.Status) bool {
	s := o.Stream
	if s == nil {
		return status == verbs.WRFlushErr || v != must && (status == verbs.MWBindErr || status == verbs.LocProtErr || status == verbs.LocQPOpErr)
	}
	pair := [2]int{min(o.Life.Host, s.To), max(o.Life.Host, s.To)}
	switch status {
	case verbs.RemAccessErr, verbs.RemInvReqErr, verbs.RemOpErr:
		return v != must || m.anyRefusable(s, o.pos)
	case verbs.RetryExcErr, verbs.WRFlushErr:
		return !m.rules.Lossless || m.excuse[pair] || m.refusable(o.Life.Host, s.To) || m.refusable(s.To, o.Life.Host)
	}
	return false
}

// anyRefusable reports whether one of the first n requests of s could be refused.
func (m *Model) anyRefusable(s *Stream, n int) bool {
	for _, o := range s.ops[:n] {
		if o.verdict(m.now()) != must {
			return true
		}
	}
	return false
}

// judgeData checks what a Read or an atomic that succeeded has returned.
func (m *Model) judgeData(o *Op, wc *verbs.WC, data []byte) {
	switch {
	case o.Code == verbs.OpRDMARead:
		if int(wc.ByteLen) != o.Len {
			m.fail("%v: completed with %d bytes", o, wc.ByteLen)
		}
		if i := o.view.returned(data, m.rules.Linger); i >= 0 {
			m.fail("%v: byte %d is %#x, where %#x was, and nothing explains it%s", o, i, data[i], o.view.base[i], m.blame(data[i:]))
		}
	case o.atomic():
		for _, a := range o.Grant.Region.cells[o.Cell].ops {
			if a.op == o {
				a.old = binary.NativeEndian.Uint64(data)
			}
		}
	}
}

// finish notes how a request has ended.
func (m *Model) finish(o *Op, ok bool) {
	now := m.now()
	o.done, o.ok, o.ended = true, ok, now
	if ok && o.Stream != nil && o.Wrong == "" { // an unreliable one may yet arrive, or never
		o.placed = min(o.placed, now)
	}
	if o.view != nil {
		o.Grant.Region.forget(o.view)
	}
	if s := o.Stream; s != nil && !ok {
		if s.failed == nil {
			s.failed = o
		}
		// The association is over for the other side too.
		m.pardon(o.Life.Host, s.To)
	}
	if o.Inv == nil || !ok || o.verdict(now) == mustNot {
		return
	}
	switch o.Code {
	case verbs.OpBindMW:
		o.Inv.from = now
	case verbs.OpLocalInv, verbs.OpSendWithInv:
		o.Inv.end = min(o.Inv.end, now)
	}
}
