package verbs

import (
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// answer is owed to the peer: a Read Response, or the old value that an atomic
// has found.
type answer struct {
	src  []byte // the payload, in the region that is read
	size uint32
	msn  uint32 // of the Read Request, or of this answer to an atomic
	sink iwarp.STag
	to   uint64
	key  uint32 // what the peer named, to look whether it is still granted
	addr uint64
	old  bool // it is the old value of an atomic, which body holds
	body [rdmap.AtomicRespLen]byte
}

// segment fills in the header of the segment that begins at off, and returns
// the length of its payload.
func (a *answer) segment(h *ddp.Header, off uint32, mulpdu int) (n int) {
	if a.old {
		*h = ddp.Header{Last: true, ULP: rdmap.Control(rdmap.AtomicResponse), QN: rdmap.AtomicResponse.QN(), MSN: iwarp.MSN(a.msn)}
		return int(a.size)
	}
	n = min(int(a.size-off), mulpdu-ddp.TaggedLen)
	*h = ddp.Header{Tagged: true, Last: off+uint32(n) == a.size, ULP: rdmap.Control(rdmap.ReadResponse), STag: a.sink, TO: a.to + uint64(off)}
	return n
}

// owe returns the next free answer, or nil when the peer asks for more than
// was agreed.
func (r *rc) owe() *answer {
	if r.ansTail-r.cur.ans >= max(r.ird, 1) { // 1: the first message of peer-to-peer mode may be a Read
		return nil
	}
	if r.answers == nil {
		size := 1
		for size < int(max(r.ird, 1)) {
			size *= 2
		}
		r.answers = make([]answer, size)
	}
	a := &r.answers[r.ansTail&uint32(len(r.answers)-1)]
	*a = answer{}
	return a
}

// placeRequest takes in a Read or an atomic of the peer. Everything that the
// peer sent before it is placed, so a Read sees its Writes (RFC 5040, section
// 5.5).
func (r *rc) placeRequest(h *ddp.Header, op rdmap.Opcode, u, b []byte) bool {
	if uint32(h.MSN) != r.got[iwarp.QNReadReq]+1 {
		return r.refuse(ddp.MSNRange, u, len(u))
	}
	r.got[iwarp.QNReadReq]++
	a := r.owe()
	if a == nil {
		return r.refuse(rdmap.StreamCatastrophic, u, len(u))
	}
	var cause iwarp.Cause
	var ok bool
	if op == rdmap.ReadRequest {
		cause, ok = r.readFor(a, b)
		a.msn = uint32(h.MSN)
	} else {
		cause, ok = r.atomicFor(a, b)
	}
	if !ok {
		return r.refuse(cause, u, len(u))
	}
	r.ansTail++
	r.enqueue()
	return true
}

// readFor prepares the answer to a Read Request: it is sent from the region.
func (r *rc) readFor(a *answer, b []byte) (cause iwarp.Cause, ok bool) {
	var req rdmap.ReadReq
	req.Parse(b)
	src, cause := r.q.grant(uint32(req.SrcSTag), req.SrcTO, req.Size, RemoteRead)
	if src == nil {
		return cause, false
	}
	if req.Size > 0 && r.ird == 0 {
		return rdmap.StreamCatastrophic, false
	}
	r.q.Stats.RemoteReads++
	a.src, a.size, a.sink, a.to, a.key, a.addr = src, req.Size, req.SinkSTag, req.SinkTO, uint32(req.SrcSTag), req.SrcTO
	return cause, true
}

// atomicFor does an atomic operation, and prepares its answer.
func (r *rc) atomicFor(a *answer, b []byte) (cause iwarp.Cause, ok bool) {
	var req rdmap.AtomicReq
	req.Parse(b)
	if cause, ok = req.Check(); !ok {
		return cause, false
	}
	dst, cause := r.q.grant(uint32(req.STag), req.TO, 8, RemoteAtomic)
	if dst == nil {
		return cause, false
	}
	if r.ird == 0 {
		return rdmap.StreamCatastrophic, false
	}
	old, ok := apply(dst, &req)
	if !ok {
		return rdmap.StreamCatastrophic, false // the region does not lie on 8 bytes
	}
	r.q.Stats.RemoteAtomics++
	r.sent[3]++
	resp := rdmap.AtomicResp{ID: req.ID, Value: old}
	resp.Put(a.body[:])
	a.old, a.src, a.size, a.msn = true, a.body[:], rdmap.AtomicRespLen, r.sent[3]
	return cause, true
}

// stillGranted reports whether an answer may be sent: its region may have been
// revoked since it was asked for.
func (r *rc) stillGranted(a *answer) bool {
	if a.old {
		return true
	}
	b, _ := r.q.grant(a.key, a.addr, a.size, RemoteRead)
	return b != nil
}

// refuseRevoked refuses the Read whose region was revoked before its answer was
// sent: what the peer has asked for is put together again.
func (r *rc) refuseRevoked() {
	a := &r.answers[r.cur.ans&uint32(len(r.answers)-1)]
	h := ddp.Header{Last: true, ULP: rdmap.Control(rdmap.ReadRequest), QN: iwarp.QNReadReq, MSN: iwarp.MSN(a.msn)}
	req := rdmap.ReadReq{SinkSTag: a.sink, SinkTO: a.to, Size: a.size, SrcSTag: iwarp.STag(a.key), SrcTO: a.addr}
	var u [ddp.UntaggedLen + rdmap.ReadReqLen]byte
	req.Put(u[h.Put(u[:]):])
	r.refuse(rdmap.InvalidSTag, u[:], len(u))
}

// refuse answers what was not granted, or makes no sense: u is the ULPDU, n its
// length, or nil when the lower layer has found the error. Nothing is taken
// from the peer any more, it hears why (RFC 5040, section 7.1), and the
// connection ends. It returns false.
func (r *rc) refuse(cause iwarp.Cause, u []byte, n int) bool {
	q := r.q
	kind := EventQPReqErr
	if cause.Protection() {
		q.Stats.Refused++
		kind = EventQPAccessErr
	} else {
		q.Stats.Malformed++
	}
	var t rdmap.Term
	t.Blame(cause, u, n)
	var body [rdmap.TermMaxLen]byte
	h := ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Terminate), QN: iwarp.QNTerminate, MSN: 1}
	r.say(&h, body[:t.Put(body[:])])
	q.ctx.raise(AsyncEvent{Type: kind, QP: q})
	r.close(&iwarp.TerminateError{Cause: cause})
	r.enqueue()
	return false
}

