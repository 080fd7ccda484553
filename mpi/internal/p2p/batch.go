package p2p

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Coalescing: a batch is one Send, or one record of a channel, that carries several short
// messages, each behind a sub-header. A Send costs both ends more than copying a short
// message does: the sender numbers it and keeps it until it is acknowledged, the receiver
// takes a buffer for it, completes it and posts the buffer again. To publish a record in a
// channel takes longer than a copy, too: the sender waits until all that it wrote before is
// in its cache, and the line that it writes into next is in the receiver's. So nonblocking
// sends that wait for one another anyway (see push) share a batch. The first message is
// sent alone and at once, and so is every one that follows a message to another peer: a
// program that sends one to each of its neighbours has nothing to gain. Where the burst
// detector expects more to follow (burst.go), the first one waits for them, in the network.
//
//	+---------------+-------+---------------+--------
//	| length        |context| tag           | data ...      and so on
//	+---------------+-------+---------------+--------
//
// Messages to one peer stay in order: whatever else is sent to it, the open batch is
// flushed first.
type batch struct {
	to       *peer  // nil: none is open
	b        []byte // memory of the transport
	n        int    // bytes of it that are written
	messages int
}

const (
	subHeaderLen      = 8        // bytes in front of each message
	batchedMax        = 512      // longest message in bytes that goes into a batch through the network
	channelBatchRoom  = 5*64 - 8 // bytes of a batch in a channel: five cache lines with the channel's header
	channelBatchedMax = 64       // longest message in one of those: 14 % more of them a second; 128 bytes would lose 15 %
)

// open begins a batch in b, from the source of h.
func (t *batch) open(to *peer, h front, b []byte) {
	h = front{first: uint64(kindBatch)<<56 | uint64(uint32(h.first))}
	h.put(b)
	t.to, t.b, t.n, t.messages = to, b, headerLen, 0
}

// fits reports whether there is room for a message of n bytes.
func (t *batch) fits(n int) bool { return t.n+subHeaderLen+n <= len(t.b) }

// add appends a message that fits.
func (t *batch) add(h front, v view, n int) {
	b := t.b[t.n : t.n+subHeaderLen+n]
	binary.BigEndian.PutUint64(b, uint64(n)<<48|h.first&(0xffff<<32)|h.second>>32)
	v.copyTo(b[subHeaderLen:])
	t.n += len(b)
	t.messages++
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
		ep.peers[h.source].got[env.Context&1].plain++
		if ep.failures.impaired && ep.failures.unwanted(env) {
			ep.Stats.Stale++
		} else {
			ep.match.arrivedEager(env, b[subHeaderLen:n])
		}
		b = b[n:]
	}
}
