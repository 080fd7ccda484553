package verbs

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// inboundSend is a Send that arrives in several segments.
type inboundSend struct {
	message
	ulp uint8 // its control byte
}

// rcReceiver is the receiving side of a connection.
type rcReceiver struct {
	*rc
	rx        mpa.Rx
	part      []byte    // of an FPDU that is not all there
	unread    bool      // part was not looked at yet: it came with the peer's start-up frame
	eof       bool      // the peer has ended its half
	got       [4]uint32 // MSN of the last message on each untagged queue that has begun
	msg       inboundSend
	rd        llp.Reader
	aside     []byte // a ULPDU that waits for a receive; nil: none does
	predicted prediction
	long      int // payload of the latest whole Send, if it is worth a receive where it belongs; else 0
}

// recvRounds is how many times a connection receives before the next one has
// its turn.
const recvRounds = 4

// ready takes in what has arrived, and lets what the stream had no room for go
// on.
func (r *rc) ready(now mono.Time) (work int) {
	if r.stream == nil {
		return 0
	}
	r.looked = r.q.ctx.streams.step
	work = r.in.receive()
	if r.full {
		r.full = false
		r.enqueue()
	}
	return work
}

// receive takes in bytes and the FPDUs that they are, and returns how many
// times it did.
func (r *rcReceiver) receive() (work int) {
	s := &r.q.ctx.streams
	if r.aside != nil {
		return r.watch()
	}
	if r.predicted.piece > 0 && r.region() == nil {
		r.retreat()
	}
	have := len(r.part)
	most := r.appetite()
	for work < recvRounds {
		n, used, more, eof := 0, 0, false, false
		if r.predicted.piece > 0 {
			n, have, more, eof = r.receivePredicted()
		} else if e := r.landing(have, most); e != nil {
			n, used, eof = r.land(e, most)
			have, more = n, n >= min(most, inLen/2)
		} else if have < most {
			n, eof = r.stream.Recv(s.in[have:most])
			have += n
			more = n >= min(most, inLen/2)
		}
		if n == 0 && !r.unread {
			if eof || r.stream.State() == fabric.StreamFailed {
				r.ended(eof, have+r.predicted.pos)
				work++
			}
			break
		}
		if work == 0 {
			copy(s.in, r.part)
		}
		r.unread = false
		work++
		used += r.take(s.in[used:have])
		if r.stream == nil {
			return work
		}
		have = copy(s.in, s.in[used:have])
		if r.aside != nil {
			r.unread = have > 0
			break
		}
		if have > 0 && r.adopt(s.in[:have]) {
			have = 0
		}
		r.lookAgain()
		if !more { // most likely that was all
			break
		}
	}
	if work > 0 && r.stream != nil {
		r.keepPart(s.in[:have])
	}
	return work
}

// keepPart keeps the beginning of an FPDU until the rest has come.
func (r *rcReceiver) keepPart(b []byte) {
	s := &r.q.ctx.streams
	switch {
	case len(b) > 0 && r.part == nil:
		r.part = append(s.buffer(), b...)
	case len(b) > 0:
		r.part = append(r.part[:0], b...)
	case r.part != nil:
		s.keep(r.part)
		r.part = nil
	}
}

// ended is called when the peer has ended its half of the stream, in the middle
// of an FPDU if bytes are left, or when the stream has failed.
func (r *rc) ended(eof bool, left int) {
	switch {
	case !eof && r.phase == rcClosing:
		r.over(true)
	case !eof:
		r.lost(r.stream.Err())
	case r.phase == rcOpen && (left > 0 || r.in.msg.used || r.halfAnswered()):
		r.lost(iwarp.LLPLost)
	default:
		r.in.eof = true
		r.disconnect(nil)
		if len(r.rest) == 0 {
			r.over(false)
		}
	}
}

