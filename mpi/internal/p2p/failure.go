package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// What happens when a rank is lost (as ULFM has it: Bland, Bouteiller, Herault,
// Bosilca, Dongarra: Post-failure recovery of MPI communication capability,
// IJHPCA 2013):
//
//   - every operation under way with it fails, and so does every later one;
//   - the collectives of communicators that it is in fail, now and later, because
//     some rank would wait for ever;
//   - a receive from any source on such a communicator may have waited for it:
//     whoever waits for the receive is told so. It stays posted, and goes on when
//     the loss was acknowledged.
//
// All else goes on. Ranks learn of losses from verbs, from the launcher
// (Config.Deaths) and from one another: who learns of one tells its neighbours,
// so that those who only receive know it, too. A loss is for ever: a rank that
// hears that it is taken for lost itself ends.

// lossOf returns the error of everything that peer takes part in.
func (ep *Endpoint) lossOf(rank int, why verbs.Status) error {
	if err := ep.peers[rank].err; err != nil {
		return err
	}
	return ep.lost(rank, ep.silent(why.String()))
}

// silent adds to why a rank is lost that is silent what of its frames this host has
// lost, which may be the reason.
func (ep *Endpoint) silent(why string) string {
	if losses := ep.ctx.Losses().String(); losses != "" {
		return why + "; here " + losses
	}
	return why
}

func lostError(rank int, why string) *Error {
	return &Error{Code: PeerLost, Peer: rank, Detail: fmt.Sprintf("rank %d is lost: %s", rank, why)}
}

// lost is lostError, with what is wrong with the network device of this host if the rank is
// on another one: that may be the cause.
func (ep *Endpoint) lost(rank int, why string) *Error {
	e := lostError(rank, why)
	if ep.peers[rank].near == nil {
		e.Err = ep.ctx.Trouble()
	}
	return e
}

// loseDevice handles that nothing goes through the network device any more: the ranks
// of other hosts are lost to this one, for good.
func (ep *Endpoint) loseDevice() {
	for rank := range ep.peers {
		if p := &ep.peers[rank]; !p.self && p.near == nil {
			ep.failPeer(rank, ep.lost(rank, "nothing reaches it"))
		}
	}
}

// losePeer handles the failure of something that was sent.
func (ep *Endpoint) losePeer(rank int, why verbs.Status) { ep.failPeer(rank, ep.lossOf(rank, why)) }

// happened handles what verbs has noticed apart from anything that was sent: a rank
// that only waits for a message hears of the loss of its source, too.
func (ep *Endpoint) happened(e *verbs.AsyncEvent) {
	if e.Type == verbs.EventDeviceFatal || e.Type == verbs.EventPortErr && ep.rel != nil && ep.rel.Stuck() {
		ep.loseDevice()
		return
	}
	if (e.Type == verbs.EventPeerLost || e.Type == verbs.EventPeerRestarted) && e.AH != nil && e.AH.UserData != 0 {
		ep.gone(int(e.AH.UserData-1), ep.silent(e.Type.String()))
	}
}

// loseLink handles that a peer cannot be connected with.
func (ep *Endpoint) loseLink(rank int, why error) { ep.failPeer(rank, ep.lost(rank, why.Error())) }

// gone handles that a rank is not there any more. One that has said bye has left
// as it should: it is no loss, but it answers nobody either.
func (ep *Endpoint) gone(rank int, why string) {
	if p := &ep.peers[rank]; p.near != nil && p.near.Open() {
		return // the channel will tell, when all that it holds is read
	}
	ep.left(rank, why)
}

// left is gone behind the last message of the rank.
func (ep *Endpoint) left(rank int, why string) {
	if ep.peers[rank].saidBye == mono.Never {
		ep.failPeer(rank, ep.lost(rank, why))
		return
	}
	for _, g := range ep.groups {
		if g != nil && g.has(int32(rank)) {
			g.deliberate(int32(rank))
		}
	}
}

