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
//     the caller that waits for the receive is told so. It stays posted, and goes on when
//     the loss was acknowledged.
//
// All else goes on. Ranks learn of losses from verbs, from the launcher
// (Config.Deaths) and from one another: a rank that learns of one tells its
// neighbours, so that ranks that only receive know it, too. A loss is for ever: a
// rank that learns that it is taken for lost itself ends.

// failures knows what is lost, and why something cannot go on.
type failures struct {
	ep       *Endpoint
	impaired bool      // a rank is lost, a communicator revoked, or over
	closing  bool      // no rank's loss matters any more
	ended    bool      // verbs is not waited for any more
	over     error     // why nothing works any more
	losses   []int32   // ranks that are lost, in the order in which we have learned of it
	deaths   int       // how many the launcher has told of
	abortAt  mono.Time // when to ask Config.Aborted next
}

// lossOf returns the error of everything that peer takes part in.
func (fs *failures) lossOf(rank int, why verbs.Status) error {
	if err := fs.ep.peers[rank].err; err != nil {
		return err
	}
	return fs.lost(rank, fs.silent(why.String()))
}

// silent adds to why a rank is lost that is silent what of its frames this host has
// lost, which may be the reason.
func (fs *failures) silent(why string) string {
	if losses := fs.ep.net.ctx.Losses().String(); losses != "" {
		return why + "; here " + losses
	}
	return why
}

func (fs *failures) lostError(rank int, why string) *Error {
	return &Error{Code: PeerLost, Peer: rank, Detail: fmt.Sprintf("%s is lost: %s", fs.nameOf(int32(rank)), why)}
}

// lost is lostError, with what is wrong with the network device of this host if the rank is
// on another one: that may be the cause.
func (fs *failures) lost(rank int, why string) *Error {
	e := fs.lostError(rank, why)
	if fs.ep.peers[rank].near == nil {
		e.Err = fs.ep.net.ctx.Trouble()
	}
	return e
}

// loseDevice handles that nothing goes through the network device any more: the ranks
// of other hosts are lost to this one, for good.
func (fs *failures) loseDevice() {
	for rank := range fs.ep.peers {
		if p := &fs.ep.peers[rank]; !p.self && p.near == nil {
			fs.failPeer(rank, fs.lost(rank, "nothing reaches it"))
		}
	}
}

// happened handles what verbs has noticed apart from anything that was sent: a rank
// that only waits for a message learns of the loss of its source, too.
func (fs *failures) happened(e *verbs.AsyncEvent) {
	if e.Type == verbs.EventDeviceFatal || e.Type == verbs.EventPortErr && fs.ep.net.rel != nil && fs.ep.net.rel.Stuck() {
		fs.loseDevice()
		return
	}
	if (e.Type == verbs.EventPeerLost || e.Type == verbs.EventPeerRestarted) && e.AH != nil && e.AH.UserData != 0 {
		fs.gone(int(e.AH.UserData-1), fs.silent(e.Type.String()))
	}
}

// gone handles that a rank is not there any more. One that has said bye has left
// as it should: it is no loss, but it answers no rank either.
func (fs *failures) gone(rank int, why string) {
	if p := &fs.ep.peers[rank]; p.near != nil && p.near.Open() {
		return // the channel will tell, when all that it holds is read
	}
	fs.left(rank, why)
}

// left is gone behind the last message of the rank.
func (fs *failures) left(rank int, why string) {
	if fs.ep.peers[rank].saidBye == mono.Never {
		fs.failPeer(rank, fs.lost(rank, why))
		return
	}
	for _, g := range fs.ep.groups.list {
		if g != nil && g.has(int32(rank)) {
			g.deliberate(int32(rank))
		}
	}
}

// nameOf returns the name of a rank, or of a ghost, for people.
func (fs *failures) nameOf(rank int32) string {
	if ranks := fs.ep.cfg.ranks(); int(rank) >= ranks {
		return fmt.Sprintf("ghost %d", int(rank)-ranks)
	}
	return fmt.Sprintf("rank %d", rank)
}

