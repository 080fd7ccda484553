package p2p

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// A large message may be for memory that a ghost of the receiver's host has mapped, while its
// receiver computes and answers no RTS. So a rank that posts such a receive, and does not wait
// for it at once, invites: it tells the sender, before there is an RTS or behind it, where the
// ghost has the memory. The sender writes there, and the receiver is not needed.
//
//	receiver                  ghost                    sender
//	  | -- invite: ghost, key, address ----------------> |
//	  |                         |                        | finds the message that it is for
//	  | <- RTS ----------------------------------------- |
//	  |                         | <------------- Writes, |
//	  |                         | <----------- FIN: done?|
//	  |                         | -- FIN --------------> | its memory is its own again
//	  | <- FIN ----------------------------------------- |
//
// An invitation is a CTS before its time, and changes nothing of how messages and receives meet:
// the RTS comes as ever, and the receiver answers it with a CTS as ever, of its own memory. A
// sender that has accepted an invitation keeps that CTS for the case that the ghost is lost. It
// is the sender that tells the receiver that the data are there, so what becomes of the ghost
// behind that does not matter. And what becomes of an invitation that is not accepted does
// not matter either.
//
// Which message is it for? The receive has said so when it was posted: the first one of its
// envelope that the receiver has not seen, for no older receive fits (else the receiver does not
// invite). Both count what comes of messages, and an invitation has the count of the receiver. The
// sender accepts for a message that it has announced behind that, or will, if it knows all those
// between. If it has sent one without an RTS there, it does not know any more which, and declines.

// inviter invites senders, and accepts invitations.
type inviter struct {
	ep       *Endpoint
	leaves   bool         // the receive that begins is not waited for at once
	held     []invitation // for messages that this rank has not sent yet
	accepted []acceptance // that are under way
}

// invitation is what a receiver has said.
type invitation struct {
	to    match.Envelope // of the messages; Source is their receiver
	from  int32          // their sender: this rank, or one of which this is the ghost
	seen  tally          // to a ghost: what the receiver has seen of these
	ghost int32
	grant grant
}

// acceptance is a send that goes where an invitation has said.
type acceptance struct {
	r       *Request
	cleared bool
	grant   grant // of the CTS that has come meanwhile
}

// tally counts what goes one way between two ranks, through the network: messages without an RTS,
// and those with one.
type tally struct{ plain, asked uint32 }

// inviteLen is what an invite has behind the header: two counts, ghost, key, address, size. One
// for an RTS that has been there has the sender's request behind them.
const inviteLen = 32

// heldMost is how many invitations an endpoint holds. More are declined.
const heldMost = 4096

// irecv is matching.irecv of a rank that may compute behind it.
func (iv *inviter) irecv(env match.Envelope, r *Request) *Request {
	ep := iv.ep
	if len(ep.delegator.areas) == 0 || env.Source == match.Any || env.Tag == match.Any || len(r.data.buf) <= ep.net.tx.stride {
		return ep.match.irecv(env, r)
	}
	first := ep.match.posted.Find(env) == nil
	iv.leaves = true
	ep.match.irecv(env, r)
	iv.leaves = false
	if r.state == posted && first {
		r.offer = offer{}
		r.offer.ghost = iv.invite(r, env, nil)
	}
	ep.out.push(burstMax)
	return r
}

