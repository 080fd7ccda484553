package verbs

import (
	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// express is the short way of what most small messages are: a Send or a Write
// that fits one segment, with nothing before it that waits, goes out at once in
// a datagram of its own, and is entered in the books while it is on its way.
// false means that it has to take the long way; then nothing was done.
func (q *QP) express(ah *AH, i int32) bool {
	c, w := &ah.conn, &q.sq.wqes[i]
	if c.requests.cur != none || c.answers.cur != none || q.ctx.kicked || w.total > llp.SmallMax-ddp.UntaggedLen || w.bufN > 1 {
		return false
	}
	h := ddp.Header{Last: true}
	switch {
	case w.flags&(Fence|Solicited) != 0 || q.state != StateRTS || !ah.peer.Open() || !ah.peer.Snd.CanPush(1):
		return false
	case w.op == OpSend && c.sends < max(c.credit, 1):
		h.ULP, h.QN, h.MSN = rdmap.Control(rdmap.Send), iwarp.QNSend, iwarp.MSN(w.msn)
	case w.op == OpRDMAWrite:
		h.Tagged, h.ULP, h.STag, h.TO = true, rdmap.Control(rdmap.Write), iwarp.STag(w.key), w.raddr
	default:
		return false
	}
	b := q.ep.Small(h.Len() + int(w.total))
	if b == nil {
		return false
	}
	src := w.bufs[0]
	if w.built {
		src = w.data[:w.total]
	}
	copy(b[h.Put(b):], src)
	now, lsn := q.ctx.cfg.Engine.Now(), ah.peer.Snd.Next()
	q.ep.SendSmall(now, ah.peer, lsn, q.creditCode())
	q.ctx.kicked = true
	q.ctx.undated, q.ctx.undatedFrom = ah, lsn
	ah.peer.Snd.Push(now, uint32(i), 0, w.total, true)
	w.sent, w.begun = w.total, true
	q.sq.begun++
	if w.op == OpSend {
		c.sends++
	}
	c.turn = false
	return true
}