// arrivedLost handles a peer's word that others are lost.
func (ep *Endpoint) arrivedLost(h *header, ranks []byte) {
	for ; len(ranks) >= 4; ranks = ranks[4:] {
		rank := binary.BigEndian.Uint32(ranks)
		switch {
		case rank >= uint32(len(ep.peers)):
			ep.Stats.Malformed++
		case rank == uint32(ep.rank):
			ep.end(lostError(int(rank), fmt.Sprintf("so rank %d takes this one, and the ranks that are left go on without it", h.source)))
			return
		default:
			ep.failPeer(int(rank), lostError(int(rank), fmt.Sprintf("rank %d says so", h.source)))
		}
	}
}

// disown tells a rank that speaks, and that this one was told is lost, that it is
// to end: others go on without it, and have agreed upon that.
func (ep *Endpoint) disown(p *peer, rank int32) {
	if p.disowned || p.qp == nil && p.channel == nil || ep.over != nil || ep.closing {
		return
	}
	p.disowned = true
	ep.advanceOrQueue(ep.notice(rank, header{kind: kindLost}, ep.lossList()))
}

// failPeer fails everything that needs the peer, and tells the neighbours.
func (ep *Endpoint) failPeer(rank int, err error) {
	p := &ep.peers[rank]
	if p.err != nil || p.self {
		return
	}
	p.err, ep.impaired = err, true
	ep.leave(p)
	ep.losses = append(ep.losses, int32(rank))
	for _, g := range ep.groups {
		if g != nil && g.has(int32(rank)) {
			g.lost = append(g.lost, int32(rank))
		}
	}
	ep.failRequests(func(r *Request) error {
		if int(r.peer) == rank {
			return err
		}
		return ep.overtaken(r)
	})
	ep.purge()
	if !ep.closing {
		ep.spreadLosses()
	}
	for context, g := range ep.groups {
		if g != nil && g.has(int32(rank)) {
			if g.revoked && !ep.closing {
				ep.spreadRevocation(uint32(2*context), g)
			}
			g.deliberate(int32(rank))
			if g.active != nil {
				g.active.Lost(int32(rank))
			}
		}
	}
}

// leave makes verbs let go of all that is under way to a peer: nobody will ever
// acknowledge it, and who waits for his memory need not wait for a time-out.
func (ep *Endpoint) leave(p *peer) {
	if ep.conn != nil {
		ep.conn.abort(p)
	}
	switch {
	case p.rel != nil:
		ep.rel.Abandon(p.rel)
	case p.ah != nil:
		_ = p.ah.Destroy() // cannot fail: the context is open
	}
}

// overtaken returns why a request of two live ranks has become pointless: its
// communicator is revoked, or its collective cannot come to its end. What both
// ends work on comes to an end by itself, and ending one side would leave the
// other one waiting.
func (ep *Endpoint) overtaken(r *Request) error {
	switch r.state {
	case sendData, sendCTS, sendRead, sendWrite, sendActive, sendNotice, waitFIN, waitAck, waitRest, pulling, waitRoom, waitRead, recalled:
		return nil
	case sendSplit:
		if r.written > 0 {
			return nil
		}
	}
	return ep.broken(r.entry.Envelope)
}

// failRequests fails the requests under way for which why has an error.
func (ep *Endpoint) failRequests(why func(*Request) error) {
	for i := range ep.peers {
		ep.peers[i].pending.fail(why)
		ep.peers[i].readers.fail(why)
	}
	ep.pulls.fail(why)
	for _, r := range ep.requests {
		switch r.state {
		case posted, matchSelf, waitCTS, waitFIN, waitAck, waitRest, waitRead, recalled:
		default:
			continue // it was in a queue, or is none, or has ended
		}
		err := why(r)
		if err == nil {
			continue
		}
		if r.state == posted {
			ep.posted.Remove(&r.entry)
		}
		r.fail(err)
	}
}

// purge throws away the messages that nobody can receive any more.
func (ep *Endpoint) purge() {
	for _, e := range ep.unexpected.All() {
		if ep.unwanted(e.Envelope) {
			ep.unexpected.Remove(e)
			ep.forget(e.Owner)
		}
	}
}

