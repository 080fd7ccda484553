package p2p

import (
	"encoding/binary"
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// flags tells the peer of this end.
func (ln *lane) flags(asks bool) (f int32) {
	if asks {
		f = flagAsks
	}
	if ln.looks {
		f |= flagLooks
	}
	return f
}

// putWhole writes the header of a message whose envelope goes with its data.
func (ls *lanes) putWhole(p *peer, o *laneOut, b []byte) {
	ln := p.lane
	o.whole = true
	h := header{kind: kindWhole, context: o.context, source: ls.ep.rank, tag: o.tag, id: total(&p.sent)}
	h.put(b)
	binary.BigEndian.PutUint32(b[headerLen:], ln.got)
	binary.BigEndian.PutUint32(b[headerLen+4:], uint32(ln.flags(o.asks)))
}

// data returns the message.
func (o *laneOut) data(from *buffers) []byte {
	at := headerLen
	if o.whole {
		at = laneHead
	}
	return from.get(o.slot, at+int(o.n))[at:]
}

// payload returns the data of what has come over the connection.
func payload(b []byte) []byte {
	if kind(b[0]) == kindWhole {
		return b[laneHead:]
	}
	return b[headerLen:]
}

// announce tells a peer in datagrams of all messages of which it may not know. more is verbs.More where another
// datagram follows at once. false: there is no room.
func (ls *lanes) announce(p *peer, more verbs.SendFlags) bool {
	ln, nw, wr := p.lane, &ls.ep.net, &ls.note
	for ; ln.said != ln.sent; ln.said++ {
		o := &ln.out[ln.said%laneBuffers]
		h := header{kind: kindLinked, context: o.context, source: ls.ep.rank, tag: o.tag, id: uint32(o.n)}
		if o.asks {
			h.id |= laneAsks
		}
		h.put(ls.head[:])
		binary.BigEndian.PutUint32(ls.head[headerLen:], ln.said)
		wr.AH, wr.WRID, wr.Flags, wr.InlineData = p.ah, wrNone|uint64(p.rank)<<wrPeerShift, verbs.Inline|more, ls.head[:]
		if err := p.qp.PostSend(wr); err != nil {
			return nw.refused(err)
		}
		nw.posts++
		nw.latest, p.used = p, true
	}
	p.untold = false
	return true
}

// deliver takes in a message whose turn it is.
func (ls *lanes) deliver(p *peer, h *header, b []byte) {
	ep, ln := ls.ep, p.lane
	ln.known++
	ln.got++
	env := h.envelope()
	p.got[env.Context&1].plain++
	if ep.failures.impaired && ep.failures.unwanted(env) {
		ep.Stats.Stale++
	} else {
		ep.match.arrivedEager(env, b[laneHead:])
	}
	if b[laneHead-1]&flagAsks != 0 {
		ls.say(p)
	}
}

// later has goOn look after a peer.
func (ls *lanes) later(p *peer) {
	if !p.lane.late {
		p.lane.late = true
		ls.late = append(ls.late, p)
	}
}

// goOn delivers messages that have waited for datagrams which have come meanwhile, and returns how many those were.
func (ls *lanes) goOn() (n int) {
	ep := ls.ep
	for i := 0; i < len(ls.late); {
		p := ls.late[i]
		ln := p.lane
		for ln.earlyIn != ln.earlyOut {
			s := ln.early[ln.earlyOut%wordsIn]
			b := ep.net.words.get(s.slot, int(s.n))
			var h header
			if !h.parse(b, len(ep.peers)) || h.kind != kindWhole || h.id != total(&p.got) {
				break
			}
			ln.earlyOut++
			ls.deliver(p, &h, b)
			ep.net.conn.returnWord(s.slot)
			n++
		}
		if ln.owes && p.err == nil && p.link.state == up {
			ls.say(p)
		}
		if ln.late = ln.earlyIn != ln.earlyOut; ln.late {
			i++
		} else {
			ls.late = slices.Delete(ls.late, i, i+1)
		}
	}
	return n
}

// look has the connection looked at while the receive r waits, if its message may come there.
func (ls *lanes) look(r *Request) {
	n, from := r.data.len(), r.entry.Source
	if n < ls.least || from >= 0 && !ls.ep.peers[from].looks() {
		return
	}
	if !ls.worthLook(n) && from >= 0 {
		ls.stop(&ls.ep.peers[from])
		return
	}
	r.grant.looks = true
	ls.ep.net.conn.channel.Expect(1)
}

// worthLook reports whether the connection is looked at for messages of n bytes, of which one alone may come in
// datagrams. A look is a system call, in which a rank that shares its processor keeps it from the other one.
func (ls *lanes) worthLook(n int) bool { return n > ls.alone || ls.ep.maxSpins != spinsLeast }

// looks reports whether the connection with p is looked at.
func (p *peer) looks() bool { return p.lane != nil && p.lane.looks }

// looked notes that a receive has ended for which the connection was looked at. A message of less than goes there ends
// that this end looks, and so do laneQuiet which come in datagrams, when they are alone, and none over the connection between them.
func (ls *lanes) looked(r *Request) {
	r.grant.looks = false
	if c := ls.ep.net.conn; c != nil {
		c.channel.Expect(-1)
	}
	n := r.st.Bytes
	if r.err != nil || n > ls.alone || !r.st.Mark.Got() {
		return
	}
	p := &ls.ep.peers[r.st.Source]
	if !p.looks() {
		return
	}
	if p.lane.quiet++; p.lane.quiet > laneQuiet || n < ls.least || !ls.worthLook(n) {
		ls.stop(p)
	}
}

// stop ends that the connection with p is looked at, and has p told.
func (ls *lanes) stop(p *peer) {
	if ln := p.lane; ln != nil {
		if ln.looks && p.err == nil {
			ln.owes = true
			ls.later(p)
		}
		ls.ignore(ln)
	}
}

// ignore ends that a connection is looked at.
func (ls *lanes) ignore(ln *lane) {
	if ln.row = 0; ln.looks {
		ln.looks = false
		ls.looking--
	}
}

// hurry has connections looked at in the next step, for a caller that waits for any message.
func (ls *lanes) hurry() {
	if ls.looking > 0 {
		ls.ep.net.conn.hurry()
	}
}
