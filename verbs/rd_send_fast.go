package verbs

import (
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// sendFast is the fast path of what most small messages are: a Send or a Write
// that fits one segment, with nothing before it that waits, goes out at once in
// a datagram of its own. It is entered in the books while it is on its way:
// fill, enqueue and recordFast follow. false means that it has to take the long
// way; then nothing was done.
func (q *rdQP) sendFast(wr *SendWR) bool {
	ah, ctx := wr.AH, q.ctx
	c := &ah.conn
	if ctx.transmitted || c.requests.cur != none || c.answers.cur != none || wr.Flags&(Fence|Solicited|More) != 0 {
		return false
	}
	if q.state != StateRTS || ah.peer.Closed() || !ah.peer.Open() || !ah.peer.Snd.CanPush(1) {
		return false
	}
	h := ddp.Header{Last: true}
	switch {
	case wr.Opcode == OpSend && c.sends < max(c.credit, 1):
		h.ULP, h.QN, h.MSN = rdmap.Control(rdmap.Send), iwarp.QNSend, iwarp.MSN(c.msn[0]+1)
	case wr.Opcode == OpRDMAWrite:
		h.Tagged, h.ULP, h.STag, h.TO = true, rdmap.Control(rdmap.Write), iwarp.STag(wr.RKey), wr.RemoteAddr
	default:
		return false
	}
	src, ok := q.shortSource(wr)
	if !ok {
		return false
	}
	b := q.ep.Fast(h.Len() + len(src))
	if b == nil {
		return false
	}
	copy(b[h.Put(b):], src)
	ctx.transmitted = true
	q.ep.SendFast(ctx.cfg.Engine.Now(), ah.peer, q.creditCode())
	return true
}

// shortSource returns what a request sends if that is short and in one piece.
func (q *rdQP) shortSource(wr *SendWR) (b []byte, ok bool) {
	if wr.Flags&Inline != 0 {
		return wr.InlineData, len(wr.InlineData) <= MaxInline
	}
	if wr.NumSGE != 1 || wr.SGL[0].Length > llp.FastMax-ddp.UntaggedLen {
		return nil, false
	}
	b, err := q.ctx.resolve(q.pd, &wr.SGL[0], 0)
	return b, err == nil
}

// recordFast enters request i in the books, which sendFast has sent.
func (q *rdQP) recordFast(ah *AH, i int32) {
	c, w, ctx := &ah.conn, &q.sq.wqes[i], q.ctx
	ctx.ep.Early(&ah.peer.Assoc)
	ah.peer.Snd.Push(ctx.cfg.Engine.Now(), uint32(i), 0, w.total, true)
	w.sent, w.begun = w.total, true
	q.sq.begun++
	if w.op == OpSend {
		c.sends++
	}
	c.answerLast = false
}
