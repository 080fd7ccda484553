package p2p

import (
	"errors"
	"fmt"
	"math"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/reliable"
	"github.com/xwarp/xwarp/verbs"
)

// network is what reaches the ranks of other hosts: queue pairs, and what they send from and
// receive into.
type network struct {
	stats *Stats
	ctx   *verbs.Context
	pd    *verbs.PD
	qp    *verbs.QP
	cq    *verbs.CQ
	srq   *verbs.SRQ          // of all queue pairs, with connections
	conn  *connector          // nil without
	rel   *reliable.QueuePair // what makes qp reliable, over UD

	posts     int   // work requests posted since the last step of the engine
	latest    *peer // that something was posted to
	batch     batch
	slot      int32 // send buffer of the batch
	tx        buffers
	txFree    []int32
	maxSeg    int          // bytes that fit one datagram
	inlineMax int          // longest message that goes inline with its header
	inline    verbs.SendWR // reused: header in head
	long      verbs.SendWR // reused: from a send buffer
	batched   verbs.SendWR // reused: a batch
	head      [verbs.MaxInline]byte
	rx        buffers
	receive   verbs.RecvWR // reused
	unposted  []int32      // receive buffers that the completion queue had no room for
	words     buffers      // what comes over connections beside datagrams
	linked    buffers      // eager messages that go over them
}

// buffers is an array of equal registered buffers in the arena.
type buffers struct {
	mr     *verbs.MR
	at     mem.Addr
	bytes  []byte
	stride int
}

func (b *buffers) get(i int32, n int) []byte {
	at := int(i) * b.stride
	return b.bytes[at : at+n : at+b.stride]
}

func (b *buffers) addr(i int32) uint64 { return b.mr.Addr() + uint64(int(i)*b.stride) }

// create opens all of it.
func (nw *network) create(ctx *verbs.Context, ep *Endpoint) (err error) {
	nw.stats, nw.ctx = &ep.Stats, ctx
	nw.maxSeg, nw.inlineMax = ctx.Attr().MaxSeg, verbs.MaxInline-headerLen
	nw.inline = verbs.SendWR{Opcode: verbs.OpSend}
	nw.long = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1}
	nw.batched = nw.long
	if nw.pd, err = ctx.AllocPD(); err != nil {
		return err
	}
	size := max(headerLen+ep.cfg.EagerMax, verbs.MaxInline)
	if ep.cfg.Transport == UD {
		err = nw.createUD(&ep.cfg, size)
	} else {
		err = nw.createQueues(ep, size)
	}
	if err != nil {
		return err
	}
	for i := range int32(ep.cfg.Sends) {
		nw.txFree = append(nw.txFree, i)
	}
	if err = nw.carve(&nw.tx, ep.cfg.Sends, size, "send", verbs.LocalWrite); err != nil || !nw.mayConnect(ep.cfg.Transport) {
		return err
	}
	if err = nw.createBeside(ep); err != nil {
		if ep.cfg.Transport == RD { // Config does not ask for them: all goes in datagrams
			return nw.closeConnector()
		}
		return fmt.Errorf("transport %v: %w", ep.cfg.Transport, err)
	}
	return nil
}

// closeConnector ends the connections, if there may be some.
func (nw *network) closeConnector() error {
	c := nw.conn
	if c == nil {
		return nil
	}
	nw.conn = nil
	err := c.close()
	if c.beside && c.srq != nil {
		err = errors.Join(err, c.srq.Destroy())
	}
	return err
}

// mayConnect reports whether connections may stand beside datagrams.
func (nw *network) mayConnect(t Transport) bool {
	return t == Hybrid || t == RD && nw.ctx.Attr().StreamCarrier != ""
}

