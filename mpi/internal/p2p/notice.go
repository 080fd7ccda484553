package p2p

import "github.com/xwarp/xwarp/mpi/internal/match"

// Notices are words of our own, which no receive waits for.

// notify sends a word of the header only. No caller waits for it but Drain.
func (s *sender) notify(rank int, k kind, tag int32, id uint32) {
	s.tell(rank, header{kind: k, tag: tag, id: id}, nil)
}

// tell sends a word with a body, in pieces that go inline: the tag of each says how
// many bytes are still to come. The body is ours from now on.
func (s *sender) tell(rank int, h header, body []byte) {
	if s.ep.peers[rank].err != nil {
		return
	}
	s.advanceOrQueue(s.notice(int32(rank), h, body))
}

// brief is notify of what no caller waits for, not even Drain: the bye comes behind it.
func (s *sender) brief(p *peer, h header) {
	h.source = s.ep.rank
	h.put(s.head[:])
	if !p.ready() || !s.word(p, headerLen, nil) {
		s.tell(int(p.rank), h, nil)
	}
}

// notice makes the request of a word.
func (s *sender) notice(rank int32, h header, body []byte) *Request {
	r := s.ep.requests.request(rank, body)
	r.detached = true
	s.ep.requests.active--
	r.entry.Envelope = match.Envelope{Context: h.context, Tag: h.tag}
	r.notice, r.remote = h.kind, h.id
	r.state = sendNotice
	return r
}

func (s *sender) postNotice(r *Request, p *peer) bool {
	ep := s.ep
	h := header{kind: r.notice, context: r.entry.Context, source: ep.rank, tag: r.entry.Tag, id: r.remote}
	for {
		n := copy(s.head[headerLen:headerLen+ep.net.inlineMax&^7], r.data.buf)
		left := len(r.data.buf) - n
		if n > 0 {
			h.tag = int32(left)
		}
		h.put(s.head[:])
		if left == 0 {
			break
		}
		if !s.word(p, headerLen+n, nil) {
			return false
		}
		r.data.buf = r.data.buf[n:]
	}
	if !s.word(p, headerLen+len(r.data.buf), r) {
		return false
	}
	if r.state = waitAck; r.inFlight == 0 {
		r.complete() // a neighbour has it
	}
	return true
}