// spreadLosses tells the neighbours of all losses. It is done at every loss, for
// who has died may have been between us and somebody else.
func (ep *Endpoint) spreadLosses() {
	ep.neighbours(nil, func(to int) { ep.tell(to, header{kind: kindLost}, ep.lossList()) })
}

// lossList returns all losses as the body of a word.
func (ep *Endpoint) lossList() []byte {
	list := make([]byte, 0, 4*len(ep.losses))
	for _, rank := range ep.losses {
		list = binary.BigEndian.AppendUint32(list, uint32(rank))
	}
	return list
}

// neighbours calls f for those of members (nil: all ranks) that this rank tells
// news to: the next live ones at distances 1, 2, 4, ... in both directions
// (Angskun, Bosilca, Dongarra: Binomial graph, ISPA 2007). Live ranks always are a
// ring at least, so news reach all of them.
func (ep *Endpoint) neighbours(members []int32, f func(rank int)) {
	n, me := len(members), 0
	if members == nil {
		n, me = len(ep.peers), int(ep.rank)
	} else {
		for members[me] != ep.rank {
			me++
		}
	}
	told := map[int]bool{}
	for _, direction := range [2]int{1, -1} {
		for distance := 1; distance < n; distance *= 2 {
			for d := distance; d < n; d++ {
				rank := (me + direction*d + n) % n
				if members != nil {
					rank = int(members[rank])
				}
				if ep.peers[rank].err != nil {
					continue
				}
				if !told[rank] {
					told[rank] = true
					f(rank)
				}
				break
			}
		}
	}
}

// hopeless returns why a receive cannot be served any more, or nil.
func (ep *Endpoint) hopeless(env match.Envelope) error {
	switch {
	case !ep.impaired:
		return nil
	case env.Source != match.Any && ep.peers[env.Source].err != nil:
		return ep.peers[env.Source].err
	}
	return ep.broken(env)
}

// unprobed returns why a message that has not come cannot come any more, or is not
// to be waited for.
func (ep *Endpoint) unprobed(env match.Envelope) error {
	if !ep.impaired {
		return nil
	}
	if err := ep.hopeless(env); err != nil {
		return err
	}
	return given(ep.doubt(env))
}

// given makes the error of a receive that may still be served that of one that was
// given up.
func given(doubt error) error {
	var e *Error
	if errors.As(doubt, &e) {
		return &Error{Code: PeerLost, Peer: e.Peer, Detail: e.Detail, Err: e.Err}
	}
	return nil
}

// abortInterval is how often Config.Aborted and Config.Deaths are asked.
const abortInterval = 100 * mono.Millisecond

// askLauncher asks what the launcher knows about the job.
func (ep *Endpoint) askLauncher(now mono.Time) {
	ep.abortAt = now.Add(abortInterval)
	if ep.cfg.Deaths != nil {
		for _, rank := range ep.cfg.Deaths(ep.deaths) {
			ep.deaths++
			if rank != int(ep.rank) {
				ep.gone(rank, "the launcher says so")
			}
		}
	}
	if ep.cfg.Aborted == nil {
		return
	}
	if why := ep.cfg.Aborted(); why != nil {
		ep.end(&Error{Code: Ended, Peer: -1, Detail: "the job is being ended", Err: why})
	}
}

// end is End for those inside.
func (ep *Endpoint) end(err *Error) {
	for i := range ep.peers {
		p := &ep.peers[i]
		if p.reading > 0 {
			ep.leave(p) // nothing is to come any more into memory that the user has back
		}
		p.err = err
	}
	ep.over, ep.impaired = err, true
	ep.unexpected = match.Unexpected[message]{}
	ep.failRequests(func(*Request) error { return err })
	ep.ended, ep.abortAt = true, mono.Never
	for i := range ep.peers {
		if ep.conn != nil {
			ep.conn.abort(&ep.peers[i])
		}
	}
	for _, r := range ep.requests {
		if r.state == lingering { // the program ends: do not wait for verbs
			r.inFlight = 0
			r.complete()
		}
	}
}
