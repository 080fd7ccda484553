package reliable

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/verbs"
)

// Poll takes in what has arrived, fires timers, sends what may be sent, and
// moves completions to dst: those of requests, and those of messages, whose
// Opcode is OpRecv. It returns how many. worked is false when there was nothing
// at all to do.
//
// What was sent again in vain may wait in the queue pair for a full carrier when the
// original is acknowledged. Completions wait for that, and everything that arrives
// behind them: their memory may be gone once the user has seen them.
//
// A message is read with Message and given back with Release.
func (e *Endpoint) Poll(now mono.Time, dst []verbs.WC) (n int, worked bool) {
	e.assocs.Date(now)
	if e.stuck {
		e.retry()
	}
	got := 0
	if e.done.len() == 0 { // so that it cannot overflow
		got = e.cq.Poll(e.wcs[:])
		for i := range e.wcs[:got] {
			e.take(now, &e.wcs[i])
		}
	}
	if e.assocs.TimersDue(now) {
		e.timers(now)
		got++
	}
	for _, slot := range e.free {
		e.postRecv(slot)
	}
	e.free = e.free[:0]
	if e.assocs.Waiting() > 0 {
		got += e.transmit(now)
	}
	if e.done.len() > 0 && e.until+uint64(e.qp.Unsent()) <= e.posted {
		n = e.done.read(dst)
	}
	return n, n+got > 0
}

// peerAt returns the peer with an address and a queue pair, or nil.
func (e *Endpoint) peerAt(r verbs.Remote, qpn uint32) *Peer {
	hash := r.Hash()
	for p, at := e.peers.First(hash); p != nil; p, at = e.peers.Next(hash, at) {
		if p.remote == r && p.qpn == qpn {
			return p
		}
	}
	return nil
}

// take handles one completion of the queue pair.
func (e *Endpoint) take(now mono.Time, wc *verbs.WC) {
	switch {
	case wc.Opcode == verbs.OpRecvRDMAWriteRecord:
		r := wc.Record
		p := e.peerAt(wc.SrcAddr, wc.SrcQP)
		switch {
		case p == nil || p.epoch != wc.SrcEpoch:
			e.Foreign++
		case !r.Whole:
			e.Malformed++ // chunks of ours are records of their own
		default:
			e.placed(now, p, serial.U32(r.ID))
		}
		r.Release()
	case wc.Opcode == verbs.OpRecv:
		slot := int32(wc.WRID)
		e.spare--
		p := e.peerAt(wc.SrcAddr, wc.SrcQP)
		switch {
		case wc.Status == verbs.WRFlushErr:
			return // the queue pair is being closed
		case wc.Status != verbs.Success:
			e.Malformed++
			e.free = append(e.free, slot)
		case p == nil || p.epoch != wc.SrcEpoch:
			e.Foreign++
			e.free = append(e.free, slot)
		default:
			e.arrived(now, p, slot, int(wc.ByteLen))
		}
	}
	// Sends are unsignaled: one that completes was flushed, because the queue
	// pair is being closed.
}

// Lost returns a peer that was lost since it was asked last, or nil.
func (e *Endpoint) Lost() (p *Peer) {
	if n := len(e.lost); n > 0 {
		p, e.lost = e.lost[n-1], e.lost[:n-1]
	}
	return p
}

// Stuck reports whether something does not get through to some peer, though that may
// answer when it is asked.
func (e *Endpoint) Stuck() bool {
	for _, c := range e.conns {
		if c != nil && c.Snd.Stuck() {
			return true
		}
	}
	return false
}

// Abandon gives a peer up that the user knows to be gone: what is under way with it
// ends as if it had been silent for too long, and Lost does not name it.
func (e *Endpoint) Abandon(p *Peer) {
	if c := e.connOf(e.eng.Now(), p); !c.Closed() {
		e.fail(c)
		e.lost = e.lost[:len(e.lost)-1]
	}
}

// Message returns the bytes that a completion of a message tells of. They are
// the caller's until Release.
func (e *Endpoint) Message(wc *verbs.WC) []byte { return e.message(wc) }

// Release gives the memory of a message back.
func (e *Endpoint) Release(wc *verbs.WC) {
	if wc.WRID >= partBase {
		e.parts.give(int32(wc.WRID - partBase))
		return
	}
	e.postRecv(int32(wc.WRID))
}

func (e *Endpoint) postRecv(slot int32) {
	wr := &e.recv
	wr.WRID = uint64(slot)
	wr.SGL[0].Addr = e.rx.mr.Addr() + uint64(int(slot)*e.stride)
	if err := e.qp.PostRecv(wr); err != nil {
		panic("reliable: a receive buffer that was there before does not fit: " + err.Error())
	}
	e.spare++
}
