package p2p

import (
	"encoding/binary"
	"math"
	"slices"
)

// If both ranks compute, and both have memory of ghosts, the sender's ghost brings the two together. It has
// what the sender has delegated (delegate.go), and the receiver invites it as it invites the sender (invite.go).
//
//	receiver       its ghost             sender's ghost             sender
//	   |               |                        | <-- delegate: where -- |
//	   | <- RTS: ghost, number ----------------------------------------- |
//	   | -- invite: ghost, key, address ------> | finds the message that it is for
//	   |               | <------------- Writes, |
//	   |               | <----------- FIN: done?|
//	   |               | -- FIN --------------> |
//	   | <- placed ---------------------------- | -- placed -----------> | its memory is its own again
//	   | -- placed: it knows ------------------------------------------> |
//
// The RTS and the receive meet as ever, so nothing changes of their order. A receiver that has heard of the end before
// that has nothing more to do. One that has not claims the message as ever: the ghost has done it, or will, or
// writes it where the claim says if the receiver's ghost is lost.
//
// Which message is it for? As in invite.go, the first one of its envelope that the receiver has not seen. The ghost knows the
// sender's counts at each delegated message, so it knows that if it knows all messages between. So it keeps what it
// needs for that of those that are done, too: of the latest doneMost.
//
// The sender's ghost may be lost behind its word to the sender, and before that to the receiver, which then asks the
// sender with the number of the message. So the sender vouches for it until the receiver says that it knows.

// doneMost is how many messages that are done a ghost keeps. An invitation that one more is needed for is not met.
const doneMost = 64

// numberMask is what of the number of a message is in a placed.
const numberMask = math.MaxInt32

// What an offer has of a receive that is posted: ghost is where its memory is, if it has invited; number which ghost
// of the sender it has invited, too; addr the number of the message that this one has placed; and rkey bits.
const (
	awaitsSender = 1 << iota // retracting: the sender is to let go
	awaitsGhost              // and its ghost
	isPlaced                 // the message is there, and its RTS under way
)

// vouched is a message of this rank that is placed, and that its receiver may ask for.
type vouched struct {
	rank   int32
	number uint32
}

// Assign tells which ghost each rank has.
func (d Delegations) Assign(ghosts []int32) { d.ep.delegator.ghosts = ghosts }

// inviteGhost says what p, the sender of the message that r is for, was told by an invite to its ghost, too.
func (iv *inviter) inviteGhost(r *Request, p *peer, invite []byte) {
	if iv.ep.delegator.ghosts == nil || p.alone {
		return
	}
	ghost := &iv.ep.peers[iv.ep.delegator.ghosts[p.rank]]
	if ghost.err != nil || ghost.channel != nil {
		return
	}
	if invite = binary.BigEndian.AppendUint32(invite, uint32(p.rank)); ghost.ready() && iv.ep.out.word(ghost, len(invite), nil) {
		r.offer.number = uint32(ghost.rank)
	}
	iv.ep.out.reach(ghost) // for the next one
}

// waits reports whether an answer is to come to r, which is retracting.
func (iv *inviter) waits(r *Request) bool {
	o := &r.offer
	if !iv.ep.peers[r.peer].mayRead() {
		o.rkey &^= awaitsSender
	}
	if !iv.ep.peers[o.number].mayRead() {
		o.rkey &^= awaitsGhost
	}
	return o.rkey&(awaitsSender|awaitsGhost) != 0
}

// answered handles that a rank, or a ghost, has let go of what r, which is retracting, has invited it to, or is not there any
// more. If the message is placed its RTS is to come, unless it cannot any more.
func (iv *inviter) answered(r *Request, from int32) {
	o := &r.offer
	switch from {
	case r.peer:
		o.rkey &^= awaitsSender
	case int32(o.number):
		o.rkey &^= awaitsGhost
	default:
		return
	}
	if iv.waits(r) {
		return
	}
	if o.rkey&isPlaced != 0 {
		if r.err == nil {
			r.err = iv.ep.failures.hopeless(r.entry.Envelope)
		}
		if r.err == nil {
			r.state = posted
			return
		}
		iv.ep.delegator.noted(r)
	}
	iv.retracted(r)
}

// there reports whether r, a receive, has the message that an RTS with this offer announces.
func (iv *inviter) there(r *Request, o *offer) bool {
	has := &r.offer
	return (r.state == posted || r.state == retracting) && has.ghost != 0 && has.rkey&isPlaced != 0 &&
		o.ghost == int32(has.number) && uint64(o.number&numberMask) == has.addr
}

// met forgets an invitation: its receive has met a message, or is given up.
func (iv *inviter) met(receiver int32, request uint32) {
	p := &iv.ep.peers[receiver]
	if p.invited > 0 {
		iv.drop(p, slices.IndexFunc(iv.held, func(i invitation) bool { return i.to.Source == receiver && i.grant.request == request }))
	}
}

// arrivedPlaced takes in that a ghost has done a message, or that the receiver knows that.
func (d *delegator) arrivedPlaced(h *header) {
	r, number := d.ep.requests.lookup(h.id), uint32(h.tag)
	ghost := int(h.source) >= d.ep.cfg.ranks()
	switch {
	case !ghost && d.vouch(h.source, number), r == nil:
	case r.delegated() && (r.state == waitCTS || r.state == lingering) && r.offer.number&numberMask == number:
		switch {
		case ghost && r.offer.ghost == h.source:
			d.vouched = append(d.vouched, vouched{r.peer, number})
		case ghost || r.peer != h.source:
			return
		}
		d.ep.Stats.Met++
		r.lent = false
		r.complete()
	case ghost:
		d.placed(h, r, number)
	}
}