// invite tells the sender of the message that r is for where a ghost has the memory, if one has, and
// returns which one, or 0. id is the sender's request, or nil if there was no RTS. What finds no room is not said.
func (iv *inviter) invite(r *Request, env match.Envelope, id *uint32) (ghost int32) {
	ep, p := iv.ep, &iv.ep.peers[env.Source]
	got := &p.got[env.Context&1]
	if r.offer.ghost != 0 { // which the message is delegated to
		p = &ep.peers[r.offer.ghost]
	}
	a, off := ep.delegator.area(r.data.buf, uint64(len(r.data.buf)))
	if a == nil || p.near != nil || p.self || p.err != nil || !p.ready() {
		return 0
	}
	h := header{kind: kindInvite, context: env.Context, source: ep.rank, tag: env.Tag, id: r.wireID()}
	b := ep.out.head[:headerLen+inviteLen]
	h.put(b)
	binary.BigEndian.PutUint32(b[headerLen:], got.plain)
	binary.BigEndian.PutUint32(b[headerLen+4:], got.asked)
	binary.BigEndian.PutUint32(b[headerLen+8:], uint32(a.ghost))
	binary.BigEndian.PutUint32(b[headerLen+12:], a.key)
	binary.BigEndian.PutUint64(b[headerLen+16:], a.addr+off)
	binary.BigEndian.PutUint64(b[headerLen+24:], uint64(len(r.data.buf)))
	switch {
	case id == nil:
	case r.offer.ghost != 0:
		b = binary.BigEndian.AppendUint32(b, uint32(env.Source))
		b = binary.BigEndian.AppendUint32(b, r.offer.number)
	default:
		b = binary.BigEndian.AppendUint32(b, *id)
	}
	if !ep.out.word(p, len(b), nil) {
		return 0
	}
	ep.net.posts = burstMax + 1 // the next call may be late
	if id == nil {
		iv.inviteGhost(r, p, b)
	}
	return a.ghost
}

// retract has r, a receive that was posted, end with an error, or as cancelled, when its sender has let go of
// the invitation. false: there is none, and r ends at once. Until then a message may still meet r.
func (iv *inviter) retract(r *Request, err error) bool {
	o := &r.offer
	switch {
	case o.ghost == 0:
		return false
	case o.rkey&isPlaced != 0 && err == nil:
		return true // its message is on its way
	case o.rkey&isPlaced != 0:
		iv.ep.delegator.noted(r)
		return false
	}
	o.rkey = awaitsSender
	if o.number != 0 {
		o.rkey |= awaitsGhost
	}
	if !iv.waits(r) {
		return false
	}
	r.err, r.state = err, retracting
	if o.rkey&awaitsSender != 0 {
		iv.ep.out.notify(int(r.peer), kindRecall, recallInvite, r.wireID())
	}
	if o.rkey&awaitsGhost != 0 {
		iv.ep.out.notify(int(o.number), kindRecall, recallInvite, r.wireID())
	}
	return true
}

// retracted ends a receive that waited for that.
func (iv *inviter) retracted(r *Request) {
	iv.ep.match.posted.Remove(&r.entry)
	if r.err == nil {
		r.st = Status{Source: match.Any, Tag: match.Any, Mark: Cancelled}
	}
	r.complete()
}

// plain notes that a message without an RTS has gone to p.
func (iv *inviter) plain(p *peer, context uint32, tag int32) {
	if p.sent[context&1].plain++; p.invited > 0 {
		iv.missed(p, context, tag)
	}
}

// missed forgets an invitation for a message that has gone another way.
func (iv *inviter) missed(p *peer, context uint32, tag int32) {
	iv.drop(p, iv.find(p, match.Envelope{Context: context, Tag: tag}, iv.ep.rank))
}

// saw counts a message of p.
func (p *peer) saw(h *header) {
	switch h.kind {
	case kindEager, kindSync, kindHead: // a linked one may be counted already
		p.got[h.context&1].plain++
	case kindRTS:
		p.got[h.context&1].asked++
	}
}

// find returns the index of the invitation of p to messages of an envelope from a rank, or -1.
func (iv *inviter) find(p *peer, env match.Envelope, from int32) int {
	if p.invited == 0 {
		return -1
	}
	env.Source = p.rank
	return slices.IndexFunc(iv.held, func(i invitation) bool { return i.to == env && i.from == from })
}

// drop forgets an invitation, if there is one at this index.
func (iv *inviter) drop(p *peer, at int) {
	if at >= 0 {
		iv.held = slices.Delete(iv.held, at, at+1)
		p.invited--
	}
}

