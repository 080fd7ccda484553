package xdp

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Open opens a port on the queues of a device in the network namespace of the
// calling thread. It returns an [*Error] with its reason and what to do, or a
// *bpf.AttachedError when the device has a foreign XDP program. It waits
// for some seconds when a queue was closed just before. The caller closes
// the port; when the process dies the kernel removes everything.
func Open(c Config) (FramePort, error) {
	c, err := c.onDevice()
	if err != nil {
		return nil, err
	}
	first, err := openFirst(c)
	if err != nil {
		return nil, err
	}
	if c.Queues == 1 {
		first.steering.device.settle()
		return tagging(first), nil
	}
	f, err := first.onAllQueues(c)
	if err != nil {
		return nil, err
	}
	return tagging(f), nil
}

// onDevice returns c with all defaults filled in, for the queues that the device has.
func (c Config) onDevice() (Config, error) {
	if c.Queues == 0 && c.Program == nil && c.Device != "" {
		dev, err := lookup(c.Device)
		if err != nil {
			return c, err
		}
		c.Queues = dev.receive - c.Queue
	}
	return c.WithDefaults()
}

// FramesOf returns how many chunks a port that Open opens with c has in its pool: what
// Config.Pool must have for it. c has no Pool. Its errors are those of Config.WithDefaults.
func FramesOf(c Config) (int, error) {
	c, err := c.onDevice()
	return c.Frames, err
}