// take takes in the FPDUs that are whole, and returns how many bytes of b they
// were.
func (r *rcReceiver) take(b []byte) (used int) {
	if r.phase != rcOpen { // the messages have no receiver any more
		return len(b)
	}
	for used < len(b) {
		u, n, _, cause, ok := r.rx.Next(b[used:])
		if !ok {
			r.refuse(cause, nil, 0)
			return len(b)
		}
		if n == 0 {
			break
		}
		used += n
		if !r.spokenFirst(u) && !r.place(u) {
			return len(b)
		}
		if !r.heard || r.waits { // one that ends the connection does not establish it before
			r.hear()
		}
		if r.aside != nil {
			break
		}
	}
	return used
}

// place does what one ULPDU says. false: the connection ends.
func (r *rcReceiver) place(u []byte) bool {
	q := r.q
	r.predicted.piece = 0
	if !q.takesInbound() {
		return true
	}
	if len(u) >= ddp.UntaggedLen && rdmap.IsWholeSend(u) && !r.msg.used {
		return r.placeWhole(u)
	}
	var h ddp.Header
	op, cause, ok := parse(&h, u, len(u))
	if !ok {
		return r.refuse(cause, u, len(u))
	}
	b := u[h.Len():]
	switch op {
	case rdmap.Send, rdmap.SendSE, rdmap.SendInv, rdmap.SendSEInv:
		return r.placeSend(&h, op, u, b)
	case rdmap.Write:
		r.rd.Over(b)
		if cause, ok := q.placeWrite(&h, &r.rd, len(b)); !ok {
			return r.refuse(cause, u, len(u))
		}
		r.predict(&h, len(b))
		return true
	case rdmap.ReadResponse:
		return r.placeAnswer(&h, u, b)
	case rdmap.ReadRequest, rdmap.AtomicRequest:
		return r.placeRequest(&h, op, u, b)
	case rdmap.AtomicResponse:
		return r.placeOld(&h, u, b)
	case rdmap.Immediate, rdmap.ImmediateSE:
		return r.placeImm(&h, op, u, b)
	case rdmap.Terminate:
		r.terminated(b)
		return false
	}
	return r.refuse(rdmap.UnexpectedOpcode, u, len(u)) // Write-Record is of datagrams
}

// placeWhole is the short way of what most messages are: a Send of one segment.
func (r *rcReceiver) placeWhole(u []byte) bool {
	q := r.q
	if msn(u) != r.got[iwarp.QNSend]+1 {
		return r.refuse(ddp.MSNRange, u, len(u))
	}
	e, ok := r.takeRecv()
	if !ok {
		return r.noRecv(u)
	}
	b := u[ddp.UntaggedLen:]
	if len(b) > int(e.total) {
		return r.tooLong(e.wrid, uint32(len(b)), u)
	}
	r.got[iwarp.QNSend]++
	r.rd.Over(b)
	q.receive(e, &r.rd, len(b), nil)
	if r.long = 0; len(b) >= predictLeast {
		r.long = len(b)
	}
	return true
}

// tooLong completes the receive of a message that it is too short for, and
// refuses the segment.
func (r *rcReceiver) tooLong(wrid uint64, n uint32, u []byte) bool {
	r.q.tooLong(wrid, n, nil)
	return r.refuse(ddp.MessageTooLong, u, len(u))
}

