package p2p

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Coalescing: a batch is one Send that carries several short messages, each behind a
// sub-header. A Send costs both ends more than copying a short message does: the
// sender numbers it and keeps it until it is acknowledged, the receiver takes a buffer
// for it, completes it and posts the buffer again. So nonblocking sends that wait for
// one another anyway (see push) share a batch. The first message after a step is sent
// alone and at once, and so is every one that follows a message to another peer: a
// program that sends one to each of its neighbours has nothing to gain. Where the burst
// detector expects more to follow (burst.go), the first one waits for them.
//
//	+---------------+-------+---------------+--------
//	| length        |context| tag           | data ...      and so on
//	+---------------+-------+---------------+--------
//
// Messages to one peer stay in order: whatever else is sent to it, the open batch is
// flushed first.
type batch struct {
	to       *peer // nil: none is open
	rank     int32
	slot     int32 // of the send buffer
	n        int   // bytes
	messages int
	wr       verbs.SendWR
}

const (
	subHeaderLen = 8   // bytes in front of each message
	batchedMax   = 512 // longest message in bytes that goes into a batch
)

// appendBatch makes room for a short message of n bytes in the batch to p, behind what
// was posted to p last, and returns where the caller is to copy the message.
// nil means that there is no batch, or no room; then nothing happened.
func (nw *network) appendBatch(env match.Envelope, p *peer, rank int32, n int) []byte {
	t := &nw.batch
	room := min(nw.maxSeg, headerLen+int(p.eagerMax)) // of one datagram, and of the peer's buffers
	if full := t.n+subHeaderLen+n > room; t.to != nil && (t.to != p || full) && !nw.flushBatch() {
		return nil
	}
	if t.to == nil && (nw.latest != p || headerLen+subHeaderLen+n > room || !nw.openBatch(p, rank)) {
		return nil
	}
	b := nw.tx.get(t.slot, t.n+subHeaderLen+n)[t.n:]
	putSubHeader(b, env, n)
	t.n += subHeaderLen + n
	t.messages++
	nw.posts++
	return b[subHeaderLen:]
}

// putSubHeader writes what is in front of a message of n bytes.
func putSubHeader(b []byte, env match.Envelope, n int) {
	binary.BigEndian.PutUint64(b, uint64(n)<<48|uint64(uint16(env.Context))<<32|uint64(uint32(env.Tag)))
}

// openBatch opens a batch. false means no room.
func (nw *network) openBatch(p *peer, rank int32) bool {
	free := len(nw.txFree)
	if free == 0 {
		return false
	}
	t := &nw.batch
	t.to, t.rank, t.slot, t.n, t.messages = p, rank, nw.txFree[free-1], headerLen, 0
	nw.posts = max(nw.posts, 1) // as if one had gone before: this one waits
	nw.txFree = nw.txFree[:free-1]
	h := header{kind: kindBatch, source: nw.ep.rank}
	h.put(nw.tx.get(t.slot, headerLen))
	return true
}

// flushBatch posts the open batch. false means no room: it stays open.
func (nw *network) flushBatch() bool {
	t := &nw.batch
	p := t.to
	if p.err != nil { // nobody takes it any more
		t.to = nil
		nw.txFree = append(nw.txFree, t.slot)
		return true
	}
	t.wr = verbs.SendWR{
		Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1,
		WRID: wrBuffer | uint64(t.rank)<<wrPeerShift | uint64(t.slot),
	}
	t.wr.SGL[0] = verbs.SGE{Addr: nw.tx.addr(t.slot), Length: uint32(t.n), LKey: nw.tx.mr.LKey()}
	t.to = nil
	if !nw.post(p, &t.wr) {
		t.to = p
		return false
	}
	p.buffered++
	p.bursts.flushed(t.messages)
	return true
}

// step makes one step of the engine, which lets everything go out.
func (d *driver) step() int {
	ep := d.ep
	if ep.net.batch.to != nil {
		ep.net.flushBatch()
	}
	return ep.eng.Step()
}

// arrivedBatch takes in the messages of a batch.
func (pl *poller) arrivedBatch(h *header, b []byte) {
	ep := pl.ep
	for len(b) > 0 {
		if len(b) < subHeaderLen {
			ep.Stats.Malformed++
			return
		}
		front := binary.BigEndian.Uint64(b)
		env := match.Envelope{Context: uint32(front >> 32 & 0xffff), Source: h.source, Tag: int32(front)}
		n := subHeaderLen + int(front>>48)
		if n > len(b) || env.Tag < 0 {
			ep.Stats.Malformed++
			return
		}
		if ep.failures.impaired && ep.failures.unwanted(env) {
			ep.Stats.Stale++
		} else {
			ep.match.arrivedEager(env, b[subHeaderLen:n])
		}
		b = b[n:]
	}
}