// placed handles that a ghost has written the message that r, a receive, is for.
func (d *delegator) placed(h *header, r *Request, number uint32) {
	o := &r.offer
	switch r.state {
	case posted, retracting:
		if o.ghost == 0 || int32(o.number) != h.source {
			return
		}
		o.rkey |= isPlaced
		if o.addr = uint64(number); r.state == retracting {
			d.ep.inviter.answered(r, h.source)
		}
	case sendCTS, waitFIN:
		if o.ghost != h.source || r.peer != h.source || o.number&numberMask != number {
			return
		}
		if r.state == sendCTS {
			d.ep.peers[r.peer].pending.remove(r)
		}
		d.noted(r)
		r.complete()
	}
}

// noted tells the sender of the message that a ghost has placed for r that this rank knows.
func (d *delegator) noted(r *Request) {
	number, id, source := r.offer.number&numberMask, r.remote, r.st.Source
	if r.state == posted || r.state == retracting { // no RTS has come, or it is in offer already
		if r.offer.rkey&isPlaced != 0 {
			number, id, source = uint32(r.offer.addr), 0, r.peer
		}
	}
	d.ep.out.notify(int(source), kindPlaced, int32(number), id)
}

// vouch reports whether this rank has vouched for a message to a receiver, which knows it from now on.
func (d *delegator) vouch(receiver int32, number uint32) bool {
	v := vouched{receiver, number & numberMask}
	for i := range d.vouched {
		if d.vouched[i] == v {
			d.vouched = slices.Delete(d.vouched, i, i+1)
			return true
		}
	}
	return false
}

// invited takes in an invitation of p to a message of a rank of this host.
func (de *delegatee) invited(p *peer, i *invitation, rest []byte) {
	if de == nil {
		return // this process has no memory of a rank
	}
	if len(rest) < 4 || binary.BigEndian.Uint32(rest) >= uint32(de.ep.cfg.ranks()) {
		de.ep.Stats.Malformed++
		return
	}
	i.from = int32(binary.BigEndian.Uint32(rest))
	if len(rest) >= 8 {
		if at := de.find(i.from, binary.BigEndian.Uint32(rest[4:])); at >= 0 && de.sends[at].dest == p.rank {
			de.meet(&de.sends[at], i)
		}
		return
	}
	var first *delegatedSend
	env := i.to
	env.Source = i.from
	for at := range de.sends {
		s := &de.sends[at]
		if s.to == env && s.dest == p.rank && int32(s.before.asked-i.seen.asked) > 0 && (first == nil || int32(s.before.asked-first.before.asked) < 0) {
			first = s
		}
	}
	switch {
	case first != nil:
		if de.certain(first, i) {
			de.meet(first, i)
		}
	case de.ep.peers[i.from].err == nil:
		de.ep.inviter.hold(p, i)
	}
}

// delegated looks for an invitation to the latest message.
func (de *delegatee) delegated(at int) {
	s, iv := &de.sends[at], &de.ep.inviter
	p := &de.ep.peers[s.dest]
	if held := iv.find(p, s.to, s.owner); held >= 0 {
		i := iv.held[held]
		if iv.drop(p, held); de.certain(s, &i) {
			de.meet(s, &i)
		}
	}
}

// certain reports whether an invitation is for s, the first message of its envelope that is known: all between are.
func (de *delegatee) certain(s *delegatedSend, i *invitation) bool {
	between := s.before.asked - i.seen.asked
	if s.before.plain != i.seen.plain || between > uint32(len(de.sends)) {
		return false
	}
	for at := range de.sends {
		if o := &de.sends[at]; o.owner == s.owner && o.dest == s.dest && o.to.Context&1 == s.to.Context&1 &&
			int32(o.before.asked-i.seen.asked) > 0 && int32(o.before.asked-s.before.asked) <= 0 {
			between--
		}
	}
	return between == 0
}

// meet sends s where an invitation says, unless it is under way.
func (de *delegatee) meet(s *delegatedSend, i *invitation) {
	if s.r != nil || s.done {
		return
	}
	r := de.employ(s)
	r.st = Status{Source: s.dest}
	r.state = waitCTS
	if de.ep.inviter.accept(r, i); r.notice != kindInvite {
		de.unmet(r)
	}
}

// unmet handles that the message of r does not go where an invitation says, and waits for its claim again. It
// does nothing on a rank.
func (de *delegatee) unmet(r *Request) {
	at := de.sending(r)
	if at < 0 {
		return
	}
	s := &de.sends[at]
	r.complete()
	de.release(s)
	if s.recalled {
		de.giveBack(s.owner, s.id)
	}
	if s.recalled || s.from.closing != nil {
		de.sends = slices.Delete(de.sends, at, at+1)
		de.sweep()
	}
}

// told tells both ranks that the message of r is there. false: this is a rank.
func (de *delegatee) told(r *Request) bool {
	at := de.sending(r)
	if at < 0 {
		return false
	}
	s := &de.sends[at]
	s.placed = true
	de.ep.out.notify(int(s.dest), kindPlaced, int32(s.number&numberMask), r.grant.request)
	de.ep.out.notify(int(s.owner), kindPlaced, int32(s.number&numberMask), s.id)
	return true
}

// sending returns the index of the message that r sends, or -1.
func (de *delegatee) sending(r *Request) int {
	if de == nil {
		return -1
	}
	return slices.IndexFunc(de.sends, func(s delegatedSend) bool { return s.r == r })
}
