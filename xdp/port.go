package xdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Port is a queue of a network device. It implements FramePort. All of its
// methods belong to one engine.
type Port struct {
	steering    *Steering
	sock        *socket
	out         *socket // what sends: sock, or one of the same queue beside it
	rings       *rings
	arena       *Arena
	pool        *Pool
	ownPool     bool          // Close releases it
	borrowed    *mem.Borrowed // the pool's, of frames to receive into; nil: they are its own
	caps        PortCaps
	stats       PortStats
	participant *participant // nil: the queue is ours alone
	from        mem.Addr     // buffers to send lie in the span bytes from here on
	span        mem.Addr

	queued  int  // buffers sent and not completed: never above the size of the TX ring
	apart   bool // chunks to receive into are borrowed ones of the pool, no others
	posted  int  // chunks given to the kernel and not received: never above rxDepth
	rxDepth int  // how many are posted at most
	want    int  // how many should be posted: rxDepth, or quietDepth in calm times
	calm    int  // receives of few buffers in a row
	dirty   bool // the kernel has not taken all of the TX ring yet
	busy    busyPolling
	polled  [1]unix.PollFd // scratch
}

// fillBatch is how many chunks must be missing before new ones are posted. The
// producer index of the FILL ring is read by the processor that sends to us;
// writing it for each frame would add a cache miss to each message.
const fillBatch = 16

// In calm times, and at the beginning, only quietDepth chunks circulate, so that they stay in
// the caches: with 2048 a small message takes 60 ns longer, and the first touch of each chunk
// far longer where a hypervisor shadows the page tables: tens of microseconds, for as many frames
// as there are chunks that were posted and not used yet. So twice as many are posted only when a burst
// has taken half of them. A receive queue of quietDepth holds what a peer may send before it has heard from us.
const (
	quietDepth = 512
	burstBufs  = 24   // buffers in one receive that make a burst
	calmAfter  = 1024 // receives of fewer buffers until it is calm again
)

// begin says how many chunks are posted at first: all that the ring of a card takes with
// zero-copy, whose driver fills it when the socket is bound.
func (p *Port) begin(zeroCopy bool) {
	if p.want = p.rxDepth; !zeroCopy {
		p.want = min(quietDepth, p.rxDepth)
	}
}

// adapt notes that n buffers were taken at once, and how many wait behind them.
func (p *Port) adapt(n, waiting int) {
	switch {
	case n >= burstBufs:
		if p.calm = 0; n+waiting > p.want/2 {
			p.want = min(2*p.want, p.rxDepth)
		}
	case p.calm < calmAfter:
		p.calm++
	default:
		p.want = min(quietDepth, p.rxDepth)
	}
}

// fillReserve frames stay in the pool for sending when memory is short:
// acknowledgements must go out for frames to come back.
const fillReserve = 64

// Caps returns what the port can do.
func (p *Port) Caps() PortCaps {
	c := p.caps
	p.findNAPI()
	c.BusyPoll = p.busy.String()
	return c
}

// Arena returns the memory that frames live in.
func (p *Port) Arena() *Arena { return p.arena }

// Pool returns the frames of the port. They are invalid after Close.
func (p *Port) Pool() *Pool { return p.pool }

// Steering returns what gives frames to the port; nil on a slot, where it is
// that of its queue.
func (p *Port) Steering() *Steering { return p.steering }

// FD returns the socket, which poll(2) finds readable when frames have
// arrived, or -1 after Close.
func (p *Port) FD() int { return p.sock.fd }

// Recv fills dst with the buffers of whole frames and returns how many buffers
// it wrote; see FramePort. The caller gives each back with Pool.Put.
func (p *Port) Recv(dst []Desc) int {
	n := p.take(dst)
	if n == 0 && p.busy >= busyAsked && p.drive() {
		n = p.take(dst)
	}
	return n
}

// take is Recv of what is there.
func (p *Port) take(dst []Desc) int {
	rx := &p.rings.rx
	got := rx.take(dst)
	if got.bufs == 0 {
		if got.tooLong {
			p.dropTooLong()
		}
		return 0
	}
	if p.participant != nil {
		p.participant.hold(dst[:got.bufs])
		if got.bufs >= burstBufs {
			p.participant.widen()
		}
	}
	rx.publish()
	p.posted -= got.bufs
	p.adapt(got.bufs, int(rx.theirs-rx.ours))
	p.stats.RxFrames += uint64(got.frames)
	p.stats.RxBytes += got.bytes
	return got.bufs
}

// dropTooLong gets rid of a frame with more buffers than any kernel makes,
// which would block the ring for ever. What is left of it arrives as a frame
// that no protocol takes.
func (p *Port) dropTooLong() {
	rx := &p.rings.rx
	for range fabric.MaxBufs {
		d := rx.pop()
		if p.participant != nil {
			p.participant.hold([]Desc{d})
		}
		p.pool.Put(d.Addr)
	}
	rx.publish()
	p.posted -= fabric.MaxBufs
	p.stats.RxInvalid++
}

// TxFree returns how many buffers Send takes now.
func (p *Port) TxFree() int { return p.rings.tx.size() - p.queued }