// placeSend places a segment of a Send, and completes its receive when it is
// the last one (RFC 5041, section 5.3).
func (r *rcReceiver) placeSend(h *ddp.Header, op rdmap.Opcode, u, b []byte) bool {
	m := &r.msg
	switch {
	case m.used && uint32(h.MSN) != m.msn, !m.used && uint32(h.MSN) != r.got[iwarp.QNSend]+1:
		return r.refuse(ddp.MSNRange, u, len(u))
	case m.used && h.MO != m.len, !m.used && h.MO != 0:
		return r.refuse(ddp.InvalidMO, u, len(u))
	case m.used && h.ULP != m.ulp:
		return r.refuse(rdmap.UnexpectedOpcode, u, len(u))
	}
	if !m.used {
		e, ok := r.takeRecv()
		if !ok {
			return r.noRecv(u)
		}
		m.begin(e, uint32(h.MSN))
		m.ulp = h.ULP
		r.got[iwarp.QNSend]++
	}
	if uint64(m.len)+uint64(len(b)) > uint64(m.buf.total) {
		m.used = false
		return r.tooLong(m.buf.wrid, m.len+uint32(len(b)), u)
	}
	r.rd.Over(b)
	m.buf.scatter(m.len, &r.rd, len(b))
	m.len += uint32(len(b))
	if !h.Last {
		return true
	}
	wrid, n := m.buf.wrid, m.len
	*m = inboundSend{}
	if cause, ok := r.q.received(wrid, n, sendFlags(op), h.ULP2, nil); !ok {
		return r.refuse(cause, u, len(u))
	}
	return true
}

// placeImm takes a receive for immediate data, which go to its completion (RFC
// 7306, section 6).
func (r *rcReceiver) placeImm(h *ddp.Header, op rdmap.Opcode, u, b []byte) bool {
	if r.msg.used || uint32(h.MSN) != r.got[iwarp.QNSend]+1 {
		return r.refuse(ddp.MSNRange, u, len(u))
	}
	e, ok := r.takeRecv()
	if !ok {
		return r.noRecv(u)
	}
	r.got[iwarp.QNSend]++
	var imm rdmap.Imm
	imm.Parse(b)
	r.q.receivedImm(e.wrid, uint64(imm), WCWithImm|sendFlags(op), nil)
	return true
}

// oldest returns the oldest Read or atomic that is not answered, or nil.
func (r *rc) oldest() *wqe {
	for ; r.asked != r.cur.req; r.asked++ {
		if w := r.requests.at(r.asked); w.isRead() {
			return w
		}
	}
	return nil
}

// halfAnswered reports whether a Read Response is under way.
func (r *rc) halfAnswered() bool {
	w := r.oldest()
	return w != nil && w.got > 0
}

// placeAnswer places a segment of a Read Response, which must be the next one.
//
// Linux's siw answers a Read of no bytes with those of another request, now and
// then: they are dropped.
func (r *rcReceiver) placeAnswer(h *ddp.Header, u, b []byte) bool {
	if r.rtr && len(b) == 0 && h.Last {
		r.rtr = false
		return true
	}
	w := r.oldest()
	if w == nil || w.op != OpRDMARead {
		return r.refuse(ddp.InvalidSTag, u, len(u))
	}
	key, at := w.sink()
	r.rd.Over(b)
	switch {
	case h.STag != key:
		return r.refuse(ddp.InvalidSTag, u, len(u))
	case w.size == 0:
	case h.TO != at+uint64(w.got) || !w.placeResponse(h, uint64(w.got), &r.rd, len(b)):
		return r.refuse(ddp.BaseBounds, u, len(u))
	}
	if h.Last {
		r.answered(w)
	}
	return true
}

// placeOld places the old value that an atomic has found.
func (r *rcReceiver) placeOld(h *ddp.Header, u, b []byte) bool {
	var a rdmap.AtomicResp
	a.Parse(b)
	w := r.oldest()
	switch {
	case uint32(h.MSN) != r.got[iwarp.QNAtomicResp]+1:
		return r.refuse(ddp.MSNRange, u, len(u))
	case w == nil || !w.isAtomic() || a.ID != w.name:
		return r.refuse(rdmap.UnexpectedOpcode, u, len(u))
	}
	r.got[iwarp.QNAtomicResp]++
	w.placeOld(a.Value)
	r.answered(w)
	return true
}

// answered completes a Read or an atomic, once those before it are.
func (r *rc) answered(w *wqe) {
	w.answered = true
	r.asked++
	r.cur.reads--
	r.settle()
	if r.cur.req != r.requests.tail {
		r.enqueue()
	}
}
