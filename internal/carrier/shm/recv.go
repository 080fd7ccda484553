package shm

import (
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Recv fills b with datagrams, from one peer after the other, beginning with
// another one each time.
func (e *Datagram) Recv(b *fabric.Batch) int {
	b.Reset()
	if e.armed {
		e.disarm()
	}
	if e.leaving || e.changed.Load() != e.seen {
		e.meet()
	}
	room := min(cap(b.Pkts), cap(b.Descs))
	for n := len(e.in); n > 0 && len(b.Pkts) < room; n-- {
		if e.turn++; e.turn >= len(e.in) {
			e.turn = 0
		}
		in := e.in[e.turn]
		for len(b.Pkts) < room {
			at, n, ok := in.take()
			if !ok {
				break
			}
			b.AddReceived(at, n, in.from)
			e.stats.RxPackets++
			e.stats.RxBytes += uint64(n)
		}
	}
	return len(b.Pkts)
}

// meet takes in which peers came and left.
func (e *Datagram) meet() {
	e.seen = e.changed.Load()
	e.in, e.leaving = e.senderList(e.in)
	for _, in := range e.in {
		e.slots[in.slot] = in
	}
}

// Release gives back all buffers of b and empties it.
func (e *Datagram) Release(b *fabric.Batch) {
	var last *inbound
	for i := range b.Descs {
		off := b.Descs[i].Addr - e.base
		in := e.slots[off>>e.shift]
		if in != last && last != nil {
			last.publish()
		}
		last = in
		in.release(uint64(off) - headerLen)
	}
	if last != nil {
		last.publish()
	}
	b.Reset()
}

// FD returns an eventfd for poll(2), and makes it readable when there are
// datagrams, or peers ring it when there will be. So call it before each wait:
// no peer rings it once Recv was called again. It is always the same.
func (e *Datagram) FD() int {
	e.bell.Quiet()
	e.armed = true
	if e.changed.Load() != e.seen {
		e.meet()
	}
	for _, in := range e.in {
		in.asleep.Store(wantBell)
	}
	for _, in := range e.in { // only now: what came before was not rung for
		if in.waiting() {
			e.bell.Ring()
			break
		}
	}
	return int(e.bell)
}

// disarm tells peers that the engine looks by itself.
func (e *Datagram) disarm() {
	e.armed = false
	for _, in := range e.in {
		in.asleep.Store(awake)
	}
}
