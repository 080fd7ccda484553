package p2p

import (
	"encoding/binary"
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// delegatee is what a ghost has of messages that ranks of its host have delegated to it: see
// delegate.go.
//
// A claim may be here before what its sender has said, which has come another way. So
// messages are numbered by their senders: a claim waits if its number is not heard of yet, and
// is refused if it is, and there is no such message (any more).
type delegatee struct {
	ep      *Endpoint
	areas   []*mappedArea
	sends   []delegatedSend
	running int      // of these, which have a request
	claims  []claim  // that wait
	heard   []uint32 // by rank: the latest number
}

// mappedArea is memory of a rank that this ghost may send from.
type mappedArea struct {
	owner   int32
	key     uint32
	mem     []byte
	sends   int      // under way
	closing *Segment // to be unmapped behind them, or nil
	shared  sharedArea
}

// delegatedSend is a message.
type delegatedSend struct {
	from     *mappedArea
	data     []byte
	owner    int32
	dest     int32
	id       uint32 // the sender's request
	number   uint32
	r        *Request // that sends it, or nil: it is not claimed, and no invitation is for it, or it is done
	recalled bool     // its sender waits for the end

	to     match.Envelope // Source is the sender
	before tally          // what the sender has sent there up to this one
	done   bool           // only to is of interest: see meet.go
	placed bool           // both ranks have been told
}

// claim is what a receiver has said.
type claim struct {
	source, owner int32
	number        uint32
	grant         grant
}

// delegatedMost is how many messages a ghost has at most, and how many claims may wait. More are
// refused, so that receivers ask the senders.
const delegatedMost = 4096

// Map lets this ghost send from memory of a rank, which knows it by a key.
func (d Delegations) Map(owner int32, key uint32, b []byte) {
	if d.ep.delegatee == nil {
		d.ep.delegatee = &delegatee{ep: d.ep, heard: make([]uint32, len(d.ep.peers))}
	}
	de := d.ep.delegatee
	de.areas = append(de.areas, &mappedArea{owner: owner, key: key, mem: b})
}

// Unmap ends that, and unmaps the segment that the memory is in: behind the messages that are
// being sent from it.
func (d Delegations) Unmap(owner int32, key uint32, segment *Segment) {
	de := d.ep.delegatee
	at := -1
	if de != nil {
		at = slices.IndexFunc(de.areas, func(a *mappedArea) bool { return a.owner == owner && a.key == key && a.closing == nil })
	}
	if at < 0 {
		_ = segment.Close() // it was mapped by this process
		return
	}
	a := de.areas[at]
	de.sends = slices.DeleteFunc(de.sends, func(s delegatedSend) bool { return s.from == a && s.r == nil })
	a.closing = segment
	de.sweep()
}

// Turn takes the ends of what was sent. A ghost calls it between its steps.
func (d Delegations) Turn() {
	if de := d.ep.delegatee; de != nil && de.running > 0 {
		de.reap()
	}
}

// reap takes the ends of what was sent.
func (de *delegatee) reap() {
	ended, all := false, 0
	for i := range de.sends {
		s := &de.sends[i]
		if s.r != nil && s.r.state == done {
			de.release(s)
			if s.recalled && !s.placed {
				de.giveBack(s.owner, s.id)
			}
			ended, s.done, s.from, s.data = true, true, nil, nil
		}
		if s.done {
			all++
		}
	}
	if ended {
		de.sends = slices.DeleteFunc(de.sends, func(s delegatedSend) bool {
			over := s.done && all > doneMost
			if over {
				all--
			}
			return over
		})
		de.sweep()
	}
}

// release ends the use of the request that sends s.
func (de *delegatee) release(s *delegatedSend) {
	_, _ = de.ep.requests.take(s.r) // an end that has failed knows that by itself
	s.r = nil
	s.from.sends--
	de.running--
}

// employ makes a request that sends s to its receiver.
func (de *delegatee) employ(s *delegatedSend) *Request {
	r := de.ep.requests.request(s.dest, s.data)
	r.entry.Envelope = match.Envelope{}
	r.total = uint64(len(s.data))
	s.r = r
	s.from.sends++
	de.running++
	return r
}

// sweep unmaps what nothing is sent from any more.
func (de *delegatee) sweep() {
	de.areas = slices.DeleteFunc(de.areas, func(a *mappedArea) bool {
		over := a.closing != nil && a.sends == 0
		if over {
			_ = a.closing.Close() // it was mapped by this process
		}
		return over
	})
}

// giveBack tells a sender that its memory is not read any more.
func (de *delegatee) giveBack(owner int32, id uint32) {
	de.ep.out.notify(int(owner), kindFIN, finFailed, id)
}

// refuse tells a receiver to ask the sender.
func (de *delegatee) refuse(c *claim) {
	de.ep.out.notify(int(c.source), kindFIN, finFailed, c.grant.request)
}

// find returns the index of a message, or -1.
func (de *delegatee) find(owner int32, number uint32) int {
	return slices.IndexFunc(de.sends, func(s delegatedSend) bool { return s.owner == owner && s.number == number })
}

// arrivedDelegate takes in that a rank delegates a message.
func (de *delegatee) arrivedDelegate(h *header, b []byte) {
	if de == nil {
		return // this process has told no rank a key
	}
	key, number := binary.BigEndian.Uint32(b[headerLen:]), binary.BigEndian.Uint32(b[headerLen+4:])
	off, size := binary.BigEndian.Uint64(b[headerLen+8:]), binary.BigEndian.Uint64(b[headerLen+16:])
	dest := binary.BigEndian.Uint32(b[headerLen+24:])
	at := slices.IndexFunc(de.areas, func(a *mappedArea) bool { return a.owner == h.source && a.key == key && a.closing == nil })
	if de.heard[h.source] = number; at < 0 || dest >= uint32(len(de.ep.peers)) || int32(dest) == de.ep.rank {
		de.ep.Stats.Malformed++
	} else if a := de.areas[at]; off > uint64(len(a.mem)) || size > uint64(len(a.mem))-off {
		de.ep.Stats.Malformed++
	} else if len(de.sends) < delegatedMost {
		to := match.Envelope{Context: h.context, Source: h.source, Tag: int32(binary.BigEndian.Uint32(b[headerLen+28:]))}
		before := tally{binary.BigEndian.Uint32(b[headerLen+32:]), binary.BigEndian.Uint32(b[headerLen+36:])}
		de.sends = append(de.sends, delegatedSend{from: a, data: a.mem[off:][:size:size], owner: h.source, dest: int32(dest), id: h.id, number: number, to: to, before: before})
		de.delegated(len(de.sends) - 1)
	}
	for i := 0; i < len(de.claims); i++ {
		if c := de.claims[i]; c.owner == h.source && !de.early(&c) {
			de.claims = slices.Delete(de.claims, i, i+1)
			de.answer(&c)
			i--
		}
	}
}

// arrivedClaim takes in that a receiver waits for a message.
func (de *delegatee) arrivedClaim(h *header, b []byte) {
	c := claim{source: h.source, number: binary.BigEndian.Uint32(b[ctsLen+4:])}
	c.grant.get(b)
	c.grant.stream = h.tag == ctsStream
	owner := binary.BigEndian.Uint32(b[ctsLen:])
	if de == nil || owner >= uint32(len(de.ep.peers)) || !c.grant.stream && c.grant.size > 0 && c.grant.rkey == 0 {
		return // no rank has named this process, or there is nothing to write to
	}
	de.ep.inviter.met(c.source, c.grant.request)
	if c.owner = int32(owner); de.early(&c) && len(de.claims) < delegatedMost {
		de.claims = append(de.claims, c)
		return
	}
	de.answer(&c)
}

// early reports whether what a claim is about is still to come.
func (de *delegatee) early(c *claim) bool {
	return int32(c.number-de.heard[c.owner]) > 0 && de.ep.peers[c.owner].err == nil
}

// answer begins to send what was claimed, or refuses.
func (de *delegatee) answer(c *claim) {
	at := de.find(c.owner, c.number)
	p := &de.ep.peers[c.source]
	if at < 0 || de.sends[at].dest != c.source || p.err != nil || p.channel != nil {
		de.refuse(c)
		return
	}
	switch s := &de.sends[at]; {
	case s.placed, de.ep.inviter.cleared(c.source, s.r, c.grant): // it knows, or will
	case s.r != nil, s.done:
		de.refuse(c)
	default:
		de.ep.rendezvous.begin(de.employ(s), c.grant)
	}
}

// arrivedRecall takes in that a sender wants its memory back, now or behind what is under way,
// or, if drop, that it needs the message no more.
func (de *delegatee) arrivedRecall(owner int32, id uint32, drop bool) {
	for i := len(de.sends) - 1; i >= 0; i-- { // an id may be that of an older one, too
		s := &de.sends[i]
		if s.owner != owner || s.id != id || s.done {
			continue
		}
		if s.r != nil {
			s.recalled = s.recalled || !drop
			return
		}
		de.sends = slices.Delete(de.sends, i, i+1)
		break
	}
	if !drop {
		de.giveBack(owner, id)
	}
}

// lost forgets what concerns a rank that is lost. Its memory stays mapped: others may be writing there, and
// a Write that finds none would end their association with this ghost.
func (de *delegatee) lost(rank int32) {
	de.sends = slices.DeleteFunc(de.sends, func(s delegatedSend) bool { return s.r == nil && (s.owner == rank || s.done && s.dest == rank) })
	kept := de.claims[:0]
	for i := range de.claims {
		switch c := &de.claims[i]; {
		case c.source == rank:
		case c.owner == rank:
			de.refuse(c)
		default:
			kept = append(kept, *c)
		}
	}
	de.claims = kept
}
