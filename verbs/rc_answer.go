package verbs

import (
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// placeRequest takes in a Read or an atomic of the peer. Everything that the
// peer sent before it is placed, so a Read sees its Writes (RFC 5040, section
// 5.5).
func (r *rcReceiver) placeRequest(h *ddp.Header, op rdmap.Opcode, u, b []byte) bool {
	if uint32(h.MSN) != r.got[iwarp.QNReadReq]+1 {
		return r.refuse(ddp.MSNRange, u, len(u))
	}
	r.got[iwarp.QNReadReq]++
	if r.answers.full() { // the peer asks for more than was agreed
		return r.refuse(rdmap.StreamCatastrophic, u, len(u))
	}
	if cause, ok := r.answer(r.answers.room(), h, op, b); !ok {
		return r.refuse(cause, u, len(u))
	}
	r.answers.tail++
	r.enqueue()
	return true
}

// answer makes w the answer to a Read or an atomic.
func (r *rcReceiver) answer(w *wqe, h *ddp.Header, op rdmap.Opcode, b []byte) (cause iwarp.Cause, ok bool) {
	if op == rdmap.ReadRequest {
		var req rdmap.ReadReq
		req.Parse(b)
		if cause, ok = r.q.answerRead(w, uint32(h.MSN), &req); ok && req.Size > 0 && r.ird == 0 {
			return rdmap.StreamCatastrophic, false
		}
		return cause, ok
	}
	if r.ird == 0 {
		return rdmap.StreamCatastrophic, false
	}
	var req rdmap.AtomicReq
	req.Parse(b)
	return r.q.answerAtomic(w, &r.sent, &req)
}

// refuseRevoked refuses the Read whose region was revoked before its answer was
// sent.
func (r *rc) refuseRevoked() {
	u := r.answers.at(r.cur.ans).readRequest()
	r.refuse(rdmap.InvalidSTag, u[:], len(u))
}

// refuse answers what was not granted, or makes no sense: u is the ULPDU, n its
// length, or nil when the lower layer has found the error. Nothing is taken
// from the peer any more, it is told why (RFC 5040, section 7.1), and the
// connection ends. It returns false.
func (r *rc) refuse(cause iwarp.Cause, u []byte, n int) bool {
	q := r.q
	var t rdmap.Term
	q.blame(&t, cause, u, n)
	var body [rdmap.TermMaxLen]byte
	h := terminateHeader()
	r.say(&h, body[:t.Put(body[:])])
	q.ctx.raise(AsyncEvent{Type: refusalEvent(cause.Protection()), QP: q})
	r.close(&iwarp.TerminateError{Cause: cause})
	r.enqueue()
	return false
}

// terminated reads why the peer ends the connection, and what of ours it
// blames.
func (r *rc) terminated(b []byte) {
	q := r.q
	var t rdmap.Term
	t.ParseStream(b, r.cur.req == r.first && !r.cur.mid && r.answers.wqes == nil)
	if seq, ok := r.requests.culprit(&t); ok {
		r.failRequests(seq, statusOf(t.Cause))
	}
	q.ctx.raise(AsyncEvent{Type: EventQPFatal, QP: q})
	r.close(&iwarp.TerminateError{Cause: t.Cause, Remote: true})
}
