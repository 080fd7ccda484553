package p2p

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// pullPiece is how many bytes are pulled in a step, so that other messages do
// not wait for long: 90 us.
const pullPiece = 1 << 20

// pulls lets receivers copy from the memory of neighbours.
type pulls struct {
	ep    *Endpoint
	queue requestQueue
}

// offer says where a long message lies.
type offer struct {
	near  bool   // it is a neighbour's: if it cannot be pulled, it must be streamed
	rkey  uint32 // of another host's: the key to read it with; 0 if there is none
	addr  uint64 // in the sender's memory; of a neighbour's 0 if no other process can read that
	guard uint64 // address of the word that says that the sender still means it

	ghost  int32  // that sends it, if not 0; to the sender rkey and addr are where the ghost has it
	number uint32 // of what the sender has delegated to it
}

// offerLen is how much longer an RTS is that goes through a channel.
const offerLen = 16

// putOffer appends where the data of r lies to an RTS in sender.head, and returns
// how long that is now. The guard is what the sender takes back when it gives up
// the send, before the user has the memory back: a receiver that reads it behind
// the data knows that it has not got something else.
func (pu *pulls) putOffer(r *Request, p *peer) int {
	var o offer
	if !r.data.typed && r.total > 0 && p.channel.Pulls() {
		if r.guard == nil {
			r.guard = make([]uint64, 1) // once for each request of the pool
		}
		r.offered = true
		atomic.StoreUint64(&r.guard[0], guardWord(r.wireID()))
		o.addr, o.guard = mem.AddressOf(r.data.buf), mem.AddressOf(mem.BytesOf(r.guard))
	}
	binary.BigEndian.PutUint64(pu.ep.out.head[rtsLen:], o.addr)
	binary.BigEndian.PutUint64(pu.ep.out.head[rtsLen+8:], o.guard)
	return rtsLen + offerLen
}

// guardWord is what a guard holds while the send with this id is meant.
func guardWord(id uint32) uint64 { return 1<<32 | uint64(id) }

// withdraw takes the offer back.
func (r *Request) withdraw() {
	r.offered = false
	atomic.StoreUint64(&r.guard[0], 0)
}

// parseOffer reads what putOffer, lend or name wrote.
func (ep *Endpoint) parseOffer(h *header, b []byte) offer {
	o := offer{near: h.near}
	switch {
	case o.near && len(b) >= rtsLen+offerLen:
		o.addr = binary.BigEndian.Uint64(b[rtsLen:])
		o.guard = binary.BigEndian.Uint64(b[rtsLen+8:])
	case !o.near && len(b) >= rtsLen+lendLen:
		o.rkey = binary.BigEndian.Uint32(b[rtsLen:])
		o.addr = binary.BigEndian.Uint64(b[rtsLen+4:])
	case !o.near && len(b) == rtsLen+nameLen:
		if ghost := int(int32(binary.BigEndian.Uint32(b[rtsLen:]))); ghost >= ep.cfg.ranks() && ghost < len(ep.peers) {
			o.ghost, o.number = int32(ghost), binary.BigEndian.Uint32(b[rtsLen+4:])
		}
	}
	return o
}

// start lets the steps that follow pull the data of r.
func (pu *pulls) start(r *Request) {
	r.state = waitTurn
	pu.queue.push(r)
}

// step copies the next piece of one message.
func (pu *pulls) step() int {
	ep := pu.ep
	r := pu.queue.head
	pu.queue.pop()
	n := min(r.grant.size-r.written, pullPiece)
	dst := r.data.buf[r.written:][:n]
	word, err := ep.peers[r.peer].near.Pull(dst, r.offer.addr+r.written, r.offer.guard)
	switch {
	case err != nil, word != guardWord(r.remote):
		// Memory that no other process can read, or the sender is dead, or it
		// has given the send up and will say why. The stream starts from the
		// beginning.
		r.written, r.grant.stream = 0, true
		r.state = sendCTS
		ep.out.advanceOrQueue(r)
	case r.written+n < r.grant.size:
		r.written += n
		pu.queue.push(r)
	default:
		ep.out.notify(int(r.peer), kindFIN, 0, r.remote)
		r.complete()
	}
	return 1
}
