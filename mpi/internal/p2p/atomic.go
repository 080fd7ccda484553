package p2p

import "github.com/xwarp/xwarp/verbs"

// Atomics of verbs on 8 bytes of another rank's memory. What was there comes to the handler of
// the communicator as if the rank had answered with an active message.

// AtomicOp is what is done with the 8 bytes.
type AtomicOp = verbs.Opcode

// The operations.
const (
	AtomicAdd     = verbs.OpAtomicFetchAndAdd
	AtomicSwap    = verbs.OpAtomicSwap
	AtomicCompare = verbs.OpAtomicCmpAndSwp
)

// Atomic is one of them, and the answer to it: Context, What and ID are as in Active, and the
// body is the old value.
type Atomic struct {
	Op       AtomicOp
	Operands verbs.Atomic
	Key      uint32
	Addr     uint64 // a multiple of 8, as that of the memory itself
	Context  uint32
	What     int32
	ID       uint32
}

// Atomics asks for them. It is made of an Inside.
type Atomics struct{ ep *Endpoint }

// Try asks for an atomic operation on memory of a rank that CanRead, if there is room for
// it now. It is done behind the messages that went there before, but perhaps before they are
// handled.
func (s Atomics) Try(rank int32, a *Atomic) bool {
	p, ok := s.ep.actives.open(rank)
	if !ok || !s.ep.actives.postAtomic(p, a) {
		return false
	}
	s.ep.out.push(burstMax)
	return true
}

func (x *actives) postAtomic(p *peer, a *Atomic) bool {
	net := &x.ep.net
	slot, ok := net.take()
	if !ok {
		return false
	}
	wr := &x.atomic
	wr.Opcode, wr.Atomic = a.Op, a.Operands
	wr.RemoteAddr, wr.RKey = a.Addr, a.Key
	wr.WRID = wrAtomic | uint64(p.rank)<<wrPeerShift | uint64(slot)
	wr.SGL[0] = verbs.SGE{Addr: net.tx.addr(slot), Length: 8, LKey: net.tx.mr.LKey()}
	if !net.post(p, wr) {
		net.give(slot)
		return false
	}
	if x.answers == nil {
		x.answers = make([]header, x.ep.cfg.Sends)
	}
	x.ep.Stats.Atomics++
	x.answers[slot] = header{kind: kindActive, context: a.Context, source: p.rank, tag: a.What, id: a.ID}
	return true
}

// atomicDone hands the old value to the handler.
func (x *actives) atomicDone(wc *verbs.WC) {
	slot := int32(uint32(wc.WRID))
	if h := &x.answers[slot]; wc.Status == verbs.Success && x.ep.peers[h.source].err == nil {
		x.arrived(h, x.ep.net.tx.get(slot, 8))
	}
	x.ep.net.give(slot)
}
