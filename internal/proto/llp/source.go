package llp

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// sourceSearch looks for a source port from which datagrams arrive at a peer on the queue of
// its NIC that is its home queue, so that ranks which share a NIC have a queue each. No knowledge of how
// the NIC chooses the queue is needed: the answer to a Hello says on which one that came
// in, and short Hellos try one source port after the other.
type sourceSearch struct {
	asked uint8     // number of the source port of the last Hello
	tried uint8     // how many were
	queue uint8     // that all have come in on, or 0 when there were several
	due   mono.Time // when the next is tried if there is no answer
}

// A NIC may look at addresses only. sameQueue source ports in a row on one queue show that,
// for by chance that is rare even where there are two.
const sameQueue = 12

// putSource writes which source port a Hello is sent from into its header. Of an answer
// queueTold writes on which queue the Hello came in, too, and on which it should have.
func putSource(h *dgram.Header, source uint8) { h.LSN = dgram.Serial(uint32(source) << 24) }

func sourceOf(h *dgram.Header) uint8 { return uint8(h.LSN >> 24) }

// queueTold answers which source port the present Hello has, and where it came in.
func (hs *handshake) queueTold(answer, hello *dgram.Header) {
	if hs.ep.caps.Home == 0 || hs.ep.bulk.lent || hs.ep.multi.dg != nil {
		return
	}
	queue := hs.ep.rx.Pkts[hs.ep.rxPos-1].Queue
	putSource(answer, sourceOf(hello))
	answer.LSN |= dgram.Serial(uint32(queue)<<16 | uint32(hs.ep.caps.Home)<<8)
}

// sourceAnswered takes what the answer to a Hello of size bytes says about the queue, and
// reports whether that Hello was sent for nothing else.
func (hs *handshake) sourceAnswered(p *Peer, h *dgram.Header, size int) (tried bool) {
	source, queue, home := sourceOf(h), uint8(h.LSN>>16), uint8(h.LSN>>8)
	s, current := hs.searches[p], source == p.source
	switch {
	case home == 0 || queue == 0 || source >= fabric.SourcePorts || p.sought || hs.ep.multi.dg != nil:
	case queue == home:
		p.source = source
		delete(hs.searches, p)
	case s == nil && current: // the search begins, or the NIC chooses otherwise than it did
		if hs.searches == nil {
			hs.searches = map[*Peer]*sourceSearch{}
		}
		hs.searches[p] = &sourceSearch{asked: source, queue: queue}
		hs.trySource(p)
	case s != nil && source == s.asked:
		if queue != s.queue {
			s.queue = 0
		}
		hs.trySource(p)
	}
	return !current && size == hs.ep.multi.helloLeast()
}

// trySource sends a Hello from the next source port.
func (hs *handshake) trySource(p *Peer) {
	s := hs.searches[p]
	if s.tried++; s.tried == fabric.SourcePorts || s.queue != 0 && s.tried == sameQueue {
		p.sought = true
		delete(hs.searches, p)
		return
	}
	s.asked = (s.asked + 1) % fabric.SourcePorts
	s.due = hs.ep.now.Add(helloFirst)
	size := hs.ep.multi.helloLeast()
	h := dgram.Header{Type: dgram.TypeHello, SrcEpoch: p.local, DstEpoch: p.remote}
	if putSource(&h, s.asked); hs.beginHello(h, size, size) {
		hs.ep.out.finish(p.path, s.asked)
	}
	hs.ep.Wake(&p.Assoc, s.due)
}

// sourceDue tries the next source port when there was no answer to the last.
func (hs *handshake) sourceDue(p *Peer) {
	if s := hs.searches[p]; s != nil && hs.ep.now >= s.due {
		hs.trySource(p)
	}
}

// ownSource goes back to the endpoint's own port for good: what was chosen may be why nothing
// comes back.
func (hs *handshake) ownSource(p *Peer) {
	if p.source != 0 || hs.searches[p] != nil {
		p.source, p.sought = 0, true
		delete(hs.searches, p)
	}
}