// openFirst opens the port of c.Queue alone. c has its defaults.
func openFirst(c Config) (*Port, error) {
	steering, err := NewSteering(c)
	if err != nil {
		return nil, err
	}
	p := &Port{steering: steering, arena: c.Arena, span: mem.Addr(c.Arena.Len()), rxDepth: c.RxDepth}
	if p.pool = c.Pool; p.pool == nil {
		if p.pool, err = mem.NewPool(c.Arena, c.Frames, c.Track); err != nil {
			return nil, errors.Join(fmt.Errorf("xdp: %w", err), steering.Close())
		}
		p.ownPool = true
	}
	if err := p.open(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// open opens the socket of p, which receives and sends on c.Queue.
func (p *Port) open(c Config) (err error) {
	dev, mode := p.steering.device, p.steering.mode
	// A completion entry is reserved for each buffer on its way, so that ring
	// never overflows when it is as large as the TX ring.
	d := depths{fill: c.RxDepth, completion: c.TxDepth, rx: c.RxDepth, tx: c.TxDepth}
	if p.sock, err = newSocket(dev.name, c.Arena, d); err != nil {
		return err
	}
	p.rings, p.out = p.sock.rings, p.sock
	bindings := c.bindings(dev, mode)
	p.begin(bindings[0]&unix.XDP_COPY == 0)
	p.post() // before bind: some drivers want something to receive into
	if err := p.sock.bind(dev, c.Queue, bindings, bindTries); err != nil {
		return err
	}
	p.out.tune(c.TxDepth)
	if c.BusyPoll {
		if err := p.sock.busyPoll(dev.name); err != nil {
			return err
		}
		p.startBusyPoll()
	}
	if p.caps, err = capsOf(c, dev, mode, p.sock); err != nil {
		return err
	}
	return p.steering.Register(c.Queue, p.sock.fd)
}

// onAllQueues makes a port of p and of c.Queues-1 more, each of which receives on
// a queue of its own. It owns p from now on.
func (p *Port) onAllQueues(c Config) (*portSet, error) {
	f := &portSet{first: c.Queue, ports: []*Port{p}, poll: -1}
	for queue := c.Queue + 1; queue < c.Queue+c.Queues; queue++ {
		b := &Port{arena: c.Arena, pool: p.pool, caps: p.caps, rxDepth: p.rxDepth, want: p.want}
		f.ports = append(f.ports, b)
		if err := b.receiveBeside(p, c, queue); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := f.watch(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p.steering.device.settle()
	return f, nil
}

// receiveBeside opens the socket of p, which receives on a queue, into the memory
// and for the slot of first, and does not send.
func (p *Port) receiveBeside(first *Port, c Config, queue int) (err error) {
	s := first.steering
	d := depths{fill: c.RxDepth, completion: depthMin, rx: c.RxDepth, tx: depthMin}
	if p.sock, err = newSocketBeside(d); err != nil {
		return err
	}
	p.out = p.sock
	if p.sock.rings, err = mapRings(p.sock.fd, d); err != nil {
		return fmt.Errorf("xdp: cannot map the rings: %w", err)
	}
	p.rings = p.sock.rings
	p.post() // before bind: some drivers want something to receive into
	if err := p.sock.bindBeside(first.sock, s.device, queue); err != nil {
		return err
	}
	if c.BusyPoll {
		if err := p.sock.busyPoll(s.device.name); err != nil {
			return err
		}
		p.startBusyPoll()
	}
	return s.Register(queue, p.sock.fd)
}

// bindings are the flags to bind with, the best first: the first that the driver
// takes is used. The kernel must be told to copy in generic mode, where a driver
// that can do zero-copy would else take the queue over and nothing would arrive.
// It must be told not to otherwise: asked for frames of several buffers, and not
// for zero-copy, it copies without a word where the driver has zero-copy only for
// frames of one.
func (c *Config) bindings(dev *device, mode bpf.Mode) []uint16 {
	const sg = unix.XDP_USE_SG
	copying := []uint16{unix.XDP_COPY | sg, unix.XDP_COPY} // without sg before Linux 6.6
	if mode == bpf.Generic || c.ZeroCopy == ZeroCopyNever {
		return copying
	}
	f, mtu := dev.features, cmp.Or(c.MTU, dev.mtu)
	var flags []uint16
	if f.zcSegs > 1 {
		flags = append(flags, unix.XDP_ZEROCOPY|sg)
	}
	if may := f.zeroCopy() || !f.known; mtu <= dev.mtuSingle() && (may || c.ZeroCopy == ZeroCopyMust) {
		flags = append(flags, unix.XDP_ZEROCOPY)
	}
	switch {
	case c.ZeroCopy != ZeroCopyMust:
		flags = append(flags, copying...)
	case len(flags) == 0: // let the driver say why not
		flags = append(flags, unix.XDP_ZEROCOPY|sg)
	}
	return flags
}

func capsOf(c Config, dev *device, mode bpf.Mode, s *socket) (PortCaps, error) {
	caps := PortCaps{
		Driver: "xdp/" + mode.String() + "/copy", Device: dev.name, Queues: max(c.Queues, 1), MTU: dev.mtu, MaxBufs: fabric.MaxBufs,
		TxDepth: c.TxDepth, ZeroCopy: s.zeroCopy, VLAN: dev.vlan,
	}
	if s.zeroCopy {
		caps.Driver = "xdp/" + mode.String() + "/zerocopy"
		if n := int(dev.features.zcSegs); n > 0 {
			caps.MaxBufs = min(n, fabric.MaxBufs)
		}
	}
	if !s.sg || mode == bpf.Driver && dev.features.known && !dev.features.multiBuffer() {
		caps.MaxBufs = 1
		caps.MTU = min(caps.MTU, dev.mtuSingle())
	}
	if c.MTU > caps.MTU {
		return caps, &Error{Device: dev.name, Reason: ErrMTU,
			Detail: fmt.Sprintf("%d wanted, but a frame is one buffer here: %d at most", c.MTU, caps.MTU),
			Remedy: "multi-buffer frames need Linux 6.6 and a driver that has them in this mode (xinfo shows it): lower the MTU or use generic mode"}
	}
	if c.MTU != 0 {
		caps.MTU = c.MTU
	}
	caps.RxDepth = c.RxDepth / bufsFor(caps.MTU+caps.Headroom())
	return caps, nil
}