// arrived takes in an invitation.
func (iv *inviter) arrived(h *header, b []byte) {
	ep, p := iv.ep, &iv.ep.peers[h.source]
	i := invitation{to: h.envelope(), from: ep.rank, ghost: int32(binary.BigEndian.Uint32(b[headerLen+8:]))}
	i.grant = grant{request: h.id, rkey: binary.BigEndian.Uint32(b[headerLen+12:]), addr: binary.BigEndian.Uint64(b[headerLen+16:]), size: binary.BigEndian.Uint64(b[headerLen+24:])}
	if int(i.ghost) < ep.cfg.ranks() || int(i.ghost) >= len(ep.peers) || i.grant.size <= uint64(ep.net.tx.stride) || i.grant.rkey == 0 {
		ep.Stats.Malformed++
		return
	}
	i.seen = tally{binary.BigEndian.Uint32(b[headerLen:]), binary.BigEndian.Uint32(b[headerLen+4:])}
	if int(ep.rank) >= ep.cfg.ranks() {
		ep.delegatee.invited(p, &i, b[headerLen+inviteLen:])
		return
	}
	if len(b) >= headerLen+inviteLen+4 {
		if r := ep.requests.lookup(binary.BigEndian.Uint32(b[headerLen+inviteLen:])); r != nil && r.state == waitCTS && r.asked && r.peer == h.source {
			iv.accept(r, &i)
		}
		return
	}
	if r, known := iv.unseen(p, i.to, i.seen); r != nil {
		iv.accept(r, &i)
	} else if known && ep.failures.open(p, i.to) {
		iv.hold(p, &i)
	}
}

// hold keeps an invitation of p, in place of one like it.
func (iv *inviter) hold(p *peer, i *invitation) {
	if iv.drop(p, iv.find(p, i.to, i.from)); len(iv.held) < heldMost {
		iv.held = append(iv.held, *i)
		p.invited++
	}
}

// unseen returns the first send to p of an envelope that p, which has seen so much, had not seen; nil: there is
// none yet. known: nothing that p had not seen can be another one.
func (iv *inviter) unseen(p *peer, env match.Envelope, got tally) (first *Request, known bool) {
	sent := &p.sent[env.Context&1]
	left := sent.asked - got.asked
	if sent.plain != got.plain || left > uint32(p.asked) {
		return nil, false
	}
	if left == 0 {
		return nil, true
	}
	env.Source = iv.ep.rank
	for _, r := range iv.ep.requests.all {
		if r.state != waitCTS || !r.asked || r.peer != p.rank || r.entry.Context&1 != env.Context&1 || int32(r.remote-got.asked) <= 0 {
			continue
		}
		if left--; r.entry.Envelope == env && (first == nil || int32(r.remote-first.remote) < 0) {
			first = r
		}
	}
	if left != 0 {
		return nil, false
	}
	return first, true
}

// accept sends r, which was announced, where an invitation says. If it cannot, the CTS will say where.
func (iv *inviter) accept(r *Request, i *invitation) {
	ep, ghost := iv.ep, &iv.ep.peers[i.ghost]
	if r.lent || r.data.typed || r.total <= uint64(ep.net.tx.stride) || ghost.err != nil || ghost.channel != nil || ghost.self {
		return
	}
	i.grant.size = min(i.grant.size, r.total)
	mr, err := ep.net.pd.RegMR(r.data.buf[:i.grant.size], 0)
	if err != nil {
		return
	}
	if r.asked {
		ep.peers[r.peer].asked--
	}
	ep.Stats.Invited++
	r.asked, r.mr, r.grant = false, mr, i.grant
	r.notice, r.peer = kindInvite, i.ghost
	iv.accepted = append(iv.accepted, acceptance{r: r})
	r.state = sendData
	ep.out.advanceOrQueue(r)
}

// postDone asks the ghost behind the data of r to say when they are there. false means no room.
func (iv *inviter) postDone(r *Request, p *peer) bool {
	h := header{kind: kindFIN, source: iv.ep.rank, tag: finAsks, id: r.wireID()}
	h.put(iv.ep.out.head[:])
	if !iv.ep.out.word(p, headerLen, nil) {
		return false
	}
	r.state = waitPlaced
	return true
}

// placed handles that the ghost has said so.
func (iv *inviter) placed(r *Request) {
	r.peer = r.st.Source
	if !iv.ep.delegatee.told(r) {
		iv.ep.out.notify(int(r.peer), kindFIN, 0, r.grant.request)
	}
	if r.state = waitAck; r.inFlight == 0 {
		r.complete()
	}
}

// cleared takes in the CTS of a send that was invited. false: it was not, or has failed.
func (iv *inviter) cleared(receiver int32, r *Request, g grant) bool {
	if r == nil || r.notice != kindInvite || r.st.Source != receiver || r.state == lingering || r.state == done {
		return false
	}
	for i := range iv.accepted {
		if a := &iv.accepted[i]; a.r == r {
			a.cleared, a.grant = true, g
		}
	}
	return true
}

