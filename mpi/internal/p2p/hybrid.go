package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Connections beside datagrams, for large data. Everything begins in datagrams, and what is
// short, and the envelopes of all messages, stay there. Where a device copies each frame, the
// kernel's TCP, which takes 64 KiB in one piece, is faster for what is long: when a peer was
// sent enough of that, a connection is made. The Writes of a rendezvous and the FIN behind
// them may go over it, straight into the posted receive; which way is faster is found out
// (link_tune.go). So may the data of shorter messages, without asking (lane.go).
//
//	RTS, CTS          in datagrams
//	Write, FIN ->     over the connection
//	<- FIN            in a datagram: the peer has it
//
// Data that has gaps at the sender is packed into buffers of ours, which the Writes go from. Where the receiver has
// gaps, each of these is a message that names the receive, which unpacks it.
//
// So may long Writes and Reads of one-sided communication. Behind such a Write goes a FIN that
// no receive waits for, and the peer answers it likewise. Messages to the peer may overtake both,
// so their origin has to wait for their end before it tells the peer of them (Request.Apart).
//
// That the stream has taken bytes does not mean that they arrive. So a send keeps its
// memory until the peer has said that it has everything. When a connection breaks, each end
// lets go of it, so that nothing of it is placed or counts any more, and says so: cut, in a
// datagram, which comes behind all words about what has arrived. An end that receives that knows
// that the peer has not got what it has not acknowledged, and never will; it goes again, in
// datagrams. A Write that does overwrites nothing newer, for its origin waits still.
// Reads are repeated at once. There is no second connection then, for one that breaks while
// datagrams pass was cut by something between, and would be again.

// Defaults of Config.
const (
	promoteMessages = config.DefaultPromote
	promoteBytes    = 256 << 10
	connections     = 64
)

// What arrives over connections is FINs, and the data of messages that are not asked for (lane.go).
const (
	wordsIn   = 32 // receive buffers for them
	linkedFIN = headerLen + 4
)

// linkPieces is how many buffers with packed data are posted to a connection at a time: the next ones are packed while the
// peer unpacks these.
const linkPieces = 8

func (c *Config) fillHybrid() error {
	if c.PromoteMessages == 0 {
		c.PromoteMessages = promoteMessages
	}
	if c.PromoteBytes == 0 {
		c.PromoteBytes = promoteBytes
	}
	if c.Connections == 0 {
		c.Connections = connections
	}
	if c.PromoteMessages < 1 || c.PromoteBytes < 1 || c.Connections < 1 {
		return fmt.Errorf("p2p: promotion after %d messages or %d bytes, %d connections: want at least one of each", c.PromoteMessages, c.PromoteBytes, c.Connections)
	}
	return nil
}

// createBeside makes what connections beside datagrams need.
func (nw *network) createBeside(ep *Endpoint) error {
	srq, err := nw.pd.CreateSRQ(verbs.SRQInit{MaxWR: wordsIn, Latest: true, Spoils: true})
	if err != nil {
		return err
	}
	if err = nw.carve(&nw.words, wordsIn, max(linkedFIN, laneHead+laneMost), "word", verbs.LocalWrite); err == nil {
		nw.conn, err = openConnector(ep, nw.ctx, srq, true)
	}
	if nw.conn == nil {
		return errors.Join(err, srq.Destroy())
	}
	if err != nil {
		return err
	}
	for i := range int32(wordsIn) {
		if err := nw.conn.postWord(i); err != nil {
			return err
		}
	}
	nw.conn.channel.Expect(0)
	return ep.lanes.create()
}

// postWord posts a receive for a word.
func (c *connector) postWord(slot int32) error {
	words := &c.ep.net.words
	wr := verbs.RecvWR{WRID: wrWordIn | uint64(slot), NumSGE: 1}
	wr.SGL[0] = verbs.SGE{Addr: words.addr(slot), Length: uint32(words.stride), LKey: words.mr.LKey()}
	return c.srq.PostRecv(&wr)
}

// news reports whether something may have happened to connections since poll was called.
func (c *connector) news() bool { return c.looks != c.channel.Looks() || !c.beside }

// hurry has streams looked at in the next step.
func (c *connector) hurry() {
	if c.beside {
		c.channel.Expect(0)
	}
}

// choose decides which way the data of a send goes, which the receiver has cleared, or that of
// a Write or a Read.
func (c *connector) choose(r *Request, p *peer, w linkWork) {
	if !c.beside || !c.listeners[p.rank].IsValid() {
		return
	}
	l := p.link
	if l == nil {
		c.count(p, r.grant.size)
		return
	}
	if l.state != up {
		return
	}
	r.grant.timed = true
	if l.tune.begin(c.ep.eng.Clock().Now(), r.grant.size, w) == overLink {
		r.grant.linked = true
		c.ep.Stats.Linked++
		c.expect(r)
	}
}

