package p2p

// ready reports whether messages may go to a peer at once: there is a way, and
// none waits that has to go before.
func (p *peer) ready() bool { return p.reachable() && p.pending.head == nil }

// takes reports whether a message of n bytes may go to a peer at once, and whole.
func (p *peer) takes(n int) bool { return n <= int(p.eagerMax) && n <= int(p.plainMax) && p.ready() }

// advanceOrQueue does the next step of r now, or when there is room for it.
// Requests to one peer take their turn, so that messages stay in order.
func (s *sender) advanceOrQueue(r *Request) {
	p := &s.ep.peers[r.peer]
	if p.ready() && s.advance(r) {
		return
	}
	p.pending.push(r)
	s.goOn(p)
	s.reach(p)
}

// reach begins to connect with a peer if there is no other way.
func (s *sender) reach(p *peer) {
	if !p.reachable() && s.ep.net.conn != nil {
		s.ep.net.conn.reach(p)
	}
}

// goOn sees to it that the requests that wait for a peer have their turn when
// there is a way to it.
func (s *sender) goOn(p *peer) {
	if p.reachable() && p.pending.head != nil && !p.stuck {
		s.stuck.push(p)
	}
}

// advanceStuck gives each peer for which requests wait one turn, and returns how
// many of them have moved.
func (s *sender) advanceStuck() (n int) {
	ep := s.ep
	full := false // the queue pair that peers share
	last := s.stuck.tail
	for p := s.stuck.head; p != nil; p = s.stuck.head {
		s.stuck.pop()
		shares := p.channel == nil && p.qp == ep.net.qp && ep.net.rel == nil
		if !full || !shares {
			moved := s.advancePeer(p)
			n += moved
			full = full || shares && moved == 0
		}
		s.goOn(p)
		if p == last || full && ep.near.channels == nil {
			break
		}
	}
	return n
}

// advancePeer posts what waits for a peer, as far as there is room.
func (s *sender) advancePeer(p *peer) (n int) {
	for p.reachable() && p.pending.head != nil {
		r := p.pending.head
		// Off the queue first: posting may complete r, and a completed
		// request may go back to the pool, which uses the same link.
		p.pending.pop()
		if !s.advance(r) {
			p.putBack(r)
			s.reach(p)
			break
		}
		n++
	}
	return n
}

// putBack returns a request that found no room to the queue: to its turn, or to
// the end if it is in the middle of its data, so that a long message does not
// hold up short ones. Only first words of messages have to stay in order, and Writes in
// datagrams, which messages tell of.
func (p *peer) putBack(r *Request) {
	if r.state == sendData || r.state == sendRead || r.state == sendWrite && r.grant.linked {
		p.pending.push(r)
	} else {
		p.pending.pushFront(r)
	}
}

// peerQueue is a first-in-first-out list of peers, chained through peer.next.
type peerQueue struct{ head, tail *peer }

func (q *peerQueue) push(p *peer) {
	p.next, p.stuck = nil, true
	if q.tail != nil {
		q.tail.next = p
	} else {
		q.head = p
	}
	q.tail = p
}

func (q *peerQueue) pop() {
	p := q.head
	if q.head = p.next; q.head == nil {
		q.tail = nil
	}
	p.next, p.stuck = nil, false
}
