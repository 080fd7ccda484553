package sim

import (
	"fmt"
	"hash/crc32"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Sizes of AF_XDP: a received buffer starts after XDP_PACKET_HEADROOM, and a
// frame that does not fit continues in further chunks.
const (
	rxHeadroom = 256
	rxChunk    = mem.FrameSize - rxHeadroom
	ethHeader  = 14
)

// Port is a queue of a simulated NIC. It behaves as AF_XDP does in zero-copy
// mode: bytes are read when their turn on the wire comes, not when Send is
// called; sent buffers come back and receive buffers go out in Flush only; a
// frame that finds no buffer posted is lost. What AF_XDP would drop without a
// word, because our code broke a rule, panics here.
type Port struct {
	node   *Node
	pool   *mem.Pool
	steer  func([]byte) bool
	reader *Task // whoever called Recv last: frames wake it
	closed bool
	stats  fabric.PortStats

	posted    fifo[mem.Addr]    // FILL ring
	rx        fifo[fabric.Desc] // RX ring
	tx        fifo[fabric.Desc] // TX ring, flushed frames first
	done      fifo[mem.Addr]    // COMPLETION ring
	flushed   int               // buffers at the head of tx that the NIC may take
	onWire    []fabric.Desc     // buffers of the frame that is being sent
	pending   *packet           // and its bytes
	wantSpace bool              // somebody found no room in the TX ring
	relief    bool              // there is room or a frame again: Park must not wait
}

func newPort(n *Node, pool *mem.Pool, steer func([]byte) bool) *Port {
	c := &n.world.config
	p := &Port{node: n, pool: pool, steer: steer, onWire: make([]fabric.Desc, 0, fabric.MaxBufs)}
	p.posted.init(c.RxDepth)
	p.rx.init(c.RxDepth)
	p.tx.init(c.TxDepth)
	p.done.init(pool.Cap() + c.TxDepth)
	p.post()
	return p
}

// Caps implements fabric.Port.
func (p *Port) Caps() fabric.PortCaps {
	c := &p.node.world.config
	home := 0
	if c.Queues > 1 {
		home = 1 + p.node.id%c.Queues
	}
	return fabric.PortCaps{
		Home: home, Driver: "sim", MTU: c.MTU, MaxBufs: fabric.MaxBufs, TxDepth: c.TxDepth, ZeroCopy: true,
		RxDepth: c.RxDepth / ((c.MTU + ethHeader + rxChunk - 1) / rxChunk),
	}
}

// Arena implements fabric.Port.
func (p *Port) Arena() *mem.Arena { return p.node.arena }

// Pool implements fabric.Port.
func (p *Port) Pool() *mem.Pool { return p.pool }

// FD implements fabric.Port: there is nothing to poll.
func (p *Port) FD() int { return -1 }

// Stats implements fabric.Port.
func (p *Port) Stats() fabric.PortStats { return p.stats }

// Node returns the node that the port belongs to.
func (p *Port) Node() *Node { return p.node }

// ready reports whether Park must not wait.
func (p *Port) ready() bool { return p.rx.len() > 0 || p.relief }

// readBy reports whether t is to wake when something happens to the port:
// the task that reads it or, before anyone has, every task of the node.
func (p *Port) readBy(t *Task) bool { return p.reader == nil || p.reader.ended || p.reader == t }

// Recv implements fabric.Port.
func (p *Port) Recv(dst []fabric.Desc) int {
	if len(dst) < fabric.MaxBufs {
		panic(fmt.Sprintf("sim: Recv with room for %d buffers, fewer than a frame may have (%d)", len(dst), fabric.MaxBufs))
	}
	p.reader = p.node.world.running // nil outside of tasks
	n, whole := 0, 0
	for n < len(dst) && n < p.rx.len() {
		dst[n] = *p.rx.at(n)
		n++
		if dst[n-1].Flags&fabric.More == 0 {
			whole = n
		}
	}
	p.rx.drop(whole)
	return whole
}

// TxFree implements fabric.Port.
func (p *Port) TxFree() int {
	p.relief = false
	room := p.tx.cap() - p.tx.len()
	p.wantSpace = room < fabric.MaxBufs
	return room
}

// Send implements fabric.Port.
func (p *Port) Send(src []fabric.Desc) int {
	if n := len(src); n > 0 && src[n-1].Flags&fabric.More != 0 {
		panic("sim: Send of a frame whose last buffer has the flag More")
	}
	room := p.TxFree()
	first, length := 0, 0
	for i, d := range src {
		p.check(d)
		length += int(d.Len)
		if d.Flags&fabric.More != 0 {
			continue
		}
		p.checkFrame(i+1-first, length)
		if i >= room {
			p.wantSpace = true
			break
		}
		for ; first <= i; first++ {
			p.tx.push(src[first])
		}
		length = 0
	}
	return first
}

// check panics for what the kernel drops as an invalid descriptor
// (xp_aligned_validate_desc in net/xdp/xsk_queue.h).
func (p *Port) check(d fabric.Desc) {
	end := d.Addr + mem.Addr(d.Len)
	switch {
	case p.closed:
		panic("sim: Send on a closed port")
	case d.Len == 0 || end > mem.Addr(p.node.arena.Len()):
		panic(fmt.Sprintf("sim: Send of %d bytes at %#x: empty, or outside of the arena", d.Len, d.Addr))
	case mem.FrameBase(d.Addr) != mem.FrameBase(end-1):
		panic(fmt.Sprintf("sim: Send of %d bytes at %#x: crosses a chunk boundary", d.Len, d.Addr))
	}
}

func (p *Port) checkFrame(bufs, length int) {
	most := p.node.world.config.MTU + ethHeader
	if bufs > fabric.MaxBufs || length < ethHeader || length > most {
		panic(fmt.Sprintf("sim: Send of a frame of %d bytes in %d buffers: allowed are %d to %d bytes in at most %d buffers",
			length, bufs, ethHeader, most, fabric.MaxBufs))
	}
}

// Flush implements fabric.Port.
func (p *Port) Flush() {
	if p.closed {
		return
	}
	if p.flushed < p.tx.len() {
		p.flushed = p.tx.len()
		p.stats.Wakeups++
		p.node.transmit()
	}
	// Whoever wanted a frame in vain during this step must get another one.
	p.relief = p.pool.Free() == 0 && p.done.len() > 0
	p.reap()
	p.post()
}

// reap gives sent buffers back to the pool.
func (p *Port) reap() {
	for p.done.len() > 0 {
		p.pool.Put(p.done.pop())
	}
}

// post fills the FILL ring. It leaves a quarter of the pool for sending.
func (p *Port) post() {
	for p.posted.len()+p.rx.len() < p.posted.cap() && p.pool.Free() > p.pool.Cap()/4 {
		addr, _ := p.pool.Get()
		p.spoil(addr, mem.FrameSize)
		p.posted.push(addr)
	}
}

// launch takes the first frame out of the TX ring and puts it on the wire.
func (p *Port) launch() {
	w := p.node.world
	pk := w.newPacket(p.node)
	p.onWire = p.onWire[:0]
	for {
		d := p.tx.pop()
		p.flushed--
		p.onWire = append(p.onWire, d)
		pk.frame = append(pk.frame, p.node.arena.At(d.Addr, int(d.Len))...)
		if d.Flags&fabric.More == 0 {
			break
		}
	}
	p.pending = pk
	w.push(w.present().Add(p.node.Up.serialize(len(pk.frame))), (*sent)(p))
}

// sent is the event that the last bit of a frame is on the wire.
type sent Port

func (s *sent) fire(w *World) {
	p := (*Port)(s)
	p.stats.TxFrames++
	p.stats.TxBytes += uint64(len(p.pending.frame))
	w.note(traceSend, p.pending.id, p.node.id, p.pending.frame)
	for _, d := range p.onWire {
		if p.pool.Owns(d.Addr) {
			p.spoil(d.Addr, int(d.Len))
		}
		p.done.push(d.Addr)
	}
	p.node.Up.travel(w, p.pending, w.now)
	p.pending = nil
	if p.closed {
		p.reap()
	} else if p.wantSpace || p.pool.Free() == 0 {
		p.wantSpace, p.relief = false, true
		p.notify()
	}
	p.node.sending = false
	p.node.transmit()
}

// receive puts a frame that arrived into posted buffers, or loses it.
func (p *Port) receive(pk *packet) {
	w := p.node.world
	bufs := (len(pk.frame) + rxChunk - 1) / rxChunk
	if bufs > p.posted.len() || bufs > p.rx.cap()-p.rx.len() {
		p.stats.RxDropped++
		w.note(traceNoRoom, pk.id, p.node.id, nil)
		return
	}
	flags := uint32(0)
	if w.config.Queues > 1 {
		queue := p.queueOf(pk.frame)
		p.stats.RxQueues[min(queue, len(p.stats.RxQueues)-1)]++
		flags = fabric.OnQueue(queue)
	}
	for rest := pk.frame; len(rest) > 0; {
		addr := p.posted.pop() + rxHeadroom
		n := copy(p.node.arena.At(addr, rxChunk), rest)
		rest = rest[n:]
		d := fabric.Desc{Addr: addr, Len: uint32(n), Flags: flags}
		if len(rest) > 0 {
			d.Flags |= fabric.More
		}
		p.rx.push(d)
	}
	p.stats.RxFrames++
	p.stats.RxBytes += uint64(len(pk.frame))
	w.note(traceDeliver, pk.id, p.node.id, pk.frame)
	p.notify()
}

// queueOf returns the queue that a frame comes in on: by its addresses and ports, as they lie
// behind an Ethernet header and in an IPv4 one, and by a key that differs from world to world.
func (p *Port) queueOf(frame []byte) int {
	const from, to = ethHeader + 12, ethHeader + 24
	if len(frame) < to {
		return 0
	}
	key := p.node.world.config.Seed
	return int(crc32.Update(uint32(key^key>>32), crc32.IEEETable, frame[from:to])>>7) % p.node.world.config.Queues
}

// notify wakes whoever reads the port.
func (p *Port) notify() {
	for _, t := range p.node.home.tasks {
		if t.frames && p.readBy(t) {
			t.wake()
		}
	}
}

// Close implements fabric.Port. Frames that were flushed still go out. It
// returns an error when buffers of the pool are missing: somebody forgot to
// give them back.
func (p *Port) Close() error {
	if p.closed {
		return nil
	}
	missing := p.Missing()
	for p.tx.len() > p.flushed {
		p.pool.Put(p.tx.popLast().Addr)
	}
	for p.posted.len() > 0 {
		p.pool.Put(p.posted.pop())
	}
	for p.rx.len() > 0 {
		p.pool.Put(p.rx.pop().Addr)
	}
	p.reap()
	p.closed = true
	if missing > 0 {
		return fmt.Errorf("sim: node %d: port closed with %d buffers not given back", p.node.id, missing)
	}
	return nil
}

// Missing returns how many buffers of the pool are in the hands of the user of the
// ports that share it: received and not put back, or taken and not sent.
func (p *Port) Missing() int {
	held := p.pool.Free()
	for _, nic := range p.node.home.nics {
		for _, q := range nic.ports {
			if q.pool == p.pool {
				held += q.holds()
			}
		}
	}
	return p.pool.Cap() - held
}

// holds returns how many buffers of the pool the port has itself.
func (p *Port) holds() int {
	held := p.posted.len() + p.rx.len()
	owned := func(a mem.Addr) {
		if p.pool.Owns(a) {
			held++
		}
	}
	for i := range p.tx.len() {
		owned(p.tx.at(i).Addr)
	}
	for i := range p.done.len() {
		owned(*p.done.at(i))
	}
	if p.pending != nil {
		for _, d := range p.onWire {
			owned(d.Addr)
		}
	}
	return held
}

// spoil overwrites memory that is nobody's, so that code which reads a buffer
// after it gave it away is found out.
func (p *Port) spoil(addr mem.Addr, n int) {
	copy(p.node.arena.At(addr, n), p.node.world.poison[:n])
}