// createQueues makes the queues, and the queue pair of datagrams.
func (nw *network) createQueues(ep *Endpoint, size int) (err error) {
	depth := verbs.QPCap{MaxSendWR: 512, MaxRecvWR: ep.cfg.Receives}
	completions := depth.MaxSendWR + depth.MaxRecvWR
	t := ep.cfg.Transport
	if t == RC || nw.mayConnect(t) {
		completions += linkSends*min(len(ep.peers)-1, sharedLinks) + wordsIn
	}
	if nw.cq, err = nw.ctx.CreateCQ(verbs.CQInit{Depth: completions}); err != nil {
		return err
	}
	if t == RC {
		if nw.srq, err = nw.pd.CreateSRQ(verbs.SRQInit{MaxWR: ep.cfg.Receives}); err == nil {
			nw.conn, err = openConnector(ep, nw.ctx, nw.srq, false)
		}
	}
	if err != nil {
		return fmt.Errorf("transport %v: %w", t, err)
	}
	if t == RC {
		nw.maxSeg = math.MaxInt // a stream takes a message as a whole
	} else if nw.qp, err = nw.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: nw.cq, RecvCQ: nw.cq, SRQ: nw.srq, Cap: depth, RecvHandler: &ep.match}); err != nil {
		return err
	}
	if err = nw.carve(&nw.rx, ep.cfg.Receives, size, "receive", verbs.LocalWrite); err != nil {
		return err
	}
	nw.receive.NumSGE = 1
	nw.receive.SGL[0] = verbs.SGE{Length: uint32(nw.rx.stride), LKey: nw.rx.mr.LKey()}
	for i := range int32(ep.cfg.Receives) {
		if err = nw.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

func (nw *network) carve(b *buffers, n, size int, what string, access verbs.Access) (err error) {
	b.stride = (size + 63) &^ 63
	arena := nw.ctx.Arena()
	if b.at, err = arena.Alloc(n*b.stride, mem.FrameSize); err != nil {
		return fmt.Errorf("%d eager %s buffers of %d bytes: %w", n, what, b.stride, err)
	}
	b.bytes = arena.At(b.at, n*b.stride)
	b.mr, err = nw.pd.RegMR(b.bytes, access)
	return err
}

// close takes it all apart.
func (nw *network) close() error {
	errs := []error{nw.closeConnector()}
	switch {
	case nw.rel != nil:
		errs = append(errs, nw.rel.Close())
	case nw.qp != nil:
		nw.qp.Destroy()
	}
	if nw.srq != nil {
		errs = append(errs, nw.srq.Destroy())
		nw.srq = nil
	}
	for _, b := range []*buffers{&nw.rx, &nw.tx, &nw.words, &nw.linked} {
		if b.mr != nil {
			errs = append(errs, b.mr.Dereg())
		}
		if b.bytes != nil {
			nw.ctx.Arena().Free(b.at)
		}
		*b = buffers{}
	}
	return errors.Join(errs...)
}

func (nw *network) postRecv(slot int32) error {
	wr := &nw.receive
	wr.WRID = wrRecv | uint64(slot)
	wr.SGL[0].Addr = nw.rx.addr(slot)
	if nw.srq != nil {
		return nw.srq.PostRecv(wr)
	}
	return nw.qp.PostRecv(wr)
}

// repost posts a receive buffer that has come back. When a peer is lost, all that was under way
// to it completes at once, and what is sent then may take the last places in the completion
// queue: the buffer waits for one.
func (nw *network) repost(slot int32) {
	switch err := nw.postRecv(slot); {
	case err == nil:
	case errors.Is(err, verbs.ErrQueueFull):
		nw.unposted = append(nw.unposted, slot)
	default:
		panic("p2p: a receive buffer that has just come back does not fit: " + err.Error())
	}
}

// repostAll posts the buffers that wait.
func (nw *network) repostAll() {
	waiting := nw.unposted
	nw.unposted = nil
	for _, slot := range waiting {
		nw.repost(slot)
	}
}

// meet makes a peer one that datagrams reach.
func (nw *network) meet(p *peer, c *businessCard) error {
	ah, err := nw.pd.CreateAH(c.addr)
	if err != nil {
		return err
	}
	ah.UserData = uint64(p.rank) + 1
	p.qp, p.ah = nw.qp, ah
	if nw.rel != nil {
		return nw.meetUD(p, c)
	}
	return nil
}

// eager sends a message: in a batch if others went before it in this step, else inline or
// from a send buffer. false means no room; then nothing happened.
func (nw *network) eager(p *peer, h front, v view, how sending) bool {
	n := v.len()
	if n <= batchedMax && (nw.posts > 0 || how == burst && p.bursts.waits()) && (p == nw.batch.to && nw.batch.fits(n) || nw.open(p, h, n)) {
		nw.batch.add(h, v, n)
		nw.posts++
		return true
	}
	if n > nw.inlineMax {
		return nw.sendBuffer(p, h, v, n, 0)
	}
	h.put(nw.head[:])
	v.copyTo(nw.head[headerLen : headerLen+n])
	return nw.sendInline(p, nw.head[:headerLen+n], nil)
}

// sendInline posts a Send whose bytes verbs copies. r is told when it has arrived; nil: only
// a failure is told.
func (nw *network) sendInline(p *peer, b []byte, r *Request) bool {
	wr := &nw.inline
	wr.WRID, wr.Flags, wr.InlineData = wrNone|uint64(p.rank)<<wrPeerShift, verbs.Inline, b
	if r == nil {
		return nw.post(p, wr)
	}
	wr.WRID, wr.Flags = r.workID(wrRequest), verbs.Inline|verbs.Signaled
	return nw.postFor(p, wr, r)
}

// sendBuffer posts a header and n bytes of a message in one Send from a send buffer. more is
// verbs.More where the next such Send to p follows at once, else 0.
func (nw *network) sendBuffer(p *peer, h front, v view, n int, more verbs.SendFlags) bool {
	slot, ok := nw.take()
	if !ok {
		return false
	}
	n += headerLen
	b := nw.tx.get(slot, n)
	h.put(b)
	v.copyTo(b[headerLen:])
	nw.long.Flags = verbs.Signaled | more
	return nw.postLong(p, &nw.long, slot, n)
}

// postLong is postBuffer of what may be more than one datagram. If it returns false, the
// buffer is free again.
func (nw *network) postLong(p *peer, wr *verbs.SendWR, slot int32, n int) bool {
	if !nw.postBuffer(p, wr, slot, n) {
		nw.give(slot)
		return false
	}
	if n > nw.maxSeg && (nw.posts > 1 || nw.rel != nil || n > verbs.AtOnce*nw.maxSeg) {
		nw.posts = burstMax + 1 // not all of it has left: the rest needs a step
	}
	return true
}

// take takes a free send buffer. ok is false when there is none.
func (nw *network) take() (slot int32, ok bool) {
	last := len(nw.txFree) - 1
	if last < 0 {
		nw.stats.Queued++
		return 0, false
	}
	slot, nw.txFree = nw.txFree[last], nw.txFree[:last]
	return slot, true
}

// give returns a send buffer.
func (nw *network) give(slot int32) {
	nw.txFree = append(nw.txFree, slot) // never grows: cap is the number of buffers
}

// postBuffer posts a work request from the first n bytes of a send buffer, which comes
// back with its completion.
func (nw *network) postBuffer(p *peer, wr *verbs.SendWR, slot int32, n int) bool {
	wr.WRID = wrBuffer | uint64(p.rank)<<wrPeerShift | uint64(slot)
	wr.SGL[0] = verbs.SGE{Addr: nw.tx.addr(slot), Length: uint32(n), LKey: nw.tx.mr.LKey()}
	if !nw.post(p, wr) {
		return false
	}
	p.buffered++
	return true
}

// postFor posts a work request whose completion comes back to r.
func (nw *network) postFor(p *peer, wr *verbs.SendWR, r *Request) bool {
	if !nw.post(p, wr) {
		return false
	}
	r.inFlight++
	return true
}

// post hands a work request to the queue pair that leads to p. Everything that
// is sent through the network passes here. false means no room.
func (nw *network) post(p *peer, wr *verbs.SendWR) bool {
	if p == nw.batch.to && !nw.flush() { // it is before this one
		return false
	}
	if p.untold && !nw.conn.ep.lanes.announce(p, verbs.More) {
		return false
	}
	wr.AH = p.ah
	var err error
	if p.rel != nil {
		err = nw.rel.PostSend(p.rel, wr)
	} else {
		err = p.qp.PostSend(wr)
	}
	if err != nil {
		return nw.refused(err)
	}
	nw.posts++
	nw.latest, p.used = p, true
	return true
}

// refused counts a full queue. Any other refusal of a request that we built is
// a bug of ours.
func (nw *network) refused(err error) bool {
	if !errors.Is(err, verbs.ErrQueueFull) {
		panic("p2p: verbs refused a work request: " + err.Error())
	}
	nw.stats.Queued++
	return false
}

// open opens a batch to p with room for a message of n bytes, behind what was posted to p
// last. false means that there is to be none, or no room; then nothing happened.
func (nw *network) open(p *peer, h front, n int) bool {
	room := min(nw.maxSeg, headerLen+int(p.eagerMax)) // of one datagram, and of the peer's buffers
	if nw.batch.to != nil && !nw.flush() || nw.latest != p || headerLen+subHeaderLen+n > room {
		return false
	}
	slot, ok := nw.take()
	if ok {
		nw.slot = slot
		nw.batch.open(p, h, nw.tx.get(slot, room))
		nw.posts = max(nw.posts, 1) // as if one had gone before: this one waits
	}
	return ok
}

// flush posts the open batch. false means no room: it stays open.
func (nw *network) flush() bool {
	t := &nw.batch
	p := t.to
	t.to = nil
	if p.err != nil { // the peer takes it no more
		nw.give(nw.slot)
		return true
	}
	if !nw.postBuffer(p, &nw.batched, nw.slot, t.n) {
		t.to = p
		return false
	}
	p.bursts.flushed(t.messages)
	return true
}
