package p2p

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/shm"
)

// pullPiece is how many bytes are pulled in a step, so that other messages do
// not wait for long: 90 us.
const pullPiece = 1 << 20

// pulls lets receivers copy from the memory of neighbours, and senders that wait for them help (shm.Joint).
type pulls struct {
	ep      *Endpoint
	queue   requestQueue
	offered []offered
}

// offered is how many offers a neighbour has of messages that both ends may copy.
type offered struct {
	to *peer
	n  int
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
		if r.total >= shm.JointLeast {
			pu.count(p, 1)
		}
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
	if r.total >= shm.JointLeast {
		r.ep.pulls.count(&r.ep.peers[r.peer], -1)
	}
}

// offers returns the place of p in offered, -1 if it has none.
func (pu *pulls) offers(p *peer) int {
	for i := range pu.offered {
		if pu.offered[i].to == p {
			return i
		}
	}
	return -1
}

// count counts such offers to p.
func (pu *pulls) count(p *peer, n int) {
	i := pu.offers(p)
	if i < 0 {
		i = len(pu.offered)
		pu.offered = append(pu.offered, offered{to: p})
	}
	if pu.offered[i].n += n; pu.offered[i].n == 0 {
		pu.offered = slices.Delete(pu.offered, i, i+1)
	}
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

// step copies the next part of one message. Of a long one the sender copies a part, if there are cores for both and this rank
// sends it nothing as long, which it would be copying itself.
func (pu *pulls) step() int {
	r := pu.queue.head
	pu.queue.pop()
	p := &pu.ep.peers[r.peer]
	if r.written == 0 && r.grant.joint == 0 && !pu.ep.eng.Crowded() && pu.offers(p) < 0 {
		r.grant.joint = uint8(p.near.Join(r.remote, r.wireID(), mem.AddressOf(r.data.buf), r.grant.size))
	}
	if r.grant.joint != 0 {
		pu.stepJoint(r, p)
		return 1
	}
	n := min(r.grant.size-r.written, pullPiece)
	switch {
	case !pu.pull(r, p, r.written, n):
	case r.written+n < r.grant.size:
		r.written += n
		pu.queue.push(r)
	default:
		pu.done(r)
	}
	return 1
}

// stepJoint is step of a message of which the sender may push the rest meanwhile.
func (pu *pulls) stepJoint(r *Request, p *peer) {
	for n := uint64(0); n < pullPiece; {
		piece := p.near.Front(int(r.grant.joint), r.grant.size)
		if piece.N == 0 {
			r.written = r.grant.size
			pu.settle(r, p)
			return
		}
		if !pu.pull(r, p, piece.Off, piece.N) {
			return
		}
		n += piece.N
		r.written += piece.N
	}
	pu.queue.push(r)
}

// pull copies bytes of a message from an offset on. When that is not possible it lets the data come in a stream.
func (pu *pulls) pull(r *Request, p *peer, off, n uint64) bool {
	word, err := p.near.Pull(r.data.buf[off:][:n], r.offer.addr+off, r.offer.guard)
	if err == nil && word == guardWord(r.remote) {
		return true
	}
	// Memory that no other process can read, or the sender is dead, or it
	// has given the send up and will say why. The stream starts from the
	// beginning, behind what the sender has begun to push.
	if r.grant.joint != 0 {
		p.near.Leave(int(r.grant.joint))
		r.grant.joint = 0
	}
	r.written, r.grant.stream = 0, true
	r.state = sendCTS
	pu.ep.out.advanceOrQueue(r)
	return false
}

// settle ends a message all pieces of which are copied, or are being pushed: then the sender says when they are there.
func (pu *pulls) settle(r *Request, p *peer) {
	switch p.near.Settle(int(r.grant.joint)) {
	case shm.Awaited:
		r.state = waitFIN
	case shm.Failed:
		r.grant.joint, r.written = 0, 0
		r.state = waitTurn
		pu.queue.push(r)
	default:
		r.grant.joint = 0
		pu.done(r)
	}
}

// done lets the sender have its memory back.
func (pu *pulls) done(r *Request) {
	pu.ep.out.notify(int(r.peer), kindFIN, 0, r.remote)
	r.complete()
}

// retract takes the memory of r, which fails, back from a sender that may write to it, and waits for what that has begun, which
// is one system call.
func (pu *pulls) retract(r *Request) {
	for !pu.ep.peers[r.peer].near.Leave(int(r.grant.joint)) {
		runtime.Gosched()
	}
	r.grant.joint = 0
}

// push copies the next piece of a message that a neighbour has begun to receive in that way, if there is one.
func (pu *pulls) push() int {
	ep := pu.ep
	for i := range pu.offered {
		p := pu.offered[i].to
		s, ok := p.near.Joint()
		if !ok {
			continue
		}
		r := ep.requests.lookup(s.Request)
		if r == nil || r.state != waitCTS || !r.offered || r.peer != p.rank || s.Size > r.total {
			continue
		}
		n, tell := p.near.Push(&s, r.data.buf)
		if tell {
			ep.out.notify(int(p.rank), kindFIN, 0, s.Receive)
		}
		if n > 0 {
			ep.Stats.Pushed++
			return 1
		}
	}
	return 0
}
