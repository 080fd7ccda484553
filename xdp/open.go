package xdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
)

// Open opens a port on a queue of a device in the network namespace of the
// calling thread. It returns an [*Error] with its reason and what to do, or a
// *bpf.AttachedError when the device has somebody else's XDP program. It waits
// for some seconds when the queue was closed just before. The caller closes
// the port; when the process dies the kernel removes everything.
func Open(c Config) (*Port, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	steering, err := NewSteering(c)
	if err != nil {
		return nil, err
	}
	p := &Port{steering: steering, arena: c.Arena, span: mem.Addr(c.Arena.Len()), rxDepth: c.RxDepth, want: c.RxDepth}
	if p.pool, err = mem.NewPool(c.Arena, c.Frames, c.Track); err != nil {
		return nil, errors.Join(fmt.Errorf("xdp: %w", err), steering.Close())
	}
	p.ownPool = true
	if err := p.open(c, c.Queue); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// open opens the sockets of p, which receives on c.Queue and sends on sendOn.
func (p *Port) open(c Config, sendOn int) (err error) {
	dev, mode := p.steering.device, p.steering.mode
	// A completion entry is reserved for each buffer on its way, so that ring
	// never overflows when it is as large as the TX ring.
	d := depths{fill: c.RxDepth, completion: c.TxDepth, rx: c.RxDepth, tx: c.TxDepth}
	if p.sock, err = newSocket(dev.name, c.Arena, d); err != nil {
		return err
	}
	p.rings, p.out = p.sock.rings, p.sock
	p.post() // before bind: some drivers want something to receive into
	if err := p.sock.bind(dev, c.Queue, copying(c.ZeroCopy, mode), bindPatience); err != nil {
		return err
	}
	if sendOn != c.Queue {
		if err := p.openSender(c, sendOn); err != nil {
			return err
		}
	}
	p.out.tune(c.TxDepth)
	if c.BusyPoll > 0 {
		if err := p.sock.busyPoll(dev, int(max(c.BusyPoll/mono.Microsecond, 1))); err != nil {
			return err
		}
		p.busyPoll = true
	}
	if p.caps, err = capsOf(c, dev, mode, p.sock); err != nil {
		return err
	}
	return p.steering.Register(p.sock.fd)
}

// copying returns the bind flag. In generic mode the kernel must be told to
// copy: a driver that can do zero-copy would else take the queue over and
// nothing would arrive.
func copying(z ZeroCopy, mode bpf.Mode) uint16 {
	switch {
	case mode == bpf.Generic || z == ZeroCopyNever:
		return unix.XDP_COPY
	case z == ZeroCopyMust:
		return unix.XDP_ZEROCOPY
	}
	return 0
}

func capsOf(c Config, dev *device, mode bpf.Mode, s *socket) (PortCaps, error) {
	caps := PortCaps{
		Driver: "xdp/" + mode.String() + "/copy", MTU: dev.mtu, MaxBufs: fabric.MaxBufs,
		TxDepth: c.TxDepth, ZeroCopy: s.zeroCopy,
	}
	if s.zeroCopy {
		caps.Driver = "xdp/" + mode.String() + "/zerocopy"
		if n := int(dev.features.zcSegs); n > 0 {
			caps.MaxBufs = min(n, fabric.MaxBufs)
		}
	}
	if !s.sg || mode == bpf.Driver && dev.features.known && !dev.features.multiBuffer() {
		caps.MaxBufs = 1
		caps.MTU = min(caps.MTU, MTUSingle)
	}
	if c.MTU > caps.MTU {
		return caps, &Error{Device: dev.name, Reason: ErrMTU,
			Detail: fmt.Sprintf("%d wanted, but a frame is one buffer here: %d at most", c.MTU, caps.MTU),
			Remedy: "multi-buffer frames need Linux 6.6 and a driver that has them in this mode (xinfo shows it): lower the MTU or use generic mode"}
	}
	if c.MTU != 0 {
		caps.MTU = c.MTU
	}
	caps.RxDepth = c.RxDepth / bufsFor(caps.MTU)
	return caps, nil
}
