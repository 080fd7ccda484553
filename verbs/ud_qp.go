package verbs

import (
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// udQP is what a queue pair of type UD has besides the common parts.
type udQP struct {
	datagramQP
	line    requestList  // requests that are not sent whole, of all peers
	message uint32       // messages that were posted: numbers Sends and Write-Records
	groups  []netip.Addr // multicast groups that it is attached to
}

// busy reports whether a step has something to do besides receiving.
func (q *udQP) busy(now mono.Time) bool {
	return q.line.cur != none || now >= q.records.deadline
}

// wakeAt returns when a step must look.
func (q *udQP) wakeAt() mono.Time {
	if q.line.cur != none && q.mayBegin() {
		return 0 // waits for the carrier to take more
	}
	return q.records.deadline
}

// post posts a request that is legal.
func (q *udQP) post(wr *SendWR) error {
	switch {
	case !q.mayPost():
		return ErrQueueFull
	case wr.Opcode >= OpLocalInv:
		q.local(wr)
		return nil
	case wr.AH == nil || wr.AH.pd != q.pd:
		q.sendCQ.release()
		return errNoAH()
	}
	i := q.sq.first()
	w := &q.sq.wqes[i]
	err := q.fill(w, wr, i)
	if err == nil && w.op == OpSend && int(w.total) > q.ctx.maxSeg() {
		err = fmt.Errorf("%w: message of %d bytes; a UD Send is one datagram of at most %d (use RDMA_WRITE_RECORD, or RD)", ErrInvalid, w.total, q.ctx.maxSeg())
	}
	if err != nil {
		q.sendCQ.release()
		return err
	}
	q.sq.take()
	q.enqueue(wr, i)
	return nil
}

// enqueue appends request i to those to be sent, and sends what can be sent.
func (q *udQP) enqueue(wr *SendWR, i int32) {
	w := &q.sq.wqes[i]
	w.ah, w.dst = wr.AH, wr.RemoteQPN
	if q.state == StateErr {
		q.complete(i, WRFlushErr)
		return
	}
	if wr.Flags&Numbered != 0 {
		w.record = wr.RecordID
	} else {
		q.message++
		w.msn, w.record = q.message, q.message
	}
	q.sq.append(&q.line, i)
	if !q.ctx.transmitted && q.mayBegin() {
		q.ctx.transmitted = true
		if q.ep.TxRoom() && q.send() {
			q.ep.Flush()
		}
	}
}

// Unsent returns how many requests wait for the carrier to take them, on a queue pair
// of type UD: the others, which were posted before them, have gone out.
func (q *QP) Unsent() int {
	if q.typ != UD {
		return 0
	}
	return q.ud.sq.cap - len(q.ud.sq.free)
}

// Direct reports whether large parts of what s names are sent from where they lie. It
// is cheapest when they are whole frames of memory (mem.FrameSize), but for the first.
func (q *QP) Direct(s *SGE) bool {
	r := q.ctx.keys.lookup(s.LKey)
	return r != nil && r.inside && (q.typ == RD || q.lasting) && q.ctx.maxSeg() >= llp.DirectMin
}

// transmit sends what the carrier takes, ends the records that are due, and
// returns how many datagrams were built, records counted as one.
func (q *udQP) transmit(now mono.Time) (sent int) {
	if now >= q.records.deadline {
		q.records.expire(q.QP, now)
		sent = 1
	}
	if !q.mayBegin() {
		return sent
	}
	for sent < llp.Quota && q.line.cur != none && q.ep.TxRoom() && q.send() {
		sent++
	}
	return sent
}

// send builds one datagram: the next segment, and those behind it that go to
// the same queue pair and fit whole. A request is complete when its last
// segment is handed to the carrier.
func (q *udQP) send() bool {
	l := &q.line
	w := &q.sq.wqes[l.cur]
	ah, dst := w.ah, w.dst
	n, hdr := q.nextSegment(w)
	group, toMany := uint32(0), ah.Remote().Addr().IsMulticast()
	if toMany {
		dst, group = MulticastQPN, ah.remote.Low()
	}
	room := n
	if q.isDirect(ah, w, w.sent, n) {
		room = 0 // the payload needs no frame
	}
	if !q.ep.BeginUD(q.num, dst, group, hdr+room) {
		return false
	}
	if ah.epoch != 0 && !toMany {
		q.ep.NameUD(ah.epoch)
	}
	flags := w.flags
	for {
		i := l.cur
		if q.write(ah, w, q.sq.cut(i, n), n); w.sent == w.total {
			l.cur = w.next
			q.complete(i, Success)
		}
		if l.cur == none {
			break
		}
		w = &q.sq.wqes[l.cur]
		if n, hdr = q.nextSegment(w); w.ah != ah || w.dst != dst && !toMany || (w.flags^flags)&Bulk != 0 || !q.ep.Fits(hdr+n) {
			break
		}
		flags |= w.flags
	}
	q.commit(ah, flags)
	return true
}

// commit sends the open datagram to ah, the way that its flags say.
func (q *udQP) commit(ah *AH, flags SendFlags) {
	path, choice := ah.path, arq.FirstPath
	switch {
	case flags&Bulk != 0 && ah.hasBulk(q.ep):
		path, choice = ah.bulk, arq.SecondPath
	case flags&BulkNext != 0:
		choice = arq.LastFirst
	}
	q.ep.CommitUD(path, choice)
}

// hasBulk reports whether there is a second path to a, which it finds the first time.
func (a *AH) hasBulk(ep *llp.Endpoint) bool {
	if !a.bulkKnown && !a.Remote().Addr().IsMulticast() {
		a.bulk, a.bulkKnown = ep.ResolveBulk(a.remote)
	}
	return a.bulkKnown
}

// nextSegment returns the payload and header length of w's next segment.
func (q *udQP) nextSegment(w *wqe) (n, hdr int) {
	if w.inside {
		hdr = w.headerLen()
		if n = q.ep.Direct(q.ep.MaxPayload(), w.addr+mem.Addr(w.sent), int(w.total-w.sent), hdr); n > 0 && (n == int(w.total) || w.op != OpSend) {
			return n, hdr
		}
	}
	return w.segment(w.sent, q.ep.MaxPayload()-dgram.HeaderLen-dgram.LengthLen)
}

// complete ends request i.
func (q *udQP) complete(i int32, status Status) {
	w := &q.sq.wqes[i]
	q.completeSend(w, status, w.ah)
	w.ah = nil
	q.sq.give(i)
	q.checkDrained()
}

// flush ends what was not sent.
func (q *udQP) flush() {
	l := &q.line
	for l.cur != none {
		i := l.cur
		l.cur = q.sq.wqes[i].next
		q.complete(i, WRFlushErr)
	}
}

// receiveUD takes in an unreliable datagram. What is wrong with it does no
// harm: it is counted, and the rest of it dropped.
func (c *datagrams) receiveUD(now mono.Time, rd *llp.Reader) {
	in := &c.in
	in.rd = rd
	src := source{from: c.ep.From(), epoch: in.h.SrcEpoch, qpn: uint32(in.h.LSN)}
	dst := uint32(in.h.Ack)
	if to := in.h.DstEpoch; dst != MulticastQPN && to != 0 && to != c.ctx.cfg.Epoch {
		c.ep.Stats.RxStale++
		return
	}
	for in.left = int(in.h.Count); in.left > 0; in.left-- {
		n, ok := c.nextULPDU()
		if !ok {
			return
		}
		if dst == MulticastQPN {
			c.multicast(now, &src, n)
			continue
		}
		i := dst - udBase
		if i >= uint32(len(c.uds)) || c.uds[i] == nil || !c.uds[i].takesInbound() {
			c.ep.Stats.RxStale++
			return
		}
		rd.Skip(dgram.LengthLen)
		c.uds[i].place(now, &src, rd, n)
	}
}

// multicast hands a ULPDU of n bytes to every queue pair that is attached to
// its group.
func (c *datagrams) multicast(now mono.Time, src *source, n int) {
	rd := c.in.rd
	rd.Skip(dgram.LengthLen)
	start := *rd
	for _, q := range c.uds {
		if q != nil && q.takesInbound() && q.attached(c.in.h.DstEpoch) {
			*rd = start
			q.place(now, src, rd, n)
		}
	}
	*rd = start
	rd.Skip(n)
}

// place places one ULPDU of n bytes, all of which it consumes.
func (q *udQP) place(now mono.Time, src *source, rd *llp.Reader, n int) {
	end := rd.Len() - n
	var h ddp.Header
	op, _, ok := parse(&h, rd.Peek(min(n, ddp.UntaggedLen)), n)
	if ok {
		n -= h.Len()
		rd.Skip(h.Len())
	}
	switch {
	case ok && (op == rdmap.Send || op == rdmap.SendSE) && h.MO == 0 && h.Last:
		q.placeSend(src, rd, op, n)
	case ok && op == rdmap.WriteRecord:
		q.placeChunk(now, src, rd, &h, n)
	default:
		q.Stats.Malformed++
	}
	rd.Skip(rd.Len() - end)
}

// placeSend completes a receive with a Send of n bytes.
func (q *udQP) placeSend(src *source, rd *llp.Reader, op rdmap.Opcode, n int) {
	e, ok := q.takeRecv()
	if !ok {
		q.Stats.RecvDrops++
		return
	}
	var wc *WC
	if n > int(e.total) {
		q.Stats.Recvs++
		wc = q.tooLong(e.wrid, uint32(n), nil)
	} else {
		wc = q.receive(e, rd, n, nil)
	}
	wc.Flags, wc.SrcQP, wc.SrcEpoch, wc.SrcAddr = sendFlags(op), src.qpn, src.epoch, src.from
}

// placeChunk places a chunk of a Write-Record.
func (q *udQP) placeChunk(now mono.Time, src *source, rd *llp.Reader, h *ddp.Header, n int) {
	var k record.Chunk
	dst, cause := q.grantChunk(h, &k, rd, n)
	if dst == nil {
		q.Stats.refused(cause)
		return
	}
	if r := q.records.admit(q.QP, now, src, &k, h, len(dst)); r != nil {
		rd.Copy(dst)
		q.records.note(q.QP, now, r, &k, len(dst), h.Last)
	}
}
