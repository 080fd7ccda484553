package xdp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/xwarp/xwarp/bpf"
)

// Steering is a device with an XDP program that gives the frames for one slot
// to sockets, one for each queue. It is the part of a port that does not depend
// on the reader of the sockets: [Open] and package asavie use the same.
type Steering struct {
	device     *device
	mode       bpf.Mode
	program    *bpf.Program
	own        bool        // Close removes the program
	bypass     *bpf.Bypass // for what the kernel sends, or nil
	slot       int
	registered []int // queues
}

// NewSteering checks the device and takes the caller's program or attaches
// one. c has its defaults. The errors are those of [Open]. The caller closes it.
func NewSteering(c Config) (*Steering, error) {
	dev, err := lookup(c.Device)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(dev.suits(c.Mode), dev.check(c.Queue, c.MTU)); err != nil {
		return nil, err
	}
	s := &Steering{device: dev, slot: c.Slot}
	if c.Program != nil {
		if err := s.adopt(c.Program); err != nil {
			return nil, err
		}
		return s, nil
	}
	dev.vlan = cmp.Or(dev.vlan, c.Steer.VLAN)
	if c.Steer.VLAN = dev.vlan; dev.vlan != 0 && dev.stripsTags() {
		c.Steer.Untagged = true
	}
	s.program, err = bpf.Load(c.Steer)
	if err != nil {
		return nil, s.permission(err)
	}
	s.mode, err = s.program.Attach(dev.index, dev.preferred(c.Mode))
	if err != nil {
		return nil, errors.Join(s.permission(err), s.program.Close())
	}
	s.own = true
	if dev.driver == "veth" && s.mode == bpf.Generic {
		s.bypass, _ = bpf.AttachBypass(dev.index) // without it the kernel takes longer with large data
	}
	return s, nil
}

func (s *Steering) adopt(p *bpf.Program) error {
	ifindex, mode, ok := p.Attachment()
	if !ok || ifindex != s.device.index {
		return fmt.Errorf("xdp: Config.Program is not attached to %s: call its Attach first", s.device.card)
	}
	if s.device.vlan != 0 && s.device.vlan != p.VLAN() {
		return fmt.Errorf("xdp: Config.Program steers VLAN %d, and %s is VLAN %d: see bpf.Config.VLAN", p.VLAN(), s.device.name, s.device.vlan)
	}
	s.device.vlan = p.VLAN()
	s.program, s.mode = p, mode
	return nil
}

func (s *Steering) permission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &Error{Device: s.device.name, Reason: ErrPermission, Remedy: permissionRemedy, Cause: err}
	}
	return err
}

// Ifindex returns the index of the device.
func (s *Steering) Ifindex() int { return s.device.index }

// VLAN returns the VLAN whose tag frames to send must have; 0: none.
func (s *Steering) VLAN() uint16 { return s.device.vlan }

// MTU returns the MTU of the device when it was looked up, in bytes.
func (s *Steering) MTU() int { return s.device.mtu }

// Mode returns how the program runs on the device.
func (s *Steering) Mode() bpf.Mode { return s.mode }

// Spreads reports whether frames may arrive on any of several queues. On a veth
// they arrive where the peer has sent them, which is the first unless it is told
// otherwise.
func (s *Steering) Spreads() bool { return s.device.receive > 1 && s.device.driver != "veth" }

// ZeroCopy reports whether the driver could do zero-copy in driver mode, as
// far as the kernel knows.
func (s *Steering) ZeroCopy() bool { return s.device.features.zeroCopy() }

// Program returns the steering program, for its counters and loss.
func (s *Steering) Program() *bpf.Program { return s.program }

// Register starts giving frames that arrive on a queue to a socket, which is
// bound to it. Its errors are those of bpf.Program.Register.
func (s *Steering) Register(queue, fd int) error {
	err := s.program.Register(queue, s.slot, fd)
	if err == nil {
		s.registered = append(s.registered, queue)
	}
	return err
}

// Stray returns how many frames for our ports have arrived on a queue where no
// socket waits for them. They go to the kernel, where that port has no socket.
func (s *Steering) Stray() uint64 {
	c, err := s.program.Counters()
	if err != nil { // it fails only after Close
		return 0
	}
	return c.NoSocket
}

// Close stops giving frames to the sockets, and removes the program unless it
// is the caller's. Closing twice is harmless.
func (s *Steering) Close() error {
	var errs []error
	for _, queue := range s.registered {
		errs = append(errs, s.program.Unregister(queue, s.slot))
	}
	s.registered = nil
	if s.bypass != nil {
		errs = append(errs, s.bypass.Close())
		s.bypass = nil
	}
	if s.own {
		errs = append(errs, s.program.Close())
		s.own = false
	}
	return errors.Join(errs...)
}