// arrivedLost handles a peer's word that others are lost.
func (fs *failures) arrivedLost(h *header, ranks []byte) {
	ep := fs.ep
	for ; len(ranks) >= 4; ranks = ranks[4:] {
		rank := binary.BigEndian.Uint32(ranks)
		switch {
		case rank >= uint32(len(ep.peers)):
			ep.Stats.Malformed++
		case rank == uint32(ep.rank):
			fs.end(fs.lostError(int(rank), fmt.Sprintf("so %s takes this one, and the ranks that are left go on without it", fs.nameOf(h.source))))
			return
		default:
			fs.failPeer(int(rank), fs.lostError(int(rank), fs.nameOf(h.source)+" says so"))
		}
	}
}

// disown tells a rank that speaks, and that this one was told is lost, that it is
// to end: others go on without it, and have agreed upon that.
func (fs *failures) disown(p *peer, rank int32) {
	if p.disowned || p.qp == nil && p.channel == nil || fs.over != nil || fs.closing {
		return
	}
	p.disowned = true
	fs.ep.out.advanceOrQueue(fs.ep.out.notice(rank, header{kind: kindLost}, fs.lossList()))
}

// failPeer fails everything that needs the peer, and tells the neighbours.
func (fs *failures) failPeer(rank int, err error) {
	ep := fs.ep
	p := &ep.peers[rank]
	if p.err != nil || p.self {
		return
	}
	p.err, fs.impaired = err, true
	fs.leave(p)
	fs.losses = append(fs.losses, int32(rank))
	for _, g := range ep.groups.list {
		if g != nil && g.has(int32(rank)) {
			g.lost = append(g.lost, int32(rank))
		}
	}
	ep.delegator.lost(int32(rank))
	ep.inviter.lost(int32(rank), err)
	if ep.delegatee != nil {
		ep.delegatee.lost(int32(rank))
	}
	fs.failRequests(func(r *Request) error {
		if int(r.peer) == rank {
			return err
		}
		return fs.overtaken(r)
	})
	ep.match.purge()
	if !fs.closing {
		fs.spreadLosses()
	}
	if ep.actives.server != nil {
		ep.actives.server.Lost(int32(rank))
	}
	for context, g := range ep.groups.list {
		if g != nil && g.has(int32(rank)) {
			if g.revoked && !fs.closing {
				ep.groups.spreadRevocation(uint32(2*context), g)
			}
			g.deliberate(int32(rank))
			if g.active != nil {
				g.active.Lost(int32(rank))
			}
		}
	}
}

// leave makes verbs let go of all that is under way to a peer: it will never be
// acknowledged, and a request that waits for its memory need not wait for a time-out.
func (fs *failures) leave(p *peer) {
	ep := fs.ep
	if ep.net.conn != nil {
		ep.net.conn.abort(p)
	}
	switch {
	case p.rel != nil:
		ep.net.rel.Abandon(p.rel)
	case p.ah != nil:
		_ = p.ah.Destroy() // cannot fail: the context is open
	}
}

// overtaken returns why a request of two live ranks has become pointless: its
// communicator is revoked, or its collective cannot come to its end. What both
// ends work on comes to an end by itself, and ending one side would leave the
// other one waiting.
func (fs *failures) overtaken(r *Request) error {
	switch r.state {
	case sendData, sendCTS, sendRead, sendWrite, sendActive, sendAgain, sendNotice, retracting, waitFIN, waitAck, waitPlaced, waitRest, waitTurn, waitRead, lingering:
		return nil
	case sendEager:
		if r.written > 0 {
			return nil
		}
	}
	return fs.broken(r.entry.Envelope)
}

// failRequests fails the requests under way for which why has an error.
func (fs *failures) failRequests(why func(*Request) error) {
	ep := fs.ep
	for i := range ep.peers {
		ep.peers[i].pending.fail(why)
		ep.peers[i].readers.fail(why)
	}
	ep.pulls.queue.fail(why)
	for _, r := range ep.requests.all {
		switch r.state {
		case posted, retracting, waitCTS, waitFIN, waitAck, waitPlaced, waitRest, waitRead, lingering:
		default:
			continue // it was in a queue, or is none, or has ended
		}
		err := why(r)
		if err == nil {
			continue
		}
		switch {
		case r.state == posted && ep.inviter.retract(r, err), r.state == retracting && ep.inviter.waits(r):
			continue
		case r.state == posted, r.state == retracting:
			ep.match.posted.Remove(&r.entry)
		}
		r.fail(err)
	}
}

