package p2p

// The memory of eager messages that came before their receives is bounded. A peer
// whose message makes it more than Config.UnexpectedMax is told to hold back: from
// then on it sends all its messages as large ones, whose data stays where it is
// until there is a receive for it. When half of the memory is free again, all are
// told to go on. What is on its way meanwhile still comes: at most what the receive
// buffers here hold, and the send buffers and the send queue of each peer, by default
// 4 MiB and 1.2 MiB.
//
// Can a rank wait for ever because of this? A message that is held back is a send
// that waits for its receive, which MPI allows every standard send to do (MPI 4.1,
// section 3.4): a program that needs more buffers than there are is unsafe, and has
// to expect the same above the eager limit. Collectives do not rely on buffers, for
// long vectors have none. And nothing but the held sends waits: receive buffers go
// back to the queue pair at once, whatever becomes of their messages, so that RTS,
// CTS, FIN, words of our own, and messages of other peers all pass. To leave the
// buffers unposted, so that credits of the transport run out, would be simpler; but
// then a message that a receive waits for is stuck behind those that no receive has asked
// for yet, even of another peer, and safe programs hang.

// keepCost is what a message that waits takes besides its data, in bytes.
const keepCost = 256

// Tags of kindPace.
const (
	paceGoOn = iota
	paceHold
)

// cost returns what a message counts. The data of others is where it was.
func (m *message) cost() int {
	if m.kind == kindRTS || m.self != nil {
		return 0
	}
	return keepCost + len(m.data)
}

// keep adds a message of a rank to those that wait.
func (mt *matching) keep(m *message, from int32) {
	ep := mt.ep
	ep.Stats.Unexpected++
	mt.unexpected.Add(&m.entry)
	mt.kept += m.cost()
	if p := &ep.peers[from]; mt.full() && !p.held && !p.self {
		p.held = true
		mt.holding++
		ep.out.notify(int(from), kindPace, paceHold, 0)
	}
}

// full reports whether no more eager messages should be kept.
func (mt *matching) full() bool { return mt.kept > mt.ep.cfg.UnexpectedMax }

// roomFor reports whether all messages of a batch of n bytes could be kept, and no peer had to be told to hold back.
func (mt *matching) roomFor(n int) bool {
	return mt.kept+n+n/subHeaderLen*keepCost <= mt.ep.cfg.UnexpectedMax
}

// forget takes back the memory of a message that does not wait any more.
func (mt *matching) forget(m *message) {
	mt.kept -= m.cost()
	switch m.kind {
	case kindHead:
		mt.ep.pieces.abandon(m)
	case kindLinked:
		mt.ep.lanes.abandon(m)
	}
	mt.messages.put(m)
	if mt.holding > 0 && mt.kept <= mt.ep.cfg.UnexpectedMax/2 {
		mt.letGoOn()
	}
}

func (mt *matching) letGoOn() {
	ep := mt.ep
	mt.holding = 0
	for i := range ep.peers {
		if p := &ep.peers[i]; p.held {
			p.held = false
			ep.out.tell(i, header{kind: kindPace, tag: paceGoOn}, nil)
		}
	}
}

// arrivedPace does what a peer asks that has no memory for our messages, or has it
// again.
func (mt *matching) arrivedPace(h *header, p *peer) {
	if h.tag == paceHold {
		p.eagerMax = -1 // not even empty ones
	} else {
		p.eagerMax = p.eagerTop
	}
}
