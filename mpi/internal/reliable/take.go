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
func (q *QueuePair) Poll(now mono.Time, dst []verbs.WC) (n int, worked bool) {
	q.assocs.Date(now)
	if q.stuck {
		q.retry()
	}
	got := 0
	if q.done.len() == 0 { // so that it cannot overflow
		got = q.cq.Poll(q.wcs[:])
		for i := range q.wcs[:got] {
			q.take(now, &q.wcs[i])
		}
	}
	if q.assocs.TimersDue(now) {
		q.timers(now)
		got++
	}
	for _, slot := range q.free {
		q.postRecv(slot)
	}
	q.free = q.free[:0]
	if q.assocs.Waiting() > 0 {
		got += q.transmit(now)
	}
	if q.done.len() > 0 && q.until+uint64(q.qp.Unsent()) <= q.posted {
		n = q.done.read(dst)
	}
	return n, n+got > 0
}

// peerAt returns the peer with an address and a queue pair, or nil.
func (q *QueuePair) peerAt(r verbs.Remote, qpn uint32) *Peer {
	hash := r.Hash()
	for p, at := q.peers.First(hash); p != nil; p, at = q.peers.Next(hash, at) {
		if p.remote == r && p.qpn == qpn {
			return p
		}
	}
	return nil
}

// take handles one completion of the queue pair.
func (q *QueuePair) take(now mono.Time, wc *verbs.WC) {
	switch {
	case wc.Opcode == verbs.OpRecvRDMAWriteRecord:
		r := wc.Record
		p := q.peerAt(wc.SrcAddr, wc.SrcQP)
		switch {
		case p == nil || p.epoch != wc.SrcEpoch:
			q.Foreign++
		case !r.Whole:
			q.Malformed++ // chunks of ours are records of their own
		default:
			q.placed(now, p, serial.U32(r.ID))
		}
		r.Release()
	case wc.Opcode == verbs.OpRecv:
		slot := int32(wc.WRID)
		q.spare--
		p := q.peerAt(wc.SrcAddr, wc.SrcQP)
		switch {
		case wc.Status == verbs.WRFlushErr:
			return // the queue pair is being closed
		case wc.Status != verbs.Success:
			q.Malformed++
			q.free = append(q.free, slot)
		case p == nil || p.epoch != wc.SrcEpoch:
			q.Foreign++
			q.free = append(q.free, slot)
		default:
			q.arrived(now, p, slot, int(wc.ByteLen))
		}
	}
	// Sends are unsignaled: one that completes was flushed, because the queue
	// pair is being closed.
}

// Lost returns a peer that was lost since it was asked last, or nil.
func (q *QueuePair) Lost() (p *Peer) {
	if n := len(q.lost); n > 0 {
		p, q.lost = q.lost[n-1], q.lost[:n-1]
	}
	return p
}

// Stuck reports whether something does not get through to some peer, though that may
// answer when it is asked.
func (q *QueuePair) Stuck() bool {
	for _, c := range q.conns {
		if c != nil && c.Snd.Stuck() {
			return true
		}
	}
	return false
}

// Abandon gives a peer up that the user knows to be gone: what is under way with it
// ends as if it had been silent for too long, and Lost does not name it.
func (q *QueuePair) Abandon(p *Peer) {
	if c := q.connOf(q.eng.Now(), p); !c.Closed() {
		q.fail(c)
		q.lost = q.lost[:len(q.lost)-1]
	}
}

// Message returns the bytes that a completion of a message tells of. They are
// the caller's until Release.
func (q *QueuePair) Message(wc *verbs.WC) []byte { return q.message(wc) }

// Release gives the memory of a message back.
func (q *QueuePair) Release(wc *verbs.WC) {
	if wc.WRID >= partBase {
		q.parts.give(int32(wc.WRID - partBase))
		return
	}
	q.postRecv(int32(wc.WRID))
}

func (q *QueuePair) postRecv(slot int32) {
	wr := &q.recv
	wr.WRID = uint64(slot)
	wr.SGL[0].Addr = q.rx.mr.Addr() + uint64(int(slot)*q.stride)
	if err := q.qp.PostRecv(wr); err != nil {
		panic("reliable: a receive buffer that was there before does not fit: " + err.Error())
	}
	q.spare++
}
