package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// datagramQP is what queue pairs of types RD and UD have besides the common parts.
type datagramQP struct {
	*QP
	ep *llp.Endpoint
	sq sendQueue
}

// mayPost takes a place for one more request, if there is one once the noted
// acknowledgements are applied.
func (q *datagramQP) mayPost() bool {
	if len(q.sq.free) == 0 && q.ep.Deferred() {
		q.ctx.deferredWork(q.ctx.cfg.Engine.Now())
	}
	return len(q.sq.free) > 0 && q.sendCQ.reserve()
}

// errNoAH says what a request without a destination lacks.
func errNoAH() error {
	return fmt.Errorf("%w: the request needs an address handle of the queue pair's protection domain, and RD one of a host", ErrInvalid)
}

// local does a request without a peer, at once, in an entry that stays free.
func (q *datagramQP) local(wr *SendWR) {
	w := &q.sq.wqes[q.sq.first()]
	w.setLocal(wr)
	q.completeSend(w, q.do(wr), nil)
}

// write puts the segment of w with the n bytes from off on into the open datagram, to ah.
func (q *datagramQP) write(ah *AH, w *wqe, off uint32, n int) {
	if !q.granted(w) {
		q.writeRevoked(w)
		return
	}
	var h ddp.Header
	w.header(&h, off, n)
	if w.op == OpRDMAWriteRecord {
		k := record.Chunk{ID: w.record, Length: w.total, Offset: off}
		b := q.ep.ULPDU(w.headerLen()+n, w.headerLen())
		h.Put(b)
		k.Put(b[ddp.TaggedLen:])
	} else {
		h.Put(q.ep.ULPDU(h.Len()+n, h.Len()))
	}
	switch {
	case w.built && off+uint32(n) <= w.total: // as most short messages are
		q.ep.Payload(w.data[off : off+uint32(n)])
		return
	case q.isDirect(ah, w, off, n):
		q.ep.Attach(w.addr+mem.Addr(off), n)
		return
	}
	var to [MaxSGE][]byte
	for _, b := range to[:w.payload(&to, off, n)] {
		q.ep.Payload(b)
	}
}

// writeRevoked puts a Terminate into the open datagram in place of a segment of
// a Read Response that may not be sent any more. A peer that has the segment,
// and whose acknowledgement was lost, takes it for a duplicate and is content:
// a region may be revoked as soon as the peer says that it has read it.
func (q *datagramQP) writeRevoked(w *wqe) {
	u := w.readRequest()
	var t rdmap.Term
	t.Blame(rdmap.InvalidSTag, u[:ddp.UntaggedLen], len(u))
	var body [rdmap.TermMaxLen]byte
	n := t.Put(body[:])
	h := terminateHeader()
	h.Put(q.ep.ULPDU(ddp.UntaggedLen+n, ddp.UntaggedLen))
	q.ep.Payload(body[:n])
}

// isDirect reports whether n bytes of w from off on are sent from where they
// lie.
func (q *datagramQP) isDirect(ah *AH, w *wqe, off uint32, n int) bool {
	return w.inside && n >= llp.DirectMin && off < w.total &&
		q.ep.Direct(q.most(ah), w.addr+mem.Addr(off), n, w.headerLen()) == n
}

// most returns the largest payload of a datagram to ah in bytes.
func (q *datagramQP) most(ah *AH) int {
	if q.typ == UD {
		return q.ep.MaxPayload()
	}
	return ah.peer.Most()
}
