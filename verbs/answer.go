package verbs

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// answerRead makes w the answer to the Read Request msn, which is sent from the region that
// it reads. When ok is false the request is to be refused.
func (q *QP) answerRead(w *wqe, msn uint32, r *rdmap.ReadReq) (cause iwarp.Cause, ok bool) {
	src, cause := q.grant(uint32(r.SrcSTag), r.SrcTO, r.Size, RemoteRead)
	if src == nil {
		return cause, false
	}
	q.Stats.RemoteReads++
	*w = wqe{op: opReadResponse, msn: msn, total: r.Size, key: uint32(r.SinkSTag), raddr: r.SinkTO, bufN: 1}
	w.bufs[0] = src
	r.Put(w.data[:])
	return cause, true
}

// granted reports whether w may be sent: the region that a Read Response is
// sent from may have been revoked since it was asked for.
func (q *QP) granted(w *wqe) bool { return w.op != opReadResponse || w.stillGranted(q) }

func (w *wqe) stillGranted(q *QP) bool {
	var r rdmap.ReadReq
	r.Parse(w.data[:])
	b, _ := q.grant(uint32(r.SrcSTag), r.SrcTO, r.Size, RemoteRead)
	return b != nil
}

// answerAtomic does an atomic operation and makes w its answer: once, as every
// ULPDU is delivered once.
func (q *QP) answerAtomic(w *wqe, sent *[4]uint32, r *rdmap.AtomicReq) (cause iwarp.Cause, ok bool) {
	if cause, ok = r.Check(); !ok {
		return cause, false
	}
	b, cause := q.grant(uint32(r.STag), r.TO, 8, RemoteAtomic)
	if b == nil {
		return cause, false
	}
	old, ok := apply(b, r)
	if !ok {
		return rdmap.StreamCatastrophic, false // the region does not lie on 8 bytes
	}
	q.Stats.RemoteAtomics++
	sent[iwarp.QNAtomicResp]++
	*w = wqe{op: opAtomicResponse, built: true, total: rdmap.AtomicRespLen, msn: sent[iwarp.QNAtomicResp]}
	resp := rdmap.AtomicResp{ID: r.ID, Value: old}
	resp.Put(w.data[:])
	return cause, true
}

// apply does an atomic operation on the 8 bytes at b, against everything else
// on this host that uses atomic instructions.
func apply(b []byte, r *rdmap.AtomicReq) (old uint64, ok bool) {
	for {
		old, ok = mem.Load64(b)
		if !ok {
			return 0, false
		}
		if mem.CompareAndSwap64(b, old, r.Apply(old)) {
			return old, true
		}
	}
}

// sink returns the STag and the tagged offset under which a Read asks for its answer.
func (w *wqe) sink() (key iwarp.STag, at uint64) {
	var r rdmap.ReadReq
	r.Parse(w.data[:])
	return r.SinkSTag, r.SinkTO
}

// placeResponse places the segment of a Read Response, of n bytes, that begins off bytes
// into the answer to w. false: it does not belong there.
func (w *wqe) placeResponse(h *ddp.Header, off uint64, rd *llp.Reader, n int) bool {
	size := uint64(w.size)
	if off > size || uint64(n) > size-off || h.Last != (off+uint64(n) == size) {
		return false
	}
	w.scatter(int(off), rd, n)
	w.got += uint32(n)
	return true
}

// isAtomic reports whether w is an atomic.
func (w *wqe) isAtomic() bool { return w.isRead() && w.op != OpRDMARead }

// placeOld places the old value that an atomic has found.
func (w *wqe) placeOld(value uint64) {
	order.PutUint64(w.bufs[0], value)
	w.got = w.size
}
