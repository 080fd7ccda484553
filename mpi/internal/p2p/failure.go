package p2p

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// What happens when a rank is lost: every operation under way with it fails,
// and so does every later one. Receives from any source that are posted at that
// moment fail too, for they may have waited for it; later ones do not. All
// collectives fail from then on, because some rank would wait for ever. The
// rank that notices tells the others, so that those who only receive know it.

// lossOf returns the error of everything that peer takes part in.
func (ep *Endpoint) lossOf(rank int, why verbs.Status) error {
	if err := ep.peers[rank].err; err != nil {
		return err
	}
	return &Error{Code: PeerLost, Peer: rank, Detail: fmt.Sprintf("rank %d is lost: %v", rank, why)}
}

// losePeer handles the failure of something that was sent.
func (ep *Endpoint) losePeer(rank int, why verbs.Status) {
	if ep.peers[rank].err != nil {
		return
	}
	ep.failPeer(rank, ep.lossOf(rank, why))
	if !ep.closing {
		ep.spread(rank)
	}
}

// loseLink handles that a peer cannot be connected with.
func (ep *Endpoint) loseLink(rank int, why error) {
	if ep.peers[rank].err != nil {
		return
	}
	ep.failPeer(rank, &Error{Code: PeerLost, Peer: rank, Detail: fmt.Sprintf("rank %d is lost", rank), Err: why})
	if !ep.closing {
		ep.spread(rank)
	}
}

// arrivedLost handles a peer's word that a third rank is lost.
func (ep *Endpoint) arrivedLost(h *header) {
	rank := int(h.tag)
	if rank >= len(ep.peers) || rank == int(ep.rank) || ep.peers[rank].err != nil {
		return
	}
	ep.failPeer(rank, &Error{Code: PeerLost, Peer: rank, Detail: fmt.Sprintf("rank %d is lost: rank %d says so", rank, h.source)})
}

// failPeer fails everything that needs the peer.
func (ep *Endpoint) failPeer(rank int, err error) {
	ep.peers[rank].err = err
	if ep.lost == nil {
		ep.lost = err
	}
	if ep.conn != nil {
		ep.conn.hangUp(&ep.peers[rank])
	}
	ep.failRequests(err, func(r *Request) bool {
		return int(r.peer) == rank || r.peer == match.Any || collective(r.entry.Context) && !r.underWay()
	})
}

// underWay reports whether both ends work on r. Between live ranks it comes to
// an end by itself, and ending one side would leave the other one waiting.
func (r *Request) underWay() bool {
	switch r.state {
	case sendData, sendCTS, sendNotice, waitFIN, waitAck, matchSelf, pulling:
		return true
	}
	return false
}

// failRequests fails the requests under way that are affected.
func (ep *Endpoint) failRequests(err error, affected func(*Request) bool) {
	for _, r := range ep.requests {
		if r.state == free || r.state == done || r.state == lingering || !affected(r) {
			continue
		}
		switch {
		case r.state == posted:
			ep.posted.Remove(&r.entry)
		case r.state.waitsForRoom():
			ep.peers[r.peer].pending.remove(r)
		case r.state == pulling:
			ep.pulls.remove(r)
		}
		r.fail(err)
	}
}

// spread tells all other ranks that rank is lost.
func (ep *Endpoint) spread(rank int) {
	for i := range ep.peers {
		if p := &ep.peers[i]; !p.self && p.err == nil {
			ep.notify(i, kindLost, int32(rank), 0)
		}
	}
}

// notify sends a word of our own. Nobody waits for it but Drain.
func (ep *Endpoint) notify(rank int, k kind, tag int32, id uint32) {
	ep.advanceOrQueue(ep.notice(int32(rank), k, tag, id))
}

// notice makes the request of a word of our own.
func (ep *Endpoint) notice(rank int32, k kind, tag int32, id uint32) *Request {
	r := ep.request(rank, nil)
	r.detached = true
	ep.active--
	r.entry.Envelope = match.Envelope{Tag: tag}
	r.notice, r.remote = k, id
	r.state = sendNotice
	return r
}

func (ep *Endpoint) postNotice(r *Request, p *peer) bool {
	h := header{kind: r.notice, source: ep.rank, tag: r.entry.Tag, id: r.remote}
	h.put(ep.head[:])
	if !ep.postSignaled(p, r, headerLen) {
		return false
	}
	if r.notice == kindSwitch {
		p.qp = nil // until all before it was acknowledged
	}
	if r.state = waitAck; r.inFlight == 0 {
		r.complete() // a neighbour has it
	}
	return true
}

// hopeless returns why a receive cannot be served any more, or nil.
func (ep *Endpoint) hopeless(env match.Envelope) error {
	if ep.lost == nil {
		return nil
	}
	if collective(env.Context) {
		return ep.lost
	}
	if env.Source != match.Any {
		return ep.peers[env.Source].err
	}
	for i := range ep.peers {
		if ep.peers[i].err == nil && i != int(ep.rank) {
			return nil // it may still send
		}
	}
	return ep.lost
}

// abortInterval is how often Config.Aborted is asked.
const abortInterval = 100 * mono.Millisecond

func (ep *Endpoint) checkAborted(now mono.Time) {
	ep.abortAt = now.Add(abortInterval)
	if why := ep.cfg.Aborted(); why != nil {
		ep.end(&Error{Code: Ended, Peer: -1, Detail: "the job is being ended", Err: why})
	}
}

// end is End for those inside.
func (ep *Endpoint) end(err *Error) {
	for i := range ep.peers {
		ep.peers[i].err = err
	}
	ep.lost = err
	ep.unexpected = match.Unexpected[message]{}
	ep.failRequests(err, func(r *Request) bool { return true })
	ep.ended, ep.abortAt = true, mono.Never
	for i := range ep.peers {
		if ep.conn != nil {
			ep.conn.hangUp(&ep.peers[i])
		}
	}
	for _, r := range ep.requests {
		if r.state == lingering { // the program ends: do not wait for verbs
			r.inFlight = 0
			r.complete()
		}
	}
}