// terminated reads why the peer ends the connection, and what of ours it
// blames.
func (r *rc) terminated(b []byte) {
	q := r.q
	var t rdmap.Term
	t.ParseStream(b, r.cur.req == r.first && !r.cur.mid && r.answers == nil)
	if seq, ok := r.culprit(&t); ok {
		r.failRequests(seq, statusOf(t.Cause))
	}
	q.ctx.raise(AsyncEvent{Type: EventQPFatal, QP: q})
	r.close(&iwarp.TerminateError{Cause: t.Cause, Remote: true})
}

// culprit finds the request that a Terminate tells of, if it is not complete
// yet: the message with its MSN, or the tagged one with its STag and offset.
func (r *rc) culprit(t *rdmap.Term) (seq uint32, ok bool) {
	var h ddp.Header
	if !t.Header(&h) {
		return 0, false
	}
	for seq = r.head; seq != r.tail; seq++ {
		w := r.at(seq)
		switch op, _ := rdmap.ParseControl(h.ULP); {
		case h.Tagged:
			ok = op == rdmap.Write && w.tagged() && w.key == uint32(h.STag) && w.holds(h.TO, int(t.SegLen)-w.headerLen())
		case h.QN == iwarp.QNReadReq:
			ok = w.isRead() && w.isAsked(t, &h)
		case h.QN == iwarp.QNSend:
			ok = !w.isRead() && w.op != OpRDMAWrite && !w.isLocal() && w.msn == uint32(h.MSN)
		}
		if ok {
			return seq, true
		}
	}
	return 0, false
}

// isAsked reports whether a Terminate tells of w, a Read or an atomic. A copy of
// the request tells that better than the MSN: where Linux's siw sends one, it
// has the size of the Read in place of the MSN, and 0 in place of the size.
func (w *wqe) isAsked(t *rdmap.Term, h *ddp.Header) bool {
	var asked, said rdmap.ReadReq
	var atomic rdmap.AtomicReq
	switch {
	case t.ReadReq(&said):
		asked.Parse(w.data[:])
		asked.Size = said.Size
		return w.op == OpRDMARead && asked == said
	case t.AtomicReq(&atomic):
		return w.op != OpRDMARead && w.name == atomic.ID
	}
	return w.msn == uint32(h.MSN)
}
