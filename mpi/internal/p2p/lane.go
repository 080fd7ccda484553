package p2p

import (
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Messages of several datagrams, up to 64 KiB, may have their data go over the connection
// beside datagrams without asking, while the envelope goes in a datagram:
//
//	data ->      over the connection, from a buffer of ours
//	linked ->    envelope and length, in a datagram
//	<- have      now and then: how many of them this end has, all in all
//
// So the order of messages is that of datagrams, whichever way the data of each goes, and
// the data of the n-th one announced is the n-th one on the connection. Data that comes
// before its envelope stays in its receive buffer until then.
//
// The sender keeps the data until the peer has said that it has it. When the connection
// breaks, both ends say what they have, and then cut (hybrid.go); data that the other end
// has not got goes again, in datagrams, for the messages that were announced first.

const (
	laneMost    = 64 << 10   // bytes of the longest message
	laneLeast   = 3 << 10    // a message of several datagrams goes so only if it is longer
	laneAlone   = 6          // and if it has more datagrams than so many, and more bytes
	laneAlways  = 16<<10 - 1 // than so many, or is not alone
	laneBuffers = 32         // send buffers, of all peers
)

// laneAsks is set in the id of an envelope, above the length, when the receiver is to say
// what it has as soon as it has this message.
const laneAsks = 1 << 24

// lanes is the part of an endpoint that sends and receives such messages.
type lanes struct {
	ep    *Endpoint
	least int // bytes of the shortest message; 0: there are none
	alone int // of the longest one that does not go so if it is alone
	most  int
	free  []int32
	wr    verbs.SendWR // reused
}

// lane is what is under way with a peer.
type lane struct {
	sent     uint32 // messages whose data was posted
	had      uint32 // of those, what the peer has
	asked    uint32 // up to which one it was asked to say so soon
	share    uint32 // how many the peer may have before it is asked
	out      [laneBuffers]laneSlot
	due      [laneBuffers]laneDue // announced, and not here
	said     uint32               // messages announced
	got      uint32               // of those, what is here
	told     uint32               // and what the peer knows of that
	early    [wordsIn]laneSlot    // data that was not announced, in receive buffers
	earlyIn  uint32
	earlyOut uint32
	expected int // messages for which streams are looked at
}

// laneSlot is a message in a buffer.
type laneSlot struct{ slot, n int32 }

// laneDue is a message that was announced.
type laneDue struct {
	left int
	asks bool
	r    *Request // its receive, or nil
	m    *message // where it waits for one, or nil; neither: no receive takes it
}

// meet says which messages go to p without a look at its connection.
func (ls *lanes) meet(p *peer, listens bool) {
	if c := ls.ep.net.conn; c != nil && c.beside && listens {
		p.beside = true
		if ls.least > 0 {
			p.plainMax = int32(ls.least - 1)
		}
	}
}

// create makes the send buffers, if such messages are possible.
func (ls *lanes) create() error {
	ep := ls.ep
	nw := &ep.net
	seg := nw.maxSeg - headerLen
	least, most := max(seg, laneLeast)+1, min(laneMost, ep.cfg.EagerIdle)
	if least > most {
		return nil
	}
	if err := nw.carve(&nw.linked, laneBuffers, headerLen+laneMost, "connection send", 0); err != nil {
		return err
	}
	for i := range int32(laneBuffers) {
		ls.free = append(ls.free, i)
	}
	ls.wr = verbs.SendWR{WRID: wrWord, Opcode: verbs.OpSend, NumSGE: 1}
	ls.least, ls.alone, ls.most = least, max(laneAlone*seg, laneAlways), most
	return nil
}

// of returns the lane of a peer, and makes it first.
func (ls *lanes) of(p *peer) *lane {
	if p.lane == nil {
		p.lane = &lane{}
	}
	return p.lane
}

// takes decides whether the data of a message of n bytes goes over the connection. Alone, one
// of a few datagrams is there sooner in datagrams. One that follows others of some datagrams
// which the peer has not answered is one of a stream, and then TCP has less work with each.
func (ls *lanes) takes(p *peer, n int) bool {
	if n < ls.least || n > ls.most || !p.beside || p.channel != nil || p.eagerMax < 0 {
		return false
	}
	switch {
	case p.link == nil:
		ls.ep.net.conn.count(p, uint64(n))
		return false
	case p.link.state != up:
		return false
	case !p.answered, n > ls.alone:
		return true
	case n <= int(p.eagerMax):
		p.answered = false // one of more datagrams clears it itself
	}
	return false
}

// post posts the data and the envelope of r. false: there is no room.
func (ls *lanes) post(r *Request, p *peer) bool {
	ep := ls.ep
	ln := ls.of(p)
	if r.written == 0 {
		switch ls.postData(r, p) {
		case laneWaits:
			return false
		case laneOver:
			return ls.postElse(r, p)
		}
		r.written = r.total
	}
	env := r.entry.Envelope
	h := header{kind: kindLinked, context: env.Context, source: ep.rank, tag: env.Tag, id: uint32(r.total)}
	if ln.sent-ln.asked >= ln.share {
		h.id |= laneAsks
	}
	h.put(ep.out.head[:])
	if !ep.out.word(p, headerLen, nil) {
		return false
	}
	if h.id&laneAsks != 0 {
		ln.asked = ln.sent
	}
	p.answered = false
	ep.Stats.Linked++
	ep.inviter.plain(p, env.Context, env.Tag)
	ep.groups.counted(env.Context, false)
	r.complete()
	return true
}

// laneOutcome is what became of data that was to be posted.
type laneOutcome uint8

const (
	lanePosted laneOutcome = iota
	laneWaits              // until the peer has said what it has
	laneOver               // it has to go another way
)

// postData copies the data of r into a buffer and posts it to the connection.
func (ls *lanes) postData(r *Request, p *peer) laneOutcome {
	ln, n := p.lane, int(r.total)
	if p.eagerMax < 0 || p.link.state != up {
		return laneOver
	}
	last := len(ls.free) - 1
	if last < 0 || ln.sent-ln.had == laneBuffers {
		if int32(ln.asked-ln.had) > 0 {
			return laneWaits
		}
		return laneOver
	}
	slot := ls.free[last]
	b := ls.ep.net.linked.get(slot, headerLen+n)
	h := header{kind: kindData, source: ls.ep.rank}
	h.put(b)
	r.data.view().copyTo(b[headerLen:])
	ls.wr.SGL[0] = verbs.SGE{Addr: ls.ep.net.linked.addr(slot), Length: uint32(len(b)), LKey: ls.ep.net.linked.mr.LKey()}
	if !ls.ep.net.postLink(p, &ls.wr, nil) {
		return laneOver
	}
	ls.free = ls.free[:last]
	ln.out[ln.sent%laneBuffers] = laneSlot{slot, int32(n)}
	ln.sent++
	ln.share = uint32(max(laneBuffers/2/max(ls.ep.net.conn.links, 1), 1))
	return lanePosted
}

// postElse sends a message without the connection.
func (ls *lanes) postElse(r *Request, p *peer) bool {
	if r.notice = 0; p.eagerMax < 0 || r.total > uint64(p.eagerCap) {
		r.state = sendRTS
	}
	return ls.ep.out.advance(r)
}

// arrivedLinked takes in the envelope of a message.
func (ls *lanes) arrivedLinked(h *header, p *peer) {
	ep := ls.ep
	env, total := h.envelope(), int(h.id&^laneAsks)
	ln := ls.of(p)
	if total == 0 || total > laneMost || ln.said-ln.got == laneBuffers || !p.beside {
		ep.Stats.Malformed++
		return
	}
	d := &ln.due[ln.said%laneBuffers]
	*d = laneDue{left: total, asks: h.id&laneAsks != 0}
	ln.said++
	if p.link != nil && p.link.state != over {
		ln.expected++
		ep.net.conn.channel.Expect(1)
	}
	if ep.failures.impaired && ep.failures.unwanted(env) {
		ep.Stats.Stale++
	} else if e := ep.match.posted.Match(env); e != nil {
		d.r = e.Owner
		d.r.begin(env, total, nil)
	} else {
		m := ep.match.messages.get(total)
		m.filled = 0
		m.entry.Envelope = env
		m.kind, m.size, m.id = kindLinked, uint64(total), ln.said-1
		d.m = m
		ep.match.keep(m, h.source)
	}
	if ln.earlyIn != ln.earlyOut {
		s := ln.early[ln.earlyOut%wordsIn]
		ln.earlyOut++
		ls.place(p, ep.net.words.get(s.slot, int(s.n))[headerLen:])
		ep.net.conn.returnWord(s.slot)
	}
}

// accept gives a message that was waiting to the receive r.
func (ls *lanes) accept(r *Request, env match.Envelope, m *message) {
	r.begin(env, len(m.data), m.data[:m.filled])
	p := &ls.ep.peers[env.Source]
	switch {
	case m.filled == len(m.data):
		r.complete()
	case p.err != nil:
		r.fail(p.err)
	default:
		d := &p.lane.due[m.id%laneBuffers]
		d.r, d.m = r, nil
	}
}

// abandon forgets the message m, which no receive will take.
func (ls *lanes) abandon(m *message) {
	if ln := ls.ep.peers[m.entry.Source].lane; ln != nil {
		if d := &ln.due[m.id%laneBuffers]; d.m == m {
			d.m = nil
		}
	}
}

// arrivedData takes in what has come over the connection, in a receive buffer. It reports
// whether the buffer is needed no more.
func (ls *lanes) arrivedData(p *peer, slot int32, b []byte) bool {
	ln := ls.of(p)
	if ln.said == ln.got {
		ln.early[ln.earlyIn%wordsIn] = laneSlot{slot, int32(len(b))}
		ln.earlyIn++
		return false
	}
	ls.place(p, b[headerLen:])
	return true
}

// arrivedAgain takes in data in a datagram, because the connection has broken.
func (ls *lanes) arrivedAgain(p *peer, b []byte) {
	if ln := p.lane; ln == nil || ln.said == ln.got || p.link == nil || p.link.state != over {
		ls.ep.Stats.Malformed++
		return
	}
	ls.place(p, b)
}

// place takes in the next bytes of the message that was announced first.
func (ls *lanes) place(p *peer, b []byte) {
	ep, ln := ls.ep, p.lane
	d := &ln.due[ln.got%laneBuffers]
	if len(b) == 0 || len(b) > d.left {
		ep.Stats.Malformed++
		return
	}
	d.left -= len(b)
	switch {
	case d.r != nil:
		d.r.data.fill(b)
	case d.m != nil:
		d.m.filled += copy(d.m.data[d.m.filled:], b)
	default:
		ep.Stats.Stale++
	}
	if d.left > 0 {
		return
	}
	r, asks := d.r, d.asks
	*d = laneDue{}
	ln.got++
	if ln.expected > 0 {
		ln.expected--
		ep.net.conn.channel.Expect(-1)
	}
	if asks {
		ls.say(p)
	}
	if r != nil {
		r.complete()
	}
}

// say tells a peer what is here, before the messages whose turn it is: they may wait for the
// peer to say the same, while those of the peer wait for this.
func (ls *lanes) say(p *peer) {
	p.lane.told = p.lane.got
	if first := p.pending.head; first != nil && first.state == sendNotice && first.notice == kindHave {
		first.remote = p.lane.got
		return
	}
	out, h := &ls.ep.out, header{kind: kindHave, source: ls.ep.rank, id: p.lane.got}
	h.put(out.head[:])
	if !out.word(p, headerLen, nil) {
		p.pending.pushFront(out.notice(p.rank, h, nil))
		out.goOn(p)
	}
}

// arrivedHave lets go of what the peer has.
func (ls *lanes) arrivedHave(h *header, p *peer) {
	ln := p.lane
	if ln == nil || h.id-ln.had > ln.sent-ln.had {
		ls.ep.Stats.Malformed++
		return
	}
	for ln.had != h.id {
		ls.release(ln)
	}
}

// release frees the buffer of the first message that the peer was not known to have.
func (ls *lanes) release(ln *lane) {
	ls.free = append(ls.free, ln.out[ln.had%laneBuffers].slot) // never grows
	ln.had++
}

// severed handles that the connection with p is used no more: what has come over it and
// counts is told, the rest is forgotten.
func (ls *lanes) severed(p *peer) {
	ln := p.lane
	if ln == nil {
		return
	}
	ls.settle(ls.ep.net.conn, ln)
	if ln.got != ln.told && p.err == nil {
		ls.say(p)
	}
}

// settle forgets what came early, and expects nothing any more.
func (ls *lanes) settle(c *connector, ln *lane) {
	for ; ln.earlyOut != ln.earlyIn; ln.earlyOut++ {
		c.returnWord(ln.early[ln.earlyOut%wordsIn].slot)
	}
	if ln.expected > 0 {
		c.channel.Expect(-ln.expected)
		ln.expected = 0
	}
}

// lost forgets all that is under way with a peer that is lost.
func (ls *lanes) lost(c *connector, p *peer) {
	if ln := p.lane; ln != nil {
		ls.settle(c, ln)
		for ln.had != ln.sent {
			ls.release(ln)
		}
		ln.due, ln.got = [laneBuffers]laneDue{}, ln.said
	}
}

// repeat sends again what the peer has not got, which has let go of the connection.
func (ls *lanes) repeat(p *peer) {
	if ln := p.lane; ln == nil || ln.had == ln.sent {
		return
	}
	r := ls.ep.out.notice(p.rank, header{kind: kindAgain}, nil)
	r.state = sendAgain
	ls.ep.out.advanceOrQueue(r)
}

// postAgain posts data in datagrams, as far as there is room.
func (ls *lanes) postAgain(r *Request, p *peer) bool {
	ep, ln := ls.ep, p.lane
	h := header{kind: kindAgain, source: ep.rank}
	for ln.had != ln.sent {
		s := &ln.out[ln.had%laneBuffers]
		for b := ls.ep.net.linked.get(s.slot, headerLen+int(s.n))[headerLen+r.written:]; len(b) > 0; {
			n := min(len(b), max(int(p.eagerTop), ep.net.inlineMax))
			if !ep.out.piece(p, h.pack(), view{buf: b}, n, 0) {
				return false
			}
			r.written += uint64(n)
			b = b[n:]
		}
		ls.release(ln)
		r.written = 0
	}
	r.complete()
	return true
}