// purge throws away the messages that no receive can take any more.
func (mt *matching) purge() {
	for _, e := range mt.unexpected.All() {
		if mt.ep.failures.unwanted(e.Envelope) {
			mt.unexpected.Remove(e)
			mt.forget(e.Owner)
		}
	}
}

// spreadLosses tells the neighbours of all losses. It is done at every loss, for
// a rank that has died may have been between this one and another.
func (fs *failures) spreadLosses() {
	fs.neighbours(nil, func(to int) { fs.ep.out.tell(to, header{kind: kindLost}, fs.lossList()) })
}

// lossList returns all losses as the body of a word.
func (fs *failures) lossList() []byte {
	list := make([]byte, 0, 4*len(fs.losses))
	for _, rank := range fs.losses {
		list = binary.BigEndian.AppendUint32(list, uint32(rank))
	}
	return list
}

// neighbours calls f for those of members (nil: all ranks) that this rank tells
// news to: the next live ones at distances 1, 2, 4, ... in both directions
// (Angskun, Bosilca, Dongarra: Binomial graph, ISPA 2007). Live ranks always are a
// ring at least, so news reach all of them.
func (fs *failures) neighbours(members []int32, f func(rank int)) {
	ep := fs.ep
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

// open reports whether messages may go to a peer: no rank that matters is lost.
func (fs *failures) open(p *peer, env match.Envelope) bool {
	return !fs.impaired || p.err == nil && fs.broken(env) == nil
}

// hopeless returns why a receive cannot be served any more, or nil.
func (fs *failures) hopeless(env match.Envelope) error {
	switch {
	case !fs.impaired:
		return nil
	case env.Source != match.Any && fs.ep.peers[env.Source].err != nil:
		return fs.ep.peers[env.Source].err
	}
	return fs.broken(env)
}

// unprobed returns why a message that has not come cannot come any more, or is not
// to be waited for.
func (fs *failures) unprobed(env match.Envelope) error {
	if !fs.impaired {
		return nil
	}
	if err := fs.hopeless(env); err != nil {
		return err
	}
	return given(fs.doubt(env))
}

// given makes the error of a receive that may still be served that of one that was
// given up.
func given(doubt error) error {
	if e, ok := errors.AsType[*Error](doubt); ok {
		return &Error{Code: PeerLost, Peer: e.Peer, Detail: e.Detail, Err: e.Err}
	}
	return nil
}

// abortInterval is how often Config.Aborted and Config.Deaths are asked.
const abortInterval = 100 * mono.Millisecond

// askLauncher asks what the launcher knows about the job.
func (fs *failures) askLauncher(now mono.Time) {
	ep := fs.ep
	fs.abortAt = now.Add(abortInterval)
	if ep.cfg.Deaths != nil {
		for _, rank := range ep.cfg.Deaths(fs.deaths) {
			fs.deaths++
			if rank != int(ep.rank) {
				fs.gone(rank, "the launcher says so")
			}
		}
	}
	if ep.cfg.Aborted == nil {
		return
	}
	if why := ep.cfg.Aborted(); why != nil {
		fs.end(&Error{Code: Ended, Peer: -1, Detail: "the job is being ended", Err: why})
	}
}

// end is End for those inside.
func (fs *failures) end(err *Error) {
	ep := fs.ep
	for i := range ep.peers {
		p := &ep.peers[i]
		if p.reading > 0 {
			fs.leave(p) // nothing is to come any more into memory that the user has back
		}
		p.err = err
	}
	fs.over, fs.impaired = err, true
	ep.match.unexpected = match.Unexpected[message]{}
	fs.failRequests(func(*Request) error { return err })
	fs.ended, fs.abortAt = true, mono.Never
	for i := range ep.peers {
		if ep.net.conn != nil {
			ep.net.conn.abort(&ep.peers[i])
		}
	}
	for _, r := range ep.requests.all {
		if r.state == lingering { // the program ends: do not wait for verbs
			r.inFlight = 0
			r.complete()
		}
	}
}
