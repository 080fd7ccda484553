package verbs

import (
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// blame counts what was not granted, or makes no sense, and says in t why: seg is the
// segment from its DDP header on as far as it is at hand, n its length.
func (q *QP) blame(t *rdmap.Term, cause iwarp.Cause, seg []byte, n int) {
	q.Stats.refused(cause)
	t.Blame(cause, seg, n)
}

// refused counts a ULPDU that was refused.
func (s *QPStats) refused(cause iwarp.Cause) {
	if cause.Protection() {
		s.Refused++
	} else {
		s.Malformed++
	}
}

// refusalEvent returns the event that tells that a peer was refused, access saying that it
// is for memory that was not granted. A Send with Invalidate of a key that names nothing is
// that on RD, and a bad request on RC.
func refusalEvent(access bool) EventType {
	if access {
		return EventQPAccessErr
	}
	return EventQPReqErr
}

// statusOf returns how a request ends that the peer has refused with this
// cause.
func statusOf(c iwarp.Cause) Status {
	switch {
	case c.Protection() || c == rdmap.OperationInvalidate:
		return RemAccessErr
	case c.Layer() == iwarp.LayerLLP || c.Type() == 0:
		return RemOpErr
	}
	return RemInvReqErr
}

// terminateHeader is the header of every Terminate (RFC 5040, section 4.8).
func terminateHeader() ddp.Header { return controlHeader(rdmap.Terminate, 1) }

// controlHeader is the header of a message that RDMAP itself reads, which is one segment.
func controlHeader(op rdmap.Opcode, msn uint32) ddp.Header {
	return ddp.Header{Last: true, ULP: rdmap.Control(op), QN: op.QN(), MSN: iwarp.MSN(msn)}
}

// isBlamed reports whether a Terminate, which holds header h, tells of w, a request: the
// message with its MSN, or the tagged one with its STag and offset.
func (w *wqe) isBlamed(t *rdmap.Term, h *ddp.Header) bool {
	switch op, _ := rdmap.ParseControl(h.ULP); {
	case h.Tagged:
		return op != rdmap.ReadResponse && w.tagged() && w.key == uint32(h.STag) && w.holds(h.TO, int(t.SegLen)-w.headerLen())
	case h.QN == iwarp.QNReadReq:
		return w.isRead() && w.isAsked(t, h)
	case h.QN == iwarp.QNSend:
		return !w.isRead() && !w.isLocal() && w.op != OpRDMAWrite && w.op != OpRDMAWriteRecord && w.msn == uint32(h.MSN)
	}
	return false
}

// holds reports whether a segment of n bytes at tagged offset to may be one of w's.
func (w *wqe) holds(to uint64, n int) bool {
	off := to - w.raddr
	return off <= uint64(w.total) && uint64(max(n, 0)) <= uint64(w.total)-off
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

// readRequest puts the Read Request together again that w, a Read Response, answers.
func (w *wqe) readRequest() (u [ddp.UntaggedLen + rdmap.ReadReqLen]byte) {
	h := controlHeader(rdmap.ReadRequest, w.msn)
	copy(u[h.Put(u[:]):], w.data[:rdmap.ReadReqLen])
	return u
}