// arrivedFIN takes in what is about an invitation. false: it is not.
func (iv *inviter) arrivedFIN(h *header, r *Request) bool {
	switch {
	case h.tag == finAsks:
		iv.ep.out.notify(int(h.source), kindFIN, 0, h.id) // all before is placed
	case r != nil && r.state == retracting && (r.peer == h.source || h.tag == finRetracted):
		iv.answered(r, h.source) // it has met no message
	case r == nil || r.peer != h.source:
		return h.tag == finRetracted
	case h.tag == finRetracted: // it has
	case r.notice == kindInvite && r.state == waitPlaced:
		iv.placed(r)
	case r.state == sendCTS && h.tag == 0:
		iv.ep.peers[r.peer].pending.remove(r)
		r.complete()
	default:
		return false
	}
	return true
}

// released handles that verbs has let go of what was posted for r.
func (iv *inviter) released(r *Request) {
	switch {
	case r.inFlight > 0:
	case r.state == waitAck, r.state == lingering:
		r.complete()
	case r.state == waitCTS:
		iv.restart(r)
	}
}

// fallBack has r wait for the CTS, or take it: its ghost is lost. What the receiver has got it gets again.
func (iv *inviter) fallBack(r *Request) {
	if r.state == sendData {
		iv.ep.peers[r.peer].pending.remove(r)
	}
	r.state, r.peer, r.written = waitCTS, r.st.Source, 0
	iv.ep.out.notify(int(r.peer), kindFIN, finRetracted, r.grant.request) // if it waits for that
	if r.inFlight == 0 {
		iv.restart(r)
	}
}

// restart is fallBack when verbs has nothing of r any more.
func (iv *inviter) restart(r *Request) {
	a := iv.forget(r)
	r.deregister()
	if r.notice = 0; a.cleared {
		iv.ep.rendezvous.begin(r, a.grant)
	} else {
		iv.ep.delegatee.unmet(r)
	}
}

// forget takes r out of the sends that were invited.
func (iv *inviter) forget(r *Request) (a acceptance) {
	if at := slices.IndexFunc(iv.accepted, func(a acceptance) bool { return a.r == r }); at >= 0 {
		a = iv.accepted[at]
		iv.accepted = slices.Delete(iv.accepted, at, at+1)
	}
	return a
}

// ended handles that r, a send that was invited, is complete. A receiver that has cleared one that has failed
// is told of that.
func (iv *inviter) ended(r *Request) {
	r.notice = 0
	if a := iv.forget(r); a.cleared && r.err != nil {
		iv.ep.out.notify(int(r.st.Source), kindFIN, finFailed, a.grant.request)
	}
}

// arrivedRecall lets go of an invitation. If its message is being sent, the FIN comes behind that.
func (iv *inviter) arrivedRecall(h *header) {
	for i := range iv.accepted {
		if r := iv.accepted[i].r; r.st.Source == h.source && r.grant.request == h.id && r.state != waitCTS {
			return
		}
	}
	iv.met(h.source, h.id)
	iv.ep.out.notify(int(h.source), kindFIN, finRetracted, h.id)
}

// lost handles that a rank, or a ghost, is lost.
func (iv *inviter) lost(rank int32, err error) {
	for _, r := range iv.ep.requests.all {
		if r.state == retracting && r.peer == rank {
			r.err = cmp.Or(r.err, err)
			iv.answered(r, rank)
		}
	}
	for _, a := range slices.Clone(iv.accepted) {
		switch r := a.r; {
		case r.state == lingering, r.state == waitCTS:
		case r.peer == rank && r.state != waitAck:
			iv.fallBack(r)
		case r.st.Source == rank:
			if r.state == sendData {
				iv.ep.peers[r.peer].pending.remove(r)
			}
			r.fail(err)
		}
	}
	iv.held = slices.DeleteFunc(iv.held, func(i invitation) bool {
		if i.to.Source != rank && i.ghost != rank && i.from != rank {
			return false
		}
		iv.ep.peers[i.to.Source].invited--
		return true
	})
}
