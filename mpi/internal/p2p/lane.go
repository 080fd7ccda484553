package p2p

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Messages of several datagrams, up to 96 KiB, may have their data go over the connection
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
// A datagram takes longer than a third of what 16 KiB take over the connection. Where the peer
// looks at that when it waits for a long message, the envelope goes with the data:
//
//	whole ->     over the connection: envelope, data, and how many messages went before it
//	linked ->    for order, before the next datagram, if the peer has not said that it has it
//
// and it is received when all that went before it has been.
//
// The sender keeps the data until the peer has said that it has it. When the connection
// breaks, both ends say what they have, and then cut (hybrid.go); data that the other end
// has not got goes again, in datagrams, for the messages that were announced first.

const (
	laneMost    = 96 << 10  // bytes of the longest message
	laneStream  = 64 << 10  // of the longest one that is not alone
	laneLeast   = 3 << 10   // a message of several datagrams goes so only if it is longer
	laneAlone   = 6<<10 - 1 // and if it has more bytes than so many, or is not alone
	laneJoined  = 14 << 10  // likewise where several datagrams leave as one packet,
	laneJoins   = 7         // for so many of them at most
	laneBuffers = 32        // send buffers, of all peers
	laneAlones  = 4         // messages alone, one behind the other, after which the next one goes in datagrams
	laneQuiet   = 2         // receives that end without another one, after which it does so no more
	laneRow     = 4         // messages in a row after which this end looks for the next one
)

// Lengths of what stands behind the header.
const (
	linkedLen = 4
	wholeLen  = 8
	laneHead  = headerLen + wholeLen
)

// Flags of words about a lane.
const (
	flagAsks  = 1 << iota // for a have
	flagLooks             // this end looks at the connection when it waits for a long message
	flagPiece             // of a data message: it is of a stream, not of a lane
)

// laneAsks is set in the id of an envelope, above the length, when the receiver is to say
// what it has as soon as it has this message.
const laneAsks = 1 << 24

// lanes is the part of an endpoint that sends and receives such messages.
type lanes struct {
	ep    *Endpoint
	least int // bytes of the shortest message; 0: there are none
	few   int // of the longest one that does not go so if it is alone
	alone int // likewise if those before it were alone, too
	most  int
	free  []int32
	wr    verbs.SendWR // reused
	note  verbs.SendWR // reused
	head  [headerLen + linkedLen]byte
	late  []*peer // with data that came early, or that are to be told something
	// looking is how many lanes are looked at.
	looking int
}

// lane is what is under way with a peer.
type lane struct {
	sent     uint32 // messages whose data was posted
	had      uint32 // of those, what the peer has
	asked    uint32 // up to which one it was asked to say so soon
	share    uint32 // how many the peer may have before it is asked
	said     uint32 // the peer knows of those, or will with the next datagram
	out      [laneBuffers]laneOut
	due      [laneBuffers]laneDue // announced, and not here
	known    uint32               // messages announced, or here
	got      uint32               // of those, what is here
	told     uint32               // and what the peer was told of that in datagrams
	early    [wordsIn]laneSlot    // data that was not announced, in receive buffers
	earlyIn  uint32
	earlyOut uint32
	expected int // messages for which streams are looked at
	alone    int // messages alone in a row
	row      int // messages since a short one came for which streams were looked at
	quiet    int // receives that have ended since such a message came, while looks is set
	looks    bool
	owes     bool // the peer is to be told of looks
	late     bool // is in lanes.late
}

// laneOut is a message in a send buffer.
type laneOut struct {
	slot, n int32
	context uint32
	tag     int32
	asks    bool
	whole   bool
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
	least, most := max(seg, laneLeast)+1, laneMost
	if !ep.cfg.tunesIdle {
		most = min(most, ep.cfg.EagerIdle)
	}
	if least > most {
		return nil
	}
	if err := nw.carve(&nw.linked, laneBuffers, laneHead+laneMost, "connection send", 0); err != nil {
		return err
	}
	for i := range int32(laneBuffers) {
		ls.free = append(ls.free, i)
	}
	ls.wr = verbs.SendWR{WRID: wrWord, Opcode: verbs.OpSend, NumSGE: 1}
	ls.note = verbs.SendWR{Opcode: verbs.OpSend}
	ls.least, ls.few, ls.most = least, laneAloneOf(seg, false), most
	ls.joins(false)
	return nil
}

