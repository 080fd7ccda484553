package kudp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// rxBatch is the most datagrams that one system call fetches.
const rxBatch = 64

// receiver is the receiving half of a socket: slots in the arena, each for one
// datagram (with GRO: for one aggregate of them).
//
// msgs[free:] name the free slots, ready for recvmmsg. A slot that
// was received into leaves at the front, one that is released comes back there.
type receiver struct {
	base  mem.Addr // of slot 0
	shift uint     // a slot has 1<<shift bytes
	gro   bool
	bytes []byte // of the arena

	msgs   []message
	iovs   []unix.Iovec
	names  []rawAddr
	ctrls  []control
	free   int
	lent   []int32 // by slot: how many datagrams of it are with the caller or waiting
	slotOf []int32 // by message: its slot

	// What recvmmsg returned and Recv has not handed out yet.
	aggregates [rxBatch]aggregate
	next, end  int

	malformed uint64 // datagrams that were too large
}

// aggregate is what one message of recvmmsg holds: datagrams of size bytes, the last
// of which may be shorter.
type aggregate struct {
	at, end mem.Addr
	size    mem.Addr
	from    fabric.Remote
}

func (r *receiver) init(a *mem.Arena, slots, payload int, gro bool) error {
	if gro {
		payload = maxDatagram
	}
	r.shift = uint(bits.Len(uint(max(payload, mem.FrameSize/2) - 1)))
	slots = cmp.Or(slots, min(128, 4<<20>>r.shift))
	base, err := a.Alloc(slots<<r.shift, mem.FrameSize)
	if err != nil {
		return fmt.Errorf("kudp: %d receive buffers of %d bytes: %w", slots, 1<<r.shift, err)
	}
	r.base, r.gro, r.bytes = base, gro, a.Bytes()
	r.msgs = make([]message, slots)
	r.iovs = make([]unix.Iovec, slots)
	r.names = make([]rawAddr, slots)
	r.ctrls = make([]control, slots)
	r.lent = make([]int32, slots)
	r.slotOf = make([]int32, slots)
	for i := range r.msgs {
		m := &r.msgs[i]
		r.iovs[i].SetLen(1 << r.shift)
		m.Iov = &r.iovs[i]
		m.SetIovlen(1)
	}
	r.free = slots
	for slot := slots - 1; slot >= 0; slot-- {
		r.push(int32(slot))
	}
	return nil
}

func (r *receiver) release(a *mem.Arena) {
	if r.msgs != nil {
		a.Free(r.base)
		r.msgs = nil
	}
}

// push makes a slot ready to receive into.
func (r *receiver) push(slot int32) {
	r.free--
	i := r.free
	r.slotOf[i] = slot
	r.iovs[i].Base = &r.bytes[r.base+mem.Addr(slot)<<r.shift]
	m := &r.msgs[i]
	m.setName(&r.names[i])
	if r.gro {
		m.setControl(&r.ctrls[i])
	}
}

// Recv fills b with datagrams. What the kernel has returned and does not fit b
// is handed out by the next call, so call again before parking when the result
// was not 0.
func (s *Socket) Recv(b *fabric.Batch) int {
	b.Reset()
	room := min(cap(b.Pkts), cap(b.Descs))
	if s.rx.next == s.rx.end {
		s.fetch(room)
	}
	r := &s.rx
	for r.next < r.end && len(b.Pkts) < room {
		aggregate := &r.aggregates[r.next]
		size := min(aggregate.size, aggregate.end-aggregate.at)
		b.AddReceived(aggregate.at, uint32(size), aggregate.from)
		s.stats.RxPackets++
		s.stats.RxBytes += uint64(size)
		aggregate.at += size
		if aggregate.at == aggregate.end {
			r.next++
		}
	}
	return len(b.Pkts)
}

// fetch receives up to n messages into free slots.
func (s *Socket) fetch(n int) {
	r := &s.rx
	r.next, r.end = 0, 0
	n = min(n, rxBatch, len(r.msgs)-r.free)
	if n == 0 {
		return
	}
	got, self := s.poll(r.msgs[r.free : r.free+n])
	unused, slots := 0, [rxBatch]int32{}
	for range got {
		if !r.take(r.free, self) {
			slots[unused] = r.slotOf[r.free]
			unused++
		}
		r.free++
	}
	for _, slot := range slots[:unused] { // only now: push writes over what take reads
		r.push(slot)
	}
}

// take notes what message i has received. It returns false for what self has
// sent, and for a datagram that was too large for its slot: its sender does
// not use our MTU.
func (r *receiver) take(i int, self fabric.Remote) bool {
	m := &r.msgs[i]
	if m.Flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		r.malformed++
		return false
	}
	from := r.names[i].remote()
	if from == self {
		return false
	}
	slot := r.slotOf[i]
	at := r.base + mem.Addr(slot)<<r.shift
	aggregate := &r.aggregates[r.end]
	r.end++
	aggregate.at, aggregate.end, aggregate.size = at, at+mem.Addr(m.len), mem.Addr(m.len)
	aggregate.from = from
	r.lent[slot] = 1
	if c := &r.ctrls[i]; r.gro && m.Controllen > 0 && c.Level == unix.SOL_UDP && c.Type == unix.UDP_GRO {
		aggregate.size = mem.Addr(binary.NativeEndian.Uint32(c.value[:]))
		r.lent[slot] = int32((mem.Addr(m.len) + aggregate.size - 1) / aggregate.size)
	}
	return true
}

// Release gives back all buffers of b and empties it.
func (s *Socket) Release(b *fabric.Batch) {
	r := &s.rx
	for i := range b.Descs {
		slot := int32((b.Descs[i].Addr - r.base) >> r.shift)
		if r.lent[slot]--; r.lent[slot] == 0 {
			r.push(slot)
		}
	}
	b.Reset()
}
