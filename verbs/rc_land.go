package verbs

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// Messages of one segment that follow each other are often as long as the one before. Then the payload of the next one is
// received into the buffer of the receive that it will take, and its header, its trailer and what comes behind it into
// streams.in, in one system call. What turns out to be something else is moved to its place in streams.in, and taken in as without
// this. The buffer then has bytes behind its message that are not of it, which SRQInit.Spoils allows.

// landHead is what comes before the payload.
const landHead = mpa.LengthLen + ddp.UntaggedLen

// landing returns the receive that a Send as long as the latest one will take, or nil if the next bytes are to be
// received into streams.in, where have bytes of at most most are.
func (r *rcReceiver) landing(have, most int) *rqe {
	q := r.q
	if r.long == 0 || have > 0 || landHead+r.long >= most || r.predicted.from == nil || r.rx.CRC || r.rx.Markers {
		return nil
	}
	rq := &q.rq
	if q.srq != nil {
		if rq = &q.srq.rq; len(q.srq.line.waiting) > 0 || q.recvCQ.room() == 0 {
			return nil
		}
	}
	if !rq.spoils || rq.len() == 0 || r.msg.used || !r.heard || r.waits || r.phase != rcOpen || !q.takesInbound() {
		return nil
	}
	if e := rq.first(); len(e.buf) >= r.long {
		return e
	}
	return nil
}

// land receives at most most bytes, the payload of the first message into the buffer of e. It returns how many bytes came, and how
// many of them were taken in; the others lie in streams.in at their offset.
func (r *rcReceiver) land(e *rqe, most int) (n, used int, eof bool) {
	s, q := &r.q.ctx.streams, r.q
	head, behind := s.in[:landHead], landHead+r.long
	s.lands = [3][]byte{head, e.buf[:r.long], s.in[behind:most]}
	n, eof = r.predicted.from.RecvVector(s.lands[:])
	if n == 0 {
		return 0, 0, eof
	}
	size := ddp.UntaggedLen + r.long
	whole := mpa.LengthLen + size + mpa.Pad(size) + mpa.CRCLen
	u := head[mpa.LengthLen:]
	if n < whole || int(binary.BigEndian.Uint16(head)) != size || !rdmap.IsWholeSend(u) || msn(u) != r.got[iwarp.QNSend]+1 {
		copy(s.in[landHead:max(landHead, min(n, behind))], e.buf)
		return n, 0, eof
	}
	e, _ = r.takeRecv()
	r.got[iwarp.QNSend]++
	_, _ = q.received(e.wrid, uint32(r.long), 0, 0, nil) // fails only with an STag to invalidate
	return n, whole, eof
}

// msn returns the number of an untagged message.
func msn(u []byte) uint32 {
	var h ddp.Header
	h.Parse(u)
	return uint32(h.MSN)
}