// count notes what is sent to a peer in datagrams, and connects when that is enough.
func (c *connector) count(p *peer, n uint64) {
	cfg := &c.ep.cfg
	p.messages++
	p.bytes += int(n)
	if p.messages < cfg.PromoteMessages && p.bytes < cfg.PromoteBytes {
		return
	}
	if c.links < cfg.Connections && !c.ep.failures.closing {
		c.reach(p)
	}
}

// expect has streams looked at until r is complete.
func (c *connector) expect(r *Request) {
	if c.beside {
		r.grant.expects = true
		c.channel.Expect(1)
	}
}

// finished notes that r is complete, of which choose or expect knew.
func (c *connector) finished(r *Request) {
	if r.grant.expects {
		c.channel.Expect(-1)
	}
	if r.grant.timed {
		c.ep.peers[r.peer].link.tune.ended(c.ep.eng.Clock().Now(), r.grant.size, r.err != nil)
	}
	r.grant.expects, r.grant.timed = false, false
}

// postLink posts a work request of r to the connection with p. false means no room.
func (nw *network) postLink(p *peer, wr *verbs.SendWR, r *Request) bool {
	wr.AH = nil
	if err := p.link.qp.PostSend(wr); err != nil {
		return nw.refused(err)
	}
	if r != nil {
		r.inFlight++
	}
	return true
}

// finishLinked posts the FIN behind the data of r, over the connection. The peer's request
// is named by the header, that of this end behind it.
func (rv *rendezvous) finishLinked(r *Request, p *peer) bool {
	nw := &rv.ep.net
	h := header{kind: kindFIN, source: rv.ep.rank, id: r.grant.request}
	if r.notice == kindActive {
		h.tag = finAlone
	}
	h.put(nw.head[:])
	binary.BigEndian.PutUint32(nw.head[headerLen:], r.wireID())
	wr := &nw.inline
	wr.WRID, wr.Flags, wr.InlineData = wrWord, verbs.Inline, nw.head[:linkedFIN]
	if !nw.postLink(p, wr, nil) {
		return false
	}
	r.state = waitPlaced
	return true
}

// completed takes in what is complete over a connection beside datagrams. What has failed
// needs nothing: the connection has ended, and is severed.
func (c *connector) completed(wc *verbs.WC) {
	ep := c.ep
	switch wc.WRID >> wrKindShift {
	case wrLink >> wrKindShift:
		if ep.failures.ended {
			return
		}
		r := ep.requests.lookup(uint32(wc.WRID))
		if r == nil {
			panic("p2p: a Write over a connection completes for a request that has ended")
		}
		if r.inFlight--; r.inFlight == 0 && (r.state == waitAck || r.state == lingering) {
			r.complete()
		}
	case wrPiece >> wrKindShift:
		ep.net.give(int32(uint32(wc.WRID)))
		ep.peers[wc.WRID>>wrPeerShift&wrPeerMask].link.pieces--
	case wrWordIn >> wrKindShift:
		slot := int32(uint32(wc.WRID))
		if wc.Status != verbs.Success || c.arrivedWord(slot, ep.net.words.get(slot, int(wc.ByteLen))) {
			c.returnWord(slot)
		}
	}
}

// returnWord posts a receive buffer that has come back.
func (c *connector) returnWord(slot int32) {
	if err := c.postWord(slot); err != nil {
		panic("p2p: a receive buffer for words that has just come back does not fit: " + err.Error())
	}
}

// arrivedWord takes in what has come over a connection: the data of a message that was not
// asked for, or the FIN of one whose data is placed, of which it tells the sender. It reports
// whether the buffer is needed no more.
func (c *connector) arrivedWord(slot int32, b []byte) bool {
	ep := c.ep
	var h header
	if !h.parse(b, len(ep.peers)) || h.source == ep.rank || h.kind != kindData && h.kind != kindWhole && (h.kind != kindFIN || len(b) != linkedFIN) {
		ep.Stats.Malformed++
		return true
	}
	p := &ep.peers[h.source]
	if p.err != nil || p.link == nil || p.link.state == over {
		ep.Stats.Stale++ // it goes again in datagrams
		return true
	}
	p.used, p.answered = true, true
	switch {
	case h.kind == kindData && h.tag == flagPiece:
		c.arrivedPiece(&h, b[headerLen:])
		return true
	case h.kind != kindFIN:
		return ep.lanes.arrivedData(p, &h, slot, b)
	}
	switch r := ep.requests.lookup(h.id); {
	case h.tag == finAlone:
	case r == nil || r.state != waitFIN || r.peer != h.source:
		ep.Stats.Stale++
	case r.grant.stream && r.written < r.grant.size:
		ep.Stats.Malformed++
		r.abandon(match.Envelope{Context: r.entry.Context, Source: h.source, Tag: r.st.Tag})
	case !ep.delegator.arrivedFIN(&h, r):
		r.complete()
	}
	ep.out.brief(p, header{kind: kindFIN, id: binary.BigEndian.Uint32(b[headerLen:])})
	return true
}

