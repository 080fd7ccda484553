package bpf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Config says which packets a [Program] steers: those for UDP port PortBase+slot,
// over IPv4 or IPv6, go to the socket registered for that slot and the queue that
// they arrived on, and so do those for the TCP ports of the slot, if it has any.
type Config struct {
	PortBase uint16     // UDP port of slot 0; needed
	Slots    int        // number of consecutive ports; default 1
	Queues   int        // receive queues of the interface; default 1
	Addr     netip.Addr // destination, besides multicast groups: then only its family is steered; default any of both
	LossPPM  int        // see Program.SetLoss; default 0

	// VLAN makes it steer the packets of this VLAN, 1 to 4094, whose frames have an
	// 802.1Q tag, and only those; sockets get them without the tag. Untagged adds
	// frames without one, for network cards that take tags off: then whatever VLAN
	// they were of. Default 0: frames without a tag, and no others.
	VLAN     uint16
	Untagged bool

	// TCPPorts is how many TCP ports each slot has: those of slot s begin
	// at TCPBase + s*TCPPorts. Listeners and ephemeral ports of a TCP in user
	// space must be among them, and programs that use the kernel's TCP must stay
	// away from them. Default 0: all TCP is the kernel's.
	TCPPorts int
	TCPBase  uint16 // default DefaultTCPBase
}

// DefaultTCPBase is the first port above those that Linux gives to outgoing
// connections by default (net.ipv4.ip_local_port_range). DefaultTCPPorts is
// what is left from there on.
const (
	DefaultTCPBase  = 61000
	DefaultTCPPorts = 1<<16 - DefaultTCPBase
)

// vlanMax is the last VLAN: 4095 is reserved (IEEE 802.1Q, table 9-2).
const vlanMax = 4094

// LossPPMMax is the loss at which every steered packet is dropped.
const LossPPMMax = 1_000_000

func (c Config) withDefaults() (Config, error) {
	c.Slots = cmp.Or(c.Slots, 1)
	c.Queues = cmp.Or(c.Queues, 1)
	c.TCPBase = cmp.Or(c.TCPBase, DefaultTCPBase)
	switch {
	case c.TCPPorts < 0 || int(c.TCPBase)+c.TCPPorts*c.Slots > 1<<16:
		return c, fmt.Errorf("bpf: %d TCP ports from %d on for each of %d slots go past 65535: lower Config.TCPBase or Config.TCPPorts", c.TCPPorts, c.TCPBase, c.Slots)
	case c.PortBase == 0:
		return c, errors.New("bpf: Config.PortBase is 0: give the UDP port of the first endpoint")
	case c.Slots < 0 || int(c.PortBase)+c.Slots > 1<<16:
		return c, fmt.Errorf("bpf: %d ports from %d on go past 65535: lower Config.PortBase or Config.Slots", c.Slots, c.PortBase)
	case c.VLAN > vlanMax:
		return c, fmt.Errorf("bpf: Config.VLAN is %d: a VLAN is 1 to %d, or 0 for none", c.VLAN, vlanMax)
	case c.Queues < 0 || c.Queues > 1<<16:
		return c, fmt.Errorf("bpf: Config.Queues is %d: it is the number of receive queues of the interface", c.Queues)
	}
	return c, nil
}

// Counters says what happened to the frames of an interface since the program
// was loaded.
type Counters struct {
	Steered   uint64 // given to a socket (which may still have dropped them: no room)
	Passed    uint64 // not ours: went on to the kernel
	NoSocket  uint64 // for our ports, without a socket: went on to the kernel
	Lost      uint64 // dropped on purpose, see SetLoss
	Malformed uint64 // for our ports, with lengths that contradict each other: went on to the kernel
}

// Program is the steering program, loaded into the kernel. Its methods are for
// one goroutine at a time.
type Program struct {
	objs struct { // in the kernel
		Steer         *ebpf.Program  `ebpf:"steer"`
		Sockets       *ebpf.Map      `ebpf:"sockets"`
		Counters      *ebpf.Map      `ebpf:"counters"`
		LossThreshold *ebpf.Variable `ebpf:"loss_threshold"`
	}
	link    link.Link // nil until Attach
	ifindex int       // of Attach
	mode    Mode      // of Attach
	slots   int
	queues  int
	vlan    uint16
	frags   bool
}

// Load loads the steering program. It needs CAP_BPF and CAP_NET_ADMIN; the
// error wraps fs.ErrPermission without them. The caller closes it.
func Load(c Config) (*Program, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Program{slots: c.Slots, queues: c.Queues, vlan: c.VLAN, frags: true}
	err = p.load(c)
	if errors.Is(err, unix.EINVAL) {
		// Before Linux 5.18 nothing knew of multi-buffer programs.
		p.frags = false
		err = p.load(c)
	}
	if err != nil {
		return nil, loadError("steering", err)
	}
	if err := p.SetLoss(c.LossPPM); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Program) load(c Config) error {
	spec, err := object("steer")
	if err != nil {
		return err
	}
	spec.Maps["sockets"].MaxEntries = uint32(c.Queues * c.Slots)
	family, addr := destination(c.Addr.Unmap())
	var stripped uint16
	if c.Untagged {
		stripped = 1
	}
	err = errors.Join(
		spec.Variables["port_base"].Set(c.PortBase),
		spec.Variables["slots"].Set(uint16(c.Slots)),
		spec.Variables["tcp_base"].Set(c.TCPBase),
		spec.Variables["tcp_ports"].Set(uint16(c.TCPPorts)),
		spec.Variables["family"].Set(family),
		spec.Variables["vlan"].Set(c.VLAN),
		spec.Variables["stripped"].Set(stripped),
		spec.Variables["address"].Set(addr))
	if err != nil {
		return err
	}
	if !p.frags {
		spec.Programs["steer"].Flags &^= unix.BPF_F_XDP_HAS_FRAGS
	}
	return spec.LoadAndAssign(&p.objs, nil)
}

