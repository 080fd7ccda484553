package shm

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Recv fills b with datagrams, from one peer after the other, beginning with
// another one each time.
func (e *Endpoint) Recv(b *fabric.Batch) int {
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
			appendPacket(b, at, n, in.from)
			e.stats.RxPackets++
			e.stats.RxBytes += uint64(n)
		}
	}
	return len(b.Pkts)
}

// appendPacket appends a datagram in one buffer to b, which has room for it.
// It sets fields one by one: what was written in parts a moment ago and is
// then copied as a whole stalls the processor.
func appendPacket(b *fabric.Batch, at mem.Addr, size uint32, from fabric.Remote) {
	n, first := len(b.Pkts), len(b.Descs)
	b.Pkts, b.Descs = b.Pkts[:n+1], b.Descs[:first+1]
	p, d := &b.Pkts[n], &b.Descs[first]
	d.Addr, d.Len, d.Flags = at, size, 0
	p.First, p.Bufs, p.Len = int32(first), 1, int32(size)
	p.To, p.From, p.Station, p.Queue, p.Sealed = 0, from, 0, 0, false
}

// meet learns who came and who left.
func (e *Endpoint) meet() {
	e.seen = e.changed.Load()
	e.in, e.leaving = e.senderList(e.in)
	for _, in := range e.in {
		e.slots[in.slot] = in
	}
}

// Release gives back all buffers of b and empties it.
func (e *Endpoint) Release(b *fabric.Batch) {
	var last *inbound
	for i := range b.Descs {
		off := b.Descs[i].Addr - e.base
		in := e.slots[off>>e.shift]
		if in != last && last != nil {
			last.publish()
		}
		last = in
		in.giveBack(uint64(off) - headerLen)
	}
	if last != nil {
		last.publish()
	}
	b.Reset()
}

// FD returns an eventfd for poll(2), and makes it readable when there are
// datagrams, or peers ring it when there will be. So call it before each wait:
// nobody rings it once Recv was called again. It is always the same.
func (e *Endpoint) FD() int {
	quietBell(e.bell)
	e.armed = true
	if e.changed.Load() != e.seen {
		e.meet()
	}
	for _, in := range e.in {
		in.asleep.Store(wantBell)
	}
	for _, in := range e.in { // only now: what came before was not rung for
		if in.waiting() {
			ringBell(e.bell)
			break
		}
	}
	return e.bell
}

// disarm tells peers that the engine looks by itself.
func (e *Endpoint) disarm() {
	e.armed = false
	for _, in := range e.in {
		in.asleep.Store(awake)
	}
}
