package verbs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/arq"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// unreliable is what a queue pair of type UD has besides the common parts.
type unreliable struct {
	line    line // requests that are not sent whole, of all peers
	message uint32
	groups  []netip.Addr // multicast groups that it is attached to
	q       *QP
}

// maxGroups is how many multicast groups a queue pair may be attached to.
const maxGroups = 64

// busy reports whether a step has something to do besides receiving.
func (u *unreliable) busy(now mono.Time) bool {
	return u.line.cur != none || now >= u.q.records.deadline
}

// deadline returns when a step must look.
func (u *unreliable) deadline() mono.Time {
	if u.line.cur != none && u.q.mayBegin() {
		return 0 // waits for the carrier to take more
	}
	return u.q.records.deadline
}

// enqueueUD appends request i to those to be sent, and sends what can be sent.
func (q *QP) enqueueUD(wr *SendWR, i int32) {
	w := &q.sq.wqes[i]
	w.ah, w.next, w.name = wr.AH, none, wr.RemoteQPN
	if q.state == StateErr {
		q.completeUD(i, WRFlushErr)
		return
	}
	if wr.Flags&Numbered != 0 {
		w.msn = wr.RecordID
	} else {
		q.ud.message++
		w.msn = q.ud.message
	}
	l := &q.ud.line
	if l.cur == none {
		l.cur = i
	} else {
		q.sq.wqes[l.tail].next = i
	}
	l.tail = i
	if !q.ctx.kicked && q.mayBegin() {
		q.ctx.kicked = true
		if q.ep.TxRoom() && q.sendUD() {
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
	return q.sq.cap - len(q.sq.free)
}

// Direct reports whether large parts of what s names are sent from where they lie. It
// is cheapest when they are whole frames of memory (mem.FrameSize), but for the first.
func (q *QP) Direct(s *SGE) bool {
	r := q.ctx.keys.lookup(s.LKey)
	return r != nil && r.inside && (q.typ == RD || q.lasting) && q.ctx.maxSeg() >= llp.DirectMin
}

// pumpUD sends what the carrier takes, ends the records that are due, and
// returns how many datagrams were built, records counted as one.
func (q *QP) pumpUD(now mono.Time) (sent int) {
	if now >= q.records.deadline {
		q.records.expire(q, now)
		sent = 1
	}
	if !q.mayBegin() {
		return sent
	}
	for sent < pumpQuota && q.ud.line.cur != none && q.ep.TxRoom() && q.sendUD() {
		sent++
	}
	return sent
}

// sendUD builds one datagram: the next segment, and those behind it that go to
// the same queue pair and fit whole. A request is complete when its last
// segment is handed to the carrier.
func (q *QP) sendUD() bool {
	l := &q.ud.line
	w := &q.sq.wqes[l.cur]
	ah, dst := w.ah, w.name
	n, hdr := q.nextUD(w)
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
		if q.cutUD(w, n) {
			l.cur = w.next
			q.completeUD(i, Success)
		}
		if l.cur == none {
			break
		}
		w = &q.sq.wqes[l.cur]
		if n, hdr = q.nextUD(w); w.ah != ah || w.name != dst && !toMany || (w.flags^flags)&Bulk != 0 || !q.ep.Fits(hdr+n) {
			break
		}
		flags |= w.flags
	}
	q.commitUD(ah, flags)
	return true
}

// commitUD sends the open datagram to ah, the way that its flags say.
func (q *QP) commitUD(ah *AH, flags SendFlags) {
	path, turn := ah.path, arq.FirstWay
	switch {
	case flags&Bulk != 0 && ah.hasBulk(q.ep):
		path, turn = ah.bulk, arq.SecondWay
	case flags&BulkNext != 0:
		turn = arq.LastFirst
	}
	q.ep.CommitUD(path, turn)
}

// hasBulk reports whether there is a second way to a, which it finds the first time.
func (a *AH) hasBulk(ep *llp.Endpoint) bool {
	if !a.bulkKnown && !a.Remote().Addr().IsMulticast() {
		a.bulk, a.bulkKnown = ep.ResolveBulk(a.remote)
	}
	return a.bulkKnown
}

// nextUD returns the payload and header length of w's next segment.
func (q *QP) nextUD(w *wqe) (n, hdr int) {
	hdr = w.headerLen()
	if w.inside {
		if n = q.ep.Direct(q.ep.MaxPayload(), w.addr+mem.Addr(w.sent), int(w.total-w.sent), hdr); n > 0 && (n == int(w.total) || w.op != OpSend) {
			return n, hdr
		}
	}
	return min(int(w.total-w.sent), q.ep.MaxPayload()-dgram.HeaderLen-dgram.LengthLen-hdr), hdr
}

// cutUD puts the next n bytes of w into the open datagram and reports whether
// they were the last.
func (q *QP) cutUD(w *wqe, n int) bool {
	off := w.sent
	w.sent += uint32(n)
	if !w.begun {
		w.begun = true
		q.sq.begun++
	}
	if w.op == OpRDMAWriteRecord {
		q.writeChunk(w.ah, w, off, n)
	} else {
		h := ddp.Header{Last: true, ULP: rdmap.Control(sendOpcode(w)), QN: iwarp.QNSend, MSN: iwarp.MSN(w.msn)}
		h.Put(q.ep.ULPDU(h.Len()+n, h.Len()))
		q.payload(w.ah, w, 0, n)
	}
	return w.sent == w.end
}

// completeUD ends request i.
func (q *QP) completeUD(i int32, status Status) {
	w := &q.sq.wqes[i]
	q.count(w.op, status)
	if w.flags&Signaled != 0 || status != Success {
		*q.sendCQ.next() = WC{WRID: w.wrid, Status: status, Opcode: w.op, ByteLen: w.size, QPNum: q.num, Src: w.ah}
	} else {
		q.sendCQ.release()
	}
	w.ah = nil
	q.sq.give(i)
	q.checkDrained()
}

// flushUD ends what was not sent.
func (q *QP) flushUD() {
	l := &q.ud.line
	for l.cur != none {
		i := l.cur
		l.cur = q.sq.wqes[i].next
		q.completeUD(i, WRFlushErr)
	}
}

// receiveUD takes in an unreliable datagram. Whatever is wrong with it harms
// nobody: it is counted, and the rest of it dropped.
func (c *Context) receiveUD(now mono.Time, rd *llp.Reader) {
	in := &c.in
	in.rd = rd
	src := source{from: c.ep.From(), epoch: in.h.SrcEpoch, qpn: uint32(in.h.LSN)}
	dst := uint32(in.h.Ack)
	if to := in.h.DstEpoch; dst != MulticastQPN && to != 0 && to != c.cfg.Epoch {
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
		c.uds[i].placeUD(now, &src, rd, n)
	}
}

// multicast hands a ULPDU of n bytes to every queue pair that is attached to
// its group.
func (c *Context) multicast(now mono.Time, src *source, n int) {
	rd := c.in.rd
	rd.Skip(dgram.LengthLen)
	start := *rd
	for _, q := range c.uds {
		if q != nil && q.takesInbound() && q.attached(c.in.h.DstEpoch) {
			*rd = start
			q.placeUD(now, src, rd, n)
		}
	}
	*rd = start
	rd.Skip(n)
}

// placeUD places one ULPDU of n bytes, all of which it consumes.
func (q *QP) placeUD(now mono.Time, src *source, rd *llp.Reader, n int) {
	end := rd.Len() - n
	var h ddp.Header
	if h.Parse(rd.Peek(min(n, ddp.UntaggedLen))) {
		n -= h.Len()
		rd.Skip(h.Len())
		switch op, _, ok := rdmap.Check(&h, n); {
		case ok && (op == rdmap.Send || op == rdmap.SendSE) && h.MO == 0 && h.Last:
			q.placeSendUD(src, rd, op, n)
		case ok && op == rdmap.WriteRecord:
			q.chunkUD(now, src, rd, &h, n)
		default:
			q.Stats.Malformed++
		}
	} else {
		q.Stats.Malformed++
	}
	rd.Skip(rd.Len() - end)
}

// placeSendUD completes a receive with a Send of n bytes.
func (q *QP) placeSendUD(src *source, rd *llp.Reader, op rdmap.Opcode, n int) {
	e, ok := q.takeRecv()
	if !ok {
		q.Stats.RecvDrops++
		return
	}
	wc := WC{WRID: e.wrid, Opcode: OpRecv, Flags: sendFlags(op), ByteLen: uint32(n), QPNum: q.num, SrcQP: src.qpn, SrcEpoch: src.epoch, SrcAddr: src.from}
	if n > int(e.total) {
		wc.Status = LocLenErr
	} else {
		e.scatter(0, rd, n)
		q.Stats.RecvBytes += uint64(n)
	}
	q.Stats.Recvs++
	*q.recvCQ.next() = wc
}

// chunkUD places a chunk of a Write-Record.
func (q *QP) chunkUD(now mono.Time, src *source, rd *llp.Reader, h *ddp.Header, n int) {
	var k record.Chunk
	k.Parse(rd.Peek(record.ChunkLen))
	rd.Skip(record.ChunkLen)
	n -= record.ChunkLen
	dst, _ := q.grant(uint32(h.STag), h.TO, uint32(n), RemoteWrite)
	switch {
	case dst == nil:
		q.Stats.Refused++
	case !k.Fits(h.TO, n, h.Last):
		q.Stats.Malformed++
	default:
		if r := q.records.admit(q, now, src, &k, h, n); r != nil {
			rd.Copy(dst)
			q.records.note(q, now, r, &k, n, h.Last)
		}
	}
}

// AttachMcast makes a UD queue pair receive what is sent to a multicast group, of the
// family of this endpoint's address, and the port of this endpoint
// (ibv_attach_mcast(3)). Datagrams name the last four bytes of the group, so of groups
// of IPv6 that have the same ones a context can be in one.
func (q *QP) AttachMcast(group netip.Addr) error {
	carrier, ok := q.ctx.cfg.Datagram.(fabric.Multicaster)
	group = group.Unmap()
	switch {
	case q.typ != UD:
		return fmt.Errorf("%w: only queue pairs of type UD receive multicast", ErrInvalid)
	case !ok:
		return fmt.Errorf("%w: %s carries no multicast", ErrInvalid, q.ctx.Attr().Carrier)
	case !group.IsMulticast() || group.Is4() != q.ctx.Addr().Addr().Is4():
		return fmt.Errorf("%w: %v is not a multicast group (224.0.0.0/4, or ff00::/8) of the family of %v", ErrInvalid, group, q.ctx.Addr().Addr())
	case q.ctx.nameTaken(group):
		return fmt.Errorf("%w: this context is in another group that ends like %v", ErrInvalid, group)
	case slices.Contains(q.ud.groups, group):
		return nil
	case len(q.ud.groups) == maxGroups:
		return fmt.Errorf("%w: the queue pair is attached to %d groups already", ErrInvalid, maxGroups)
	}
	if !q.ctx.inGroup(group) {
		if err := carrier.Join(group); err != nil {
			return fmt.Errorf("verbs: joining %v: %w", group, err)
		}
	}
	q.ud.groups = append(q.ud.groups, group)
	return nil
}

// DetachMcast ends that (ibv_detach_mcast(3)).
func (q *QP) DetachMcast(group netip.Addr) error {
	i := slices.Index(q.ud.groups, group.Unmap())
	if i < 0 {
		return fmt.Errorf("%w: the queue pair is not attached to %v", ErrInvalid, group)
	}
	q.ud.groups = slices.Delete(q.ud.groups, i, i+1)
	if q.ctx.inGroup(group.Unmap()) {
		return nil
	}
	return q.ctx.cfg.Datagram.(fabric.Multicaster).Leave(group.Unmap())
}

// inGroup reports whether any queue pair is attached to a group.
func (c *Context) inGroup(group netip.Addr) bool {
	return slices.ContainsFunc(c.uds, func(q *QP) bool { return q != nil && slices.Contains(q.ud.groups, group) })
}

// attached reports whether the queue pair wants what is sent to a group.
func (q *QP) attached(group uint32) bool {
	for _, g := range q.ud.groups {
		if group == nameOf(g) {
			return true
		}
	}
	return false
}

// nameOf returns how datagrams name a group.
func nameOf(group netip.Addr) uint32 { return RemoteOf(netip.AddrPortFrom(group, 0)).Low() }

// nameTaken reports whether a queue pair is attached to another group with the name
// of this one.
func (c *Context) nameTaken(group netip.Addr) bool {
	return slices.ContainsFunc(c.uds, func(q *QP) bool {
		return q != nil && slices.ContainsFunc(q.ud.groups, func(g netip.Addr) bool { return g != group && nameOf(g) == nameOf(group) })
	})
}

// leaveAll detaches from all groups.
func (q *QP) leaveAll() (err error) {
	for len(q.ud.groups) > 0 && err == nil {
		err = q.DetachMcast(q.ud.groups[0])
	}
	return err
}