// postPacked posts the next bytes of r to the connection from a buffer of ours, by a Write or as a message of
// a stream, and returns how many those were, 0 when there is no room. r.data stays whole.
func (rv *rendezvous) postPacked(r *Request, p *peer, left int) int {
	net := &rv.ep.net
	if p.link.pieces == linkPieces {
		return 0
	}
	slot, ok := net.take()
	if !ok {
		return 0
	}
	wr, head := &rv.wr, 0
	if r.grant.stream {
		wr, head = &net.long, headerLen
	}
	n := min(left, net.tx.stride-head)
	b := net.tx.get(slot, head+n)
	if head > 0 {
		h := header{kind: kindData, source: rv.ep.rank, tag: flagPiece, id: r.grant.request}
		h.put(b)
	} else {
		wr.RemoteAddr, wr.RKey = r.grant.addr+r.written, r.grant.rkey
	}
	rest := r.data
	rest.skip(int(r.written))
	rest.view().copyTo(b[head:])
	wr.WRID = wrPiece | uint64(p.rank)<<wrPeerShift | uint64(slot)
	wr.SGL[0] = verbs.SGE{Addr: net.tx.addr(slot), Length: uint32(head + n), LKey: net.tx.mr.LKey()}
	if wr.Flags |= verbs.More; p.link.pieces == linkPieces-1 && n < left {
		wr.Flags = verbs.Signaled // else the next one, or the FIN, follows
	}
	posted := net.postLink(p, wr, nil)
	if wr.Flags = verbs.Signaled; !posted {
		net.give(slot)
		return 0
	}
	p.link.pieces++
	return n
}

// arrivedPiece takes in the next bytes of a stream. The data of the receive stays whole: if the connection
// breaks, all of it comes again.
func (c *connector) arrivedPiece(h *header, b []byte) {
	r := c.ep.requests.lookup(h.id)
	if !c.ep.rendezvous.awaits(r, h, b) || r.written > 0 && !r.grant.linked {
		c.ep.Stats.Stale++
		return
	}
	r.grant.linked = true
	rest := r.data
	rest.skip(int(r.written))
	r.written += uint64(rest.fill(b))
}

// placed ends a send of which the peer has everything.
func (c *connector) placed(r *Request) {
	p := &c.ep.peers[r.peer]
	if p.idle != nil && r.err == nil {
		c.ep.pieces.arrived(p.idle, askedFor, r.wireID())
	}
	if r.inFlight > 0 { // the completion is in the queue
		r.state = waitAck
		return
	}
	r.complete()
}

// sever lets go of a connection beside datagrams, and tells the peer.
func (c *connector) sever(l *link) {
	if l.state != over {
		c.drop(l)
		l.state = over
		c.links--
		for _, r := range c.ep.requests.all {
			if r.state == waitFIN && r.peer == l.rank && r.grant.linked {
				r.unlink()
			}
		}
	}
	if !l.told {
		l.told = true
		c.ep.lanes.severed(&c.ep.peers[l.rank])
		c.ep.out.notify(int(l.rank), kindCut, 0, 0)
	}
}

// severAll ends all connections beside datagrams.
func (c *connector) severAll() {
	for i := range c.ep.peers {
		if p := &c.ep.peers[i]; p.link != nil && p.err == nil {
			c.sever(p.link)
		}
	}
}

// arrivedCut handles that a peer has let go of its connection: what it has not acknowledged
// goes again.
func (c *connector) arrivedCut(p *peer) {
	if c == nil || !c.beside || p.link != nil && p.link.cut {
		return
	}
	if p.link == nil {
		p.link = &link{rank: p.rank, state: over}
	}
	c.sever(p.link)
	p.link.cut = true
	c.ep.lanes.repeat(p)
	for _, r := range c.ep.requests.all {
		if r.state == waitPlaced && r.peer == p.rank {
			if r.state = sendData; r.notice == kindActive {
				r.state = sendWrite
			}
			c.ep.out.advanceOrQueue(r)
		}
	}
}

// missed decides about a send whose data is to go over a connection that is there no more.
// It reports whether the data is to go now, in datagrams; else it waits for the peer to let
// go of the connection.
func (c *connector) missed(r *Request, l *link) bool {
	if !l.cut {
		r.state = waitPlaced
		return false
	}
	r.unlink()
	return true
}

// unlink has all data of r go in datagrams.
func (r *Request) unlink() { r.grant.linked, r.written = false, 0 }
