package p2p

import "github.com/xwarp/xwarp/mpi/internal/match"

// Notices are words of our own, which no receive waits for.

// notify sends a word of the header only. Nobody waits for it but Drain.
func (ep *Endpoint) notify(rank int, k kind, tag int32, id uint32) {
	ep.tell(rank, header{kind: k, tag: tag, id: id}, nil)
}

// tell sends a word with a body, in pieces that go inline: the tag of each says how
// many bytes are still to come. The body is ours from now on.
func (ep *Endpoint) tell(rank int, h header, body []byte) {
	if ep.peers[rank].err != nil {
		return
	}
	ep.advanceOrQueue(ep.notice(int32(rank), h, body))
}

// notice makes the request of a word.
func (ep *Endpoint) notice(rank int32, h header, body []byte) *Request {
	r := ep.request(rank, body)
	r.detached = true
	ep.active--
	r.entry.Envelope = match.Envelope{Context: h.context, Tag: h.tag}
	r.notice, r.remote = h.kind, h.id
	r.state = sendNotice
	return r
}

func (ep *Endpoint) postNotice(r *Request, p *peer) bool {
	h := header{kind: r.notice, context: r.entry.Context, source: ep.rank, tag: r.entry.Tag, id: r.remote}
	for {
		n := copy(ep.head[headerLen:headerLen+ep.inlineMax&^7], r.data.buf)
		left := len(r.data.buf) - n
		if n > 0 {
			h.tag = int32(left)
		}
		h.put(ep.head[:])
		if left == 0 {
			break
		}
		if !ep.postInline(p, r.peer, headerLen+n) {
			return false
		}
		r.data.buf = r.data.buf[n:]
	}
	if !ep.postSignaled(p, r, headerLen+len(r.data.buf)) {
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