// destination returns an address as the program knows it: the bytes as they are on
// the wire.
func destination(a netip.Addr) (family uint16, addr [4]uint32) {
	var b []byte
	switch {
	case a.Is4():
		family, b = 4, a.AsSlice()
	case a.Is6():
		family, b = 6, a.AsSlice()
	}
	for i := range len(b) / 4 {
		addr[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	return family, addr
}

// Frags reports whether the program may be attached in driver mode to an
// interface with an MTU above a page (XDP multi-buffer, Linux 5.18).
func (p *Program) Frags() bool { return p.frags }

// VLAN returns Config.VLAN.
func (p *Program) VLAN() uint16 { return p.vlan }

// Attach attaches the program to an interface and returns the mode in which it
// runs there. It fails with an [*AttachedError] when there is a program
// already; when that is a steering program of ours too, it waits for its end for
// about 5 s before. A Program is attached once; Close detaches it.
func (p *Program) Attach(ifindex int, mode Mode) (Mode, error) {
	if p.link != nil {
		return 0, errors.New("bpf: the program is attached already: load another one for another interface")
	}
	l, mode, err := attach(p.objs.Steer, ifindex, mode)
	if err != nil {
		return 0, err
	}
	p.link, p.ifindex, p.mode = l, ifindex, mode
	return mode, nil
}

// Attachment returns where and how the program is attached. ok is false when
// it is not.
func (p *Program) Attachment() (ifindex int, mode Mode, ok bool) {
	return p.ifindex, p.mode, p.link != nil
}

// ErrSlotTaken is wrapped by the error of Register for a slot that has a socket.
var ErrSlotTaken = errors.New("slot has a socket already")

// Register gives the datagrams for a slot that arrive on a queue to an AF_XDP
// socket, which must be bound to that queue of the interface that the program
// is attached to. The kernel removes the entry when the socket is closed. Its errors
// wrap ErrSlotTaken, or say which queue or slot the program was not loaded for.
func (p *Program) Register(queue, slot, fd int) error {
	key, err := p.key(queue, slot)
	if err != nil {
		return err
	}
	switch err := p.objs.Sockets.Update(key, uint32(fd), ebpf.UpdateNoExist); {
	case errors.Is(err, ebpf.ErrKeyExist):
		return fmt.Errorf("bpf: queue %d, slot %d: %w: use another slot (port)", queue, slot, ErrSlotTaken)
	case err != nil:
		return fmt.Errorf("bpf: cannot register socket for queue %d, slot %d: %w", queue, slot, err)
	}
	return nil
}

// Unregister takes the socket of a slot out. Nothing happens when there is none. It fails
// for a queue or a slot that the program was not loaded for.
func (p *Program) Unregister(queue, slot int) error {
	key, err := p.key(queue, slot)
	if err != nil {
		return err
	}
	if err := p.objs.Sockets.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("bpf: cannot unregister queue %d, slot %d: %w", queue, slot, err)
	}
	return nil
}

func (p *Program) key(queue, slot int) (uint32, error) {
	if queue < 0 || queue >= p.queues || slot < 0 || slot >= p.slots {
		return 0, fmt.Errorf("bpf: no queue %d, slot %d: the program was loaded for %d queues and %d slots", queue, slot, p.queues, p.slots)
	}
	return uint32(queue*p.slots + slot), nil
}

// SetLoss makes the program drop ppm out of a million packets that it would
// steer, picked at random. It is for tests; 0 turns it off. It fails for more than
// LossPPMMax.
func (p *Program) SetLoss(ppm int) error {
	if ppm < 0 || ppm > LossPPMMax {
		return fmt.Errorf("bpf: a loss of %d ppm does not exist: give 0 to %d", ppm, LossPPMMax)
	}
	threshold := uint32(uint64(ppm) * (1<<32 - 1) / LossPPMMax)
	return p.objs.LossThreshold.Set(threshold)
}

// Counters returns the sums over all processors. It fails after Close.
func (p *Program) Counters() (Counters, error) {
	var c Counters
	err := sums(p.objs.Counters, &c.Steered, &c.Passed, &c.NoSocket, &c.Lost, &c.Malformed)
	return c, err
}

// Close detaches the program and removes it from the kernel.
func (p *Program) Close() error {
	var err error
	if p.link != nil {
		err = detach(p.link)
		p.link = nil
	}
	return errors.Join(err, p.objs.Steer.Close(), p.objs.Sockets.Close(), p.objs.Counters.Close())
}

// sums reads counters 0, 1, ... of a per-CPU array.
func sums(m *ebpf.Map, into ...*uint64) error {
	for i, sum := range into {
		var perCPU []uint64
		if err := m.Lookup(uint32(i), &perCPU); err != nil {
			return fmt.Errorf("bpf: cannot read counters: %w", err)
		}
		for _, n := range perCPU {
			*sum += n
		}
	}
	return nil
}

func loadError(what string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("bpf: not allowed to load the %s program: run as root or with CAP_BPF and CAP_NET_ADMIN: %w", what, err)
	}
	return fmt.Errorf("bpf: cannot load the %s program: %w", what, err)
}