// Send queues whole frames and returns how many buffers it took; see
// FramePort. It panics when a buffer is empty or crosses the boundary of a
// chunk, when a frame has more than Caps().MaxBufs, and when the last frame of
// src is not whole: the kernel would drop such a frame in silence and never
// hand its buffers back.
func (p *Port) Send(src []Desc) int {
	if len(src) == 1 && p.sendOne(&src[0]) {
		return 1
	}
	n := wholeFrames(src, p.TxFree())
	frame := 0 // buffers of the present frame
	for i := range src[:n] {
		d := &src[i]
		frame++
		if offset := uint64(d.Addr) & (mem.FrameSize - 1); d.Len == 0 || offset+uint64(d.Len) > mem.FrameSize || frame > p.caps.MaxBufs || d.Addr-p.from >= p.span {
			badBuffer(d, frame, p.caps.MaxBufs)
		}
		p.stats.TxBytes += uint64(d.Len)
		if d.Flags&fabric.More == 0 {
			p.stats.TxFrames++
			frame = 0
		}
	}
	if frame > 0 {
		panic("xdp: the last buffer to send is marked fabric.More: Send takes whole frames")
	}
	p.rings.tx.push(src[:n])
	p.queued += n
	p.dirty = p.dirty || n > 0
	return n
}

// sendOne is Send for what most calls bring: one frame of one buffer. false
// means that Send has to look; then nothing was done.
func (p *Port) sendOne(d *fabric.Desc) bool {
	if p.TxFree() == 0 || d.Flags != 0 || d.Len == 0 || uint64(d.Addr)&(mem.FrameSize-1)+uint64(d.Len) > mem.FrameSize || d.Addr-p.from >= p.span {
		return false
	}
	tx := &p.rings.tx
	at := &tx.descs[tx.ours&tx.mask]
	at.Addr, at.Len, at.Flags = d.Addr, d.Len, 0
	tx.ours++
	p.queued++
	p.dirty = true
	p.stats.TxFrames++
	p.stats.TxBytes += uint64(d.Len)
	return true
}

func badBuffer(d *fabric.Desc, n, most int) {
	panic(fmt.Sprintf("xdp: buffer %d of a frame is %d bytes at %#x: a frame has 1 to %d buffers, all in our part of the arena, none empty or across a multiple of %d",
		n, d.Len, d.Addr, most, mem.FrameSize))
}

// Flush makes the kernel send what is queued, takes back buffers that were
// sent and posts chunks to receive into; see FramePort.
func (p *Port) Flush() {
	if p.dirty {
		p.transmit()
	}
	if p.participant != nil {
		p.flushSlot()
		return
	}
	if p.queued > 0 {
		p.reap()
	}
	if p.want-p.posted >= fillBatch {
		p.post()
	}
}

// transmit publishes the TX ring and rings the doorbell. In copy mode the
// system call itself sends, a limited number of frames at a time.
func (p *Port) transmit() {
	tx := &p.rings.tx
	tx.publish()
	waiting := tx.waiting()
	for waiting > 0 {
		if p.caps.ZeroCopy && !tx.needWakeup() {
			waiting = 0 // the driver polls the ring
			break
		}
		p.stats.Wakeups++
		wake(p.out.fd)
		before := waiting
		waiting = tx.waiting()
		if p.caps.ZeroCopy && p.busy == busyOn && waiting > 0 {
			p.wakeByPoll(p.out.fd)
		}
		if p.caps.ZeroCopy || waiting == before {
			// Zero-copy: the driver was woken and will take them. Copy: the
			// device's queue, the send buffer or the COMPLETION ring is full,
			// or the device is down: the next Flush tries again.
			break
		}
	}
	p.dirty = waiting > 0
}

// reap takes back what was sent.
func (p *Port) reap() {
	cq := &p.rings.completion
	n := cq.available()
	if n == 0 {
		return
	}
	for range n {
		p.pool.PutSent(cq.pop())
	}
	cq.publish()
	p.queued -= n
}

// post gives chunks to the kernel to receive into.
func (p *Port) post() {
	fill := &p.rings.fill
	n := p.want - p.posted
	if p.apart {
		n = p.pushBorrowed(n)
	} else {
		n = min(n, p.pool.Free()-fillReserve)
		for range n {
			chunk, _ := p.pool.Get() // Free said that there is one
			fill.push(chunk)
		}
	}
	if n <= 0 {
		return
	}
	fill.publish()
	p.posted += n
	if p.caps.ZeroCopy && fill.needWakeup() {
		p.refill(p.sock.fd)
	}
}

// Stats returns what happened since the port was opened.
func (p *Port) Stats() PortStats {
	st := p.stats
	if k, err := statistics(p.sock.fd); err == nil { // it fails only after Close
		// Rx_fill_ring_empty_descs counts the same frames once more.
		st.RxDropped = k.Rx_dropped + k.Rx_ring_full
		st.RxInvalid += k.Rx_invalid_descs
	}
	if k, err := statistics(p.out.fd); err == nil { // sock may be another's to send on
		st.TxInvalid = k.Tx_invalid_descs
	}
	if p.steering != nil {
		st.RxStray = p.steering.Stray()
	}
	return st
}

// Close takes the socket out of the program's table, closes it and gives its
// frames back to the arena. A program that Open attached is removed.
func (p *Port) Close() error {
	var errs []error
	if p.steering != nil {
		errs = append(errs, p.steering.Close())
	}
	if p.participant != nil {
		p.participant.leave(p)
		p.participant = nil
	}
	if p.sock != nil && p.sock.fd >= 0 {
		if p.out != nil && p.out != p.sock {
			errs = append(errs, p.out.close())
		}
		errs = append(errs, p.sock.close())
	}
	if p.pool != nil && p.ownPool {
		p.pool.Release(p.arena)
	}
	p.pool = nil
	return errors.Join(errs...)
}

// wake makes the kernel look at the TX ring. RawSyscall: it never sleeps, and
// telling the Go scheduler about it would cost more than some of the calls.
func wake(fd int) {
	_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
}

// receive makes the kernel look at the FILL ring and, with busy polling, at
// the device.
func receive(fd int) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
}
