// Package asavie is the second AF_XDP driver: github.com/asavie/xdp behind
// xdp.FramePort, with our XDP program in front of it. It is the reference that
// package xdp is tested and measured against.
//
// That library makes a UMEM of its own, so a frame is copied between it and
// the arena, and it knows frames of one buffer only: the MTU is at most
// xdp.MTUSingle. A frame to send may still be several buffers: copying joins
// them.
package asavie

import (
	"errors"
	"fmt"
	"strings"
	"time"

	asavie "github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/xdp"
)

// Port is a queue of a network device. It implements xdp.FramePort. All of its
// methods belong to one engine.
type Port struct {
	steering *xdp.Steering
	sock     *asavie.Socket
	arena    *xdp.Arena
	pool     *xdp.Pool
	caps     xdp.PortCaps
	stats    xdp.PortStats

	// Free UMEM frames for sending: a window of what GetDescs returned. It
	// walks over all frames on each call, so it is asked only when the last
	// answer is nearly used up.
	spare  []asavie.Desc
	queued []asavie.Desc // to transmit with the next Flush
	dirty  bool          // the kernel has not taken all of the TX ring yet
}

// Open opens a port. c means what it means for xdp.Open, but zero-copy and
// busy polling do not exist here. Its errors are those of xdp.Open. The caller closes the
// port.
func Open(c xdp.Config) (*Port, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	if c.ZeroCopy == xdp.ZeroCopyMust || c.BusyPoll {
		return nil, errors.New("asavie: this driver has neither zero-copy nor busy polling: use the driver of package xdp")
	}
	steering, err := xdp.NewSteering(c)
	if err != nil {
		return nil, err
	}
	p := &Port{steering: steering, arena: c.Arena}
	if err := p.open(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Port) open(c xdp.Config) (err error) {
	mode := p.steering.Mode()
	if mode == bpf.Generic && p.steering.ZeroCopy() {
		return fmt.Errorf("asavie: %s can do zero-copy, and this driver has no way to say that it must not: use driver mode", c.Device)
	}
	if vlan := p.steering.VLAN(); vlan != 0 {
		return &xdp.Error{Device: c.Device, Reason: xdp.ErrUnsupported, Detail: fmt.Sprintf("this driver puts no tag of VLAN %d into frames", vlan),
			Remedy: "use the driver of package xdp"}
	}
	if p.steering.Spreads() {
		return &xdp.Error{Device: c.Device, Reason: xdp.ErrUnsupported, Detail: "this driver receives on one queue, and the device spreads frames over several",
			Remedy: "give it one (ethtool -L " + c.Device + " combined 1), or use the driver of package xdp"}
	}
	mtu := min(p.steering.MTU(), xdp.MTUSingle)
	if c.MTU > mtu {
		return &xdp.Error{Device: c.Device, Reason: xdp.ErrMTU, Detail: fmt.Sprintf("%d wanted, this driver has %d at most", c.MTU, mtu),
			Remedy: "lower it or use the driver of package xdp"}
	}
	if c.MTU != 0 {
		mtu = c.MTU
	}
	if p.pool, err = mem.NewPool(c.Arena, c.Frames, c.Track); err != nil {
		return fmt.Errorf("asavie: %w", err)
	}
	if err := p.openSocket(c, mode); err != nil {
		return err
	}
	p.queued = make([]asavie.Desc, 0, c.TxDepth)
	// The first TxDepth frames are for sending and the others for receiving,
	// always: GetDescs returns the lowest free ones, and what was received
	// goes back to the FILL ring before the next call.
	all := p.sock.GetDescs(c.TxDepth + c.RxDepth)
	p.sock.Fill(all[c.TxDepth:])
	p.spare = all[:c.TxDepth]
	p.caps.MTU, p.caps.MaxBufs, p.caps.TxDepth, p.caps.RxDepth = mtu, fabric.MaxBufs, c.TxDepth, c.RxDepth
	p.caps.Device, p.caps.Queues = c.Device, 1
	return p.steering.Register(c.Queue, p.FD())
}

func (p *Port) openSocket(c xdp.Config, mode bpf.Mode) (err error) {
	p.sock, err = newSocket(p.steering.Ifindex(), c.Queue, &asavie.SocketOptions{
		NumFrames: c.RxDepth + c.TxDepth, FrameSize: mem.FrameSize,
		FillRingNumDescs: c.RxDepth, RxRingNumDescs: c.RxDepth,
		CompletionRingNumDescs: c.TxDepth, TxRingNumDescs: c.TxDepth,
	})
	if err != nil {
		return fmt.Errorf("asavie: cannot open queue %d of %s: %w", c.Queue, c.Device, err)
	}
	unix.CloseOnExec(p.FD())
	// The library cannot ask for zero-copy or against it: the driver decides.
	opts, err := unix.GetsockoptInt(p.FD(), unix.SOL_XDP, unix.XDP_OPTIONS)
	if err != nil {
		return fmt.Errorf("asavie: getsockopt XDP_OPTIONS: %w", err)
	}
	p.caps.Driver = "xdp/asavie/" + mode.String() + "/copy"
	if opts&unix.XDP_OPTIONS_ZEROCOPY == 0 {
		return nil
	}
	if c.ZeroCopy == xdp.ZeroCopyNever {
		return fmt.Errorf("asavie: %s does zero-copy, which this driver cannot turn off: use the driver of package xdp", c.Device)
	}
	p.caps.Driver, p.caps.ZeroCopy = "xdp/asavie/"+mode.String()+"/zerocopy", true
	return nil
}

// newSocket opens a socket. The kernel gives up the queue of a closed one only
// some time later, so a busy queue is tried again for about four seconds. The
// tries are few because each that fails leaks the rings' memory until the
// process ends: asavie/xdp does not unmap them.
func newSocket(ifindex, queue int, o *asavie.SocketOptions) (*asavie.Socket, error) {
	for pause := 8 * time.Millisecond; ; pause *= 2 {
		s, err := asavie.NewSocket(ifindex, queue, o)
		// The library flattens errors into text.
		if err == nil || !strings.HasSuffix(err.Error(), unix.EBUSY.Error()) {
			return s, err
		}
		if pause > 2*time.Second {
			return nil, fmt.Errorf("%w: use another queue, or end the process that holds it: %w", xdp.ErrQueueBusy, err)
		}
		time.Sleep(pause)
	}
}

// Caps returns what the port can do.
func (p *Port) Caps() xdp.PortCaps { return p.caps }

// Arena returns the memory that frames live in.
func (p *Port) Arena() *xdp.Arena { return p.arena }

// Pool returns the frames of the port. They are invalid after Close.
func (p *Port) Pool() *xdp.Pool { return p.pool }

// Steering returns what gives frames to the port.
func (p *Port) Steering() *xdp.Steering { return p.steering }

// FD returns the socket, which poll(2) finds readable when frames have
// arrived, or -1 after Close.
func (p *Port) FD() int { return p.sock.FD() }

// Recv copies frames into frames of the pool; see xdp.FramePort.
func (p *Port) Recv(dst []xdp.Desc) int {
	n := min(p.sock.NumReceived(), len(dst), p.pool.Free())
	if n == 0 {
		return 0
	}
	in := p.sock.Receive(n)
	for i := range in {
		addr, _ := p.pool.Get() // Free said that there is one
		copy(p.arena.At(addr, int(in[i].Len)), p.sock.GetFrame(in[i]))
		dst[i] = fabric.Desc{Addr: addr, Len: in[i].Len}
		p.stats.RxBytes += uint64(in[i].Len)
	}
	p.stats.RxFrames += uint64(n)
	p.sock.Fill(in)
	return n
}

// TxFree returns how many buffers Send takes now.
func (p *Port) TxFree() int {
	// Frames that are queued here look free to the library until Flush. A
	// quarter is early enough for callers that keep room for several frames.
	if len(p.spare) < max(p.caps.TxDepth/4, fabric.MaxBufs) && len(p.queued) == 0 {
		p.reclaim()
	}
	return len(p.spare)
}

// reclaim finds the frames that were sent.
func (p *Port) reclaim() {
	if n := p.sock.NumCompleted(); n > 0 {
		p.sock.Complete(n)
	}
	p.spare = p.sock.GetDescs(p.caps.TxDepth)
}

// Send copies whole frames into the UMEM and returns how many buffers it took;
// see xdp.FramePort.
func (p *Port) Send(src []xdp.Desc) int {
	taken := 0
	for taken < len(src) && p.TxFree() > 0 {
		n := p.join(src[taken:])
		if n == 0 {
			break
		}
		taken += n
	}
	return taken
}

// join copies the first frame of src and returns how many buffers it was, or 0
// when its last one is missing.
func (p *Port) join(src []xdp.Desc) int {
	out := p.spare[0]
	out.Len = mem.FrameSize
	to := p.sock.GetFrame(out)
	size := 0
	for i, d := range src {
		if size+int(d.Len) <= len(to) {
			copy(to[size:], p.arena.At(d.Addr, int(d.Len)))
		}
		size += int(d.Len)
		if d.Flags&fabric.More == 0 {
			p.take(out, size)
			for _, d := range src[:i+1] {
				p.pool.Put(d.Addr)
			}
			return i + 1
		}
	}
	return 0
}

// take queues the frame that was joined. One that is too long for this driver
// is lost, as it would be in the kernel.
func (p *Port) take(out asavie.Desc, size int) {
	if size == 0 || size > mem.FrameSize {
		p.stats.TxInvalid++
		return
	}
	out.Len = uint32(size)
	p.queued = append(p.queued, out)
	p.spare = p.spare[1:]
	p.stats.TxFrames++
	p.stats.TxBytes += uint64(size)
}

// Flush makes the kernel send what is queued; see xdp.FramePort.
func (p *Port) Flush() {
	if len(p.queued) == 0 && !p.dirty {
		return
	}
	defer p.survive()
	p.stats.Wakeups++
	sent := p.sock.Transmit(p.queued)
	p.queued = p.queued[:copy(p.queued, p.queued[sent:])]
	// One call sends up to 32 frames; more need the doorbell only.
	free := p.sock.NumFreeTxSlots()
	for free < p.caps.TxDepth {
		p.stats.Wakeups++
		p.sock.Transmit(nil)
		before := free
		if free = p.sock.NumFreeTxSlots(); free == before {
			break
		}
	}
	p.dirty = free < p.caps.TxDepth
}

// survive keeps a device that went down from taking the process with it: the
// library panics when the system call that sends fails.
func (p *Port) survive() {
	if recover() != nil {
		p.queued = p.queued[:0] // they are in the ring
		p.dirty = true
	}
}

// Stats returns what happened since the port was opened.
func (p *Port) Stats() xdp.PortStats {
	st := p.stats
	if p.FD() < 0 { // closed: the library would read rings that are gone
		return st
	}
	if k, err := p.sock.Stats(); err == nil { // it fails on a closed socket only
		// Rx_fill_ring_empty_descs counts the same frames once more.
		st.RxDropped = k.KernelStats.Rx_dropped + k.KernelStats.Rx_ring_full
		st.RxInvalid = k.KernelStats.Rx_invalid_descs
		st.TxInvalid += k.KernelStats.Tx_invalid_descs
	}
	return st
}

// Close closes the socket and gives the frames back to the arena.
func (p *Port) Close() error {
	errs := []error{p.steering.Close()}
	if p.sock != nil && p.FD() >= 0 {
		errs = append(errs, unmapRings(p.FD()), p.sock.Close())
	}
	if p.pool != nil {
		p.pool.Release(p.arena)
		p.pool = nil
	}
	return errors.Join(errs...)
}
