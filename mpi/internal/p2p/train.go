package p2p

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// A train is one Send with several short messages in it, one behind the other. A
// Send costs both ends more than copying a short message does: the sender numbers
// it and keeps it until it is acknowledged, the receiver takes a buffer for it,
// completes it and posts the buffer again. So nonblocking sends that wait for one
// another anyway (see push) ride together. The first message after a step goes by
// itself and at once, and so does every one that follows a message to another
// peer: a program that sends one to each of its neighbours has nothing to gain. Where
// many have followed the first one every time, it waits for them (habit.go).
//
//	+---------------+-------+---------------+--------
//	| length        |context| tag           | data ...      and so on
//	+---------------+-------+---------------+--------
//
// Messages to one peer stay in order: whatever else goes to it, the train that is
// open leaves first.
type train struct {
	to     *peer // nil: none is open
	rank   int32
	slot   int32 // of the send buffer
	n      int   // bytes
	riders int   // messages
	wr     verbs.SendWR
}

const (
	coachLen = 8   // bytes in front of each message
	coachMax = 512 // longest message in bytes that rides
)

// board makes room for a short message of n bytes on the train to p, behind what
// was posted to p last, and returns where the message goes, which the caller copies.
// nil means that there is no train, or no room; then nothing happened.
func (ep *Endpoint) board(env match.Envelope, p *peer, rank int32, n int) []byte {
	t := &ep.train
	room := min(ep.maxSeg, headerLen+int(p.eagerMax)) // of one datagram, and of the peer's buffers
	if full := t.n+coachLen+n > room; t.to != nil && (t.to != p || full) && !ep.depart() {
		return nil
	}
	if t.to == nil && (ep.latest != p || headerLen+coachLen+n > room || !ep.couple(p, rank)) {
		return nil
	}
	b := ep.tx.get(t.slot, t.n+coachLen+n)[t.n:]
	putCoach(b, env, n)
	t.n += coachLen + n
	t.riders++
	ep.posts++
	return b[coachLen:]
}

// putCoach writes what is in front of a message of n bytes.
func putCoach(b []byte, env match.Envelope, n int) {
	binary.BigEndian.PutUint64(b, uint64(n)<<48|uint64(uint16(env.Context))<<32|uint64(uint32(env.Tag)))
}

// couple opens a train. false means no room.
func (ep *Endpoint) couple(p *peer, rank int32) bool {
	free := len(ep.txFree)
	if free == 0 {
		return false
	}
	t := &ep.train
	t.to, t.rank, t.slot, t.n, t.riders = p, rank, ep.txFree[free-1], headerLen, 0
	ep.posts = max(ep.posts, 1) // as if one had gone before: this one waits
	ep.txFree = ep.txFree[:free-1]
	h := header{kind: kindTrain, source: ep.rank}
	h.put(ep.tx.get(t.slot, headerLen))
	return true
}

// depart posts the train that is open. false means no room: it stays open.
func (ep *Endpoint) depart() bool {
	t := &ep.train
	p := t.to
	if p.err != nil { // nobody takes it any more
		t.to = nil
		ep.txFree = append(ep.txFree, t.slot)
		return true
	}
	t.wr = verbs.SendWR{
		Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1,
		WRID: wrBuffer | uint64(t.rank)<<wrPeerShift | uint64(t.slot),
	}
	t.wr.SGL[0] = verbs.SGE{Addr: ep.tx.addr(t.slot), Length: uint32(t.n), LKey: ep.tx.mr.LKey()}
	t.to = nil
	if !ep.post(p, &t.wr) {
		t.to = p
		return false
	}
	p.buffered++
	p.habit.departed(t.riders)
	return true
}

// step makes one step of the engine, which lets everything go out.
func (ep *Endpoint) step() int {
	if ep.train.to != nil {
		ep.depart()
	}
	return ep.eng.Step()
}

// arrivedTrain takes in the messages of a train.
func (ep *Endpoint) arrivedTrain(h *header, b []byte) {
	for len(b) > 0 {
		if len(b) < coachLen {
			ep.Stats.Malformed++
			return
		}
		front := binary.BigEndian.Uint64(b)
		env := match.Envelope{Context: uint32(front >> 32 & 0xffff), Source: h.source, Tag: int32(front)}
		n := coachLen + int(front>>48)
		if n > len(b) || env.Tag < 0 {
			ep.Stats.Malformed++
			return
		}
		if ep.impaired && ep.unwanted(env) {
			ep.Stats.Stale++
		} else {
			ep.arrivedEager(env, b[coachLen:n])
		}
		b = b[n:]
	}
}