// joins says whether several datagrams leave as one packet, as verbs.DeviceAttr does: they do not where the device refuses
// packets, which shows when there were some.
func (ls *lanes) joins(aggregates bool) {
	ls.alone = laneAloneOf(ls.ep.net.maxSeg-headerLen, aggregates)
}

// laneAloneOf returns the length of the longest message that goes in datagrams of seg bytes if it is alone. aggregates says that several
// leave as one packet.
func laneAloneOf(seg int, aggregates bool) int {
	if aggregates {
		return max(seg, min(laneJoins*seg, laneJoined))
	}
	return max(seg, laneAlone)
}

// of returns the lane of a peer, and makes it first.
func (ls *lanes) of(p *peer) *lane {
	if p.lane == nil {
		p.lane = &lane{}
	}
	return p.lane
}

// takes decides whether the data of a message of n bytes goes over the connection. Alone, one
// of a few datagrams is there sooner in datagrams, and where these leave as one packet, one of some more; but the first of
// each window of a stream is alone, too, so of the latter several in a row have to have been. One that follows others of some datagrams
// which the peer has not answered is one of a stream, and then TCP has less work with each; where it is long, a rendezvous
// saves the copies at both ends.
func (ls *lanes) takes(p *peer, n int) bool {
	if n < ls.least || n > ls.most || !p.beside || p.channel != nil || p.eagerMax < 0 {
		return false
	}
	switch {
	case p.link == nil && n <= laneStream: // of longer ones the rendezvous counts
		ls.ep.net.conn.count(p, uint64(n))
		return false
	case p.link == nil || p.link.state != up:
		return false
	case !p.answered:
		ls.of(p).alone = 0
		return n <= laneStream
	case n > ls.alone:
		return true
	case n > ls.few && ls.of(p).alone < laneAlones:
		p.lane.alone++
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
		if p == ep.net.batch.to && !ep.net.flush() { // it is before this one
			return false
		}
		switch ls.postData(r, p) {
		case laneWaits:
			return false
		case laneOver:
			return ls.postElse(r, p)
		}
		r.written = r.total
	}
	if !ln.out[(ln.sent-1)%laneBuffers].whole && !ls.announce(p, 0) {
		return false
	}
	env := r.entry.Envelope
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
	ln.share = uint32(max(laneBuffers/2/max(ls.ep.net.conn.links, 1), 1))
	env := r.entry.Envelope
	o := laneOut{slot: ls.free[last], n: int32(n), context: env.Context, tag: env.Tag, asks: ln.sent+1-ln.asked > ln.share}
	b := ls.ep.net.linked.get(o.slot, laneHead+n)
	if p.listens {
		ls.putWhole(p, &o, b)
	} else {
		b = b[:headerLen+n]
		h := header{kind: kindData, source: ls.ep.rank, tag: ln.flags(false)}
		h.put(b)
	}
	r.data.view().copyTo(b[len(b)-n:])
	ls.wr.SGL[0] = verbs.SGE{Addr: ls.ep.net.linked.addr(o.slot), Length: uint32(len(b)), LKey: ls.ep.net.linked.mr.LKey()}
	if !ls.ep.net.postLink(p, &ls.wr, nil) {
		return laneOver
	}
	ls.free = ls.free[:last]
	ln.out[ln.sent%laneBuffers] = o
	ln.sent++
	if o.asks {
		ln.asked = ln.sent
	}
	p.untold = true
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
func (ls *lanes) arrivedLinked(h *header, p *peer, b []byte) {
	ep := ls.ep
	env, total := h.envelope(), int(h.id&^laneAsks)
	ln := ls.of(p)
	before := int32(ln.known - binary.BigEndian.Uint32(b))
	if total == 0 || total > laneMost || ln.known-ln.got == laneBuffers || !p.beside || before < 0 {
		ep.Stats.Malformed++
		return
	}
	if before > 0 {
		return // it was whole, and is here
	}
	p.got[env.Context&1].plain++
	d := &ln.due[ln.known%laneBuffers]
	*d = laneDue{left: total, asks: h.id&laneAsks != 0}
	ln.known++
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
		m.kind, m.size, m.id = kindLinked, uint64(total), ln.known-1
		d.m = m
		ep.match.keep(m, h.source)
	}
	if ln.earlyIn != ln.earlyOut {
		s := ln.early[ln.earlyOut%wordsIn]
		ln.earlyOut++
		ls.place(p, payload(ep.net.words.get(s.slot, int(s.n))))
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
func (ls *lanes) arrivedData(p *peer, h *header, slot int32, b []byte) bool {
	ln := ls.of(p)
	if ls.worthLook(len(payload(b))) {
		ln.row++
	}
	if ln.quiet = 0; ln.row == laneRow && !ln.looks {
		ln.looks, ln.owes = true, true
		ls.looking++
		ls.later(p)
	}
	whole := h.kind == kindWhole
	if !whole {
		p.listens = h.tag&flagLooks != 0
	} else {
		ls.has(p, binary.BigEndian.Uint32(b[headerLen:]), int32(b[laneHead-1]))
	}
	switch {
	case ln.known != ln.got:
		ls.place(p, payload(b))
	case whole && ln.earlyIn == ln.earlyOut && h.id == total(&p.got):
		ls.deliver(p, h, b)
	default:
		ln.early[ln.earlyIn%wordsIn] = laneSlot{slot, int32(len(b))}
		ln.earlyIn++
		ls.later(p)
		return false
	}
	return true
}

// arrivedAgain takes in data in a datagram, because the connection has broken.
func (ls *lanes) arrivedAgain(p *peer, b []byte) {
	if ln := p.lane; ln == nil || ln.known == ln.got || p.link == nil || p.link.state != over {
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
	p.lane.told, p.lane.owes = p.lane.got, false
	if first := p.pending.head; first != nil && first.state == sendNotice && first.notice == kindHave {
		first.remote = p.lane.got
		return
	}
	out, h := &ls.ep.out, header{kind: kindHave, source: ls.ep.rank, tag: p.lane.flags(false), id: p.lane.got}
	h.put(out.head[:])
	untold := p.untold
	p.untold = false // it need not stand behind them
	sent := out.word(p, headerLen, nil)
	if p.untold = untold; !sent {
		p.pending.pushFront(out.notice(p.rank, h, nil))
		out.goOn(p)
	}
}

// arrivedHave lets go of what the peer has.
func (ls *lanes) arrivedHave(h *header, p *peer) {
	if p.lane == nil {
		ls.ep.Stats.Malformed++
		return
	}
	ls.has(p, h.id, h.tag)
}

// has lets go of n messages, all in all, that the peer has, and takes in its flags. Such words go
// two ways, so that an old one may come last.
func (ls *lanes) has(p *peer, n uint32, flags int32) {
	ln := p.lane
	switch more := int32(n - ln.had); {
	case more < 0:
		return
	case uint32(more) > ln.sent-ln.had:
		ls.ep.Stats.Malformed++
		return
	}
	p.listens = flags&flagLooks != 0
	for ln.had != n {
		ls.release(ln)
	}
	p.untold = ln.said != ln.sent
}

// release frees the buffer of the first message that the peer was not known to have.
func (ls *lanes) release(ln *lane) {
	ls.free = append(ls.free, ln.out[ln.had%laneBuffers].slot) // never grows
	ln.had++
	if int32(ln.had-ln.said) > 0 {
		ln.said = ln.had
	}
	if int32(ln.had-ln.asked) > 0 {
		ln.asked = ln.had
	}
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
	ls.ignore(ln)
}

// lost forgets all that is under way with a peer that is lost.
func (ls *lanes) lost(c *connector, p *peer) {
	if ln := p.lane; ln != nil {
		ls.settle(c, ln)
		for ln.had != ln.sent {
			ls.release(ln)
		}
		ln.due, ln.got = [laneBuffers]laneDue{}, ln.known
		p.untold = false
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
		for b := s.data(&ls.ep.net.linked)[r.written:]; len(b) > 0; {
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
