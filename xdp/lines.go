package xdp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/mem"
)

// LinesConfig describes queues of a device that several processes have for
// themselves. Device, Seats and Steer.PortBase are needed; the rest has defaults.
// Steer.PortBase is the UDP port of seat 0, and each seat has the one after that
// of the seat before it.
type LinesConfig struct {
	Device string
	Seats  int // how many ports there can be, 1 to 1024
	Steer  bpf.Config

	// Slots is the most seats that a host has with which frames are exchanged,
	// this one included; default Seats. All hosts must agree.
	Slots int
	// Hops is how many forwarding devices a frame passes between two hosts that
	// are joined by veths, or negative if that is not known; default 0: none.
	Hops int

	Mode     bpf.Mode // as in Config
	ZeroCopy ZeroCopy
	MTU      int

	RxDepth int // of each queue: chunks that may wait for it, a power of two; default 2048, less where a seat has many queues
	TxDepth int // of each queue: buffers that may be on their way out, a power of two; default 1024
	Part    int // bytes of the arena for each seat, for frames and applications; default that of QueueConfig, or more where a seat has many queues

	// NeedTCP makes a network card that cannot steer the TCP ports of Steer one
	// that cannot steer. Else its seats have no TCP ports then.
	NeedTCP bool
	// Keep is told what will be changed in a network card, before it is, so that
	// it can be undone by somebody when this process dies before Close. An error
	// of it is one of OpenLines. Default nil.
	Keep func(Flows) error

	card ethtool // tests: the network card, which is no veth
}

// rxLeast is the least default of LinesConfig.RxDepth: what a few peers may send
// before they have heard from us.
const rxLeast = 256

// withDefaults returns c with all defaults filled in, or says what is wrong with
// it. links is how many queues a seat receives on.
func (c LinesConfig) withDefaults(links int) (LinesConfig, error) {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.RxDepth, max(2048/powerFrom(links), rxLeast)}, {&c.TxDepth, 1024}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Part == 0 { // half of what is usual is left besides chunks to receive into
		usual := defaultPart(c.Seats)
		c.Part = max(usual, receiveLen(links, c.RxDepth)+usual/2)
	}
	switch {
	case c.Part < 0:
		return c, fmt.Errorf("xdp: LinesConfig.Part is %d: give the bytes of the arena that each port has for itself", c.Part)
	case !isDepth(c.RxDepth) || !isDepth(c.TxDepth):
		return c, fmt.Errorf("xdp: LinesConfig.RxDepth is %d and LinesConfig.TxDepth is %d: give powers of two from %d to %d", c.RxDepth, c.TxDepth, depthMin, depthMax)
	}
	c.Part = roundUp(c.Part, hugePage)
	if err := seatBudget(c.TxDepth).Check((c.Part - receiveLen(links, c.RxDepth)) / mem.FrameSize); err != nil {
		return c, fmt.Errorf("xdp: LinesConfig.Part is %d: %w", c.Part, err)
	}
	return c, nil
}

// receiveBudget says who holds how many of the chunks to receive into of a seat
// with queues of its own at most.
func receiveBudget(links, rxDepth int) Budget {
	return Budget{
		{Name: "FILL and RX rings", Frames: links * rxDepth, Why: "chunks ready to be received into, or received", Knob: "LinesConfig.RxDepth"},
		{Name: "received", Frames: rxHeld, Why: "one batch that the protocols read", Knob: "none: it is fixed"},
	}
}

// receiveLen is how much of the arena of a seat these chunks take, in bytes: the
// beginning.
func receiveLen(links, rxDepth int) int {
	return roundUp(receiveBudget(links, rxDepth).Frames()*mem.FrameSize, hugePage)
}

// Lines are queues of a device that several processes have for themselves, as the
// one sees them that has the privileges. A line is a queue, one socket on it, and
// at most two processes: RX and FILL ring belong to the one that receives there,
// TX and COMPLETION ring to the one that sends there. So nothing is shared and
// nothing is locked, and what a process holds when it dies nobody else misses.
// Each seat has an arena of its own.
//
// On a network card that steers flows to queues (n-tuple filters) a seat has one
// line, on which it receives and sends. On a veth a frame arrives on the queue
// that it was sent on, so there is one for each pair of slots: see grid.
//
// Lines take no part in moving frames, and must live as long as their seats are
// used. Their methods are for one goroutine at a time.
type Lines struct {
	config   LinesConfig
	plan     lanes
	arenas   []*Arena // by seat
	steering *Steering
	flows    *Flows    // in a network card, or nil
	sockets  []*socket // by queue
	caps     PortCaps
	vacated  []bool // by seat
}

// lanes says which queues a seat uses.
type lanes interface {
	// queues is how many queues there must be.
	queues() int
	// of returns the queues of a seat, by the slot of the peer: the one to
	// receive on, and the one to send on.
	of(seat int) []lane
}

// lane is how a seat reaches one slot of the other hosts, or all.
type lane struct{ receive, send int }

// OpenLines opens queues of a device, in the network namespace of the calling
// thread. Its errors are those of [Open], and one that wraps ErrNoSteering when
// each seat cannot have a queue of its own there. The caller closes them.
func OpenLines(c LinesConfig) (*Lines, error) {
	if c.Slots == 0 {
		c.Slots = c.Seats
	}
	if c.Seats < 1 || c.Seats > c.Slots || c.Slots > seatsMax {
		return nil, fmt.Errorf("xdp: LinesConfig.Seats is %d, Slots is %d: give the number of ports, 1 to %d, and Slots not below that", c.Seats, c.Slots, seatsMax)
	}
	l := &Lines{vacated: make([]bool, c.Seats)}
	if err := l.open(c); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.steering.device.settle()
	return l, nil
}

func (l *Lines) open(c LinesConfig) error {
	dev, err := lookup(c.Device)
	if err != nil {
		return err
	}
	if !MapsBound() {
		return &Error{Device: dev.name, Reason: ErrNoSteering, Detail: "before Linux 6.4 processes cannot take over sockets that are bound",
			Remedy: "let the ranks share one queue"}
	}
	if vlan := max(dev.vlan, c.Steer.VLAN); vlan != 0 {
		return &Error{Device: dev.name, Reason: ErrNoSteering, Detail: fmt.Sprintf("frames of VLAN %d are not steered to queues", vlan),
			Remedy: "let the ranks share one queue"}
	}
	mode := dev.preferred(c.Mode)
	if l.plan, err = planLines(c, dev, mode); err != nil {
		return err
	}
	if l.config, err = c.withDefaults(len(l.plan.of(0))); err != nil {
		return err
	}
	l.config.Steer.Slots, l.config.Steer.Queues = c.Slots, l.plan.queues()
	for range c.Seats {
		a, err := mem.New(mem.Config{Size: l.config.Part})
		if err != nil {
			return err
		}
		l.arenas = append(l.arenas, a)
	}
	pc, err := Config{
		Device: c.Device, Arena: l.arenas[0], Steer: l.config.Steer, Mode: mode, ZeroCopy: c.ZeroCopy,
		MTU: c.MTU, RxDepth: l.config.RxDepth, TxDepth: l.config.TxDepth,
	}.WithDefaults()
	if err != nil {
		return err
	}
	if l.steering, err = NewSteering(pc); err != nil {
		return err
	}
	if err := l.openSockets(pc); err != nil {
		return err
	}
	if err := l.register(); err != nil {
		return err
	}
	if _, ok := l.plan.(cardLanes); ok {
		return l.steerFlows()
	}
	return nil
}

// TCPBlock returns the range of TCP ports of the first of some slots, each of which
// has as many: a power of two, and base a multiple of it, so that one filter of a
// network card matches them all.
func TCPBlock(slots int) (base uint16, ports int) {
	const all = 1 << 12 // the largest such range that is left by programs of the kernel
	return 1<<16 - all, all / powerFrom(slots)
}

// planLines decides which queues the seats get.
func planLines(c LinesConfig, dev *device, mode bpf.Mode) (lanes, error) {
	var plan lanes = cardLanes(c.Seats)
	if dev.driver == "veth" && c.card == nil {
		if c.Hops < 0 {
			return nil, &Error{Device: dev.name, Reason: ErrNoSteering, Detail: "it is a veth, and what it is joined to is not known",
				Remedy: "let the ranks share one queue"}
		}
		plan = grid{slots: c.Slots, shift: sendQueue(0, dev.driver, mode) + c.Hops}
	} else if err := checkFlows(&c); err != nil {
		return nil, err
	}
	if n := plan.queues(); n > dev.queues {
		return nil, &Error{Device: dev.name, Reason: ErrNoSteering, Detail: fmt.Sprintf("%d queues are needed, it has %d", n, dev.queues),
			Remedy: fmt.Sprintf("add queues (ethtool -L %s combined %d), use fewer ranks, or let them share one queue", dev.name, n)}
	}
	return plan, nil
}

// cardLanes are a queue for each seat: the card finds the receiver's.
type cardLanes int

func (n cardLanes) queues() int        { return int(n) }
func (n cardLanes) of(seat int) []lane { return []lane{{seat, seat}} }

// grid are the queues of a device without steering, where a frame that is sent on
// queue q+shift arrives at queue q: one for each slot that sends and slot that
// receives. With fewer, two senders of a host would share a COMPLETION ring, or
// two receivers a FILL ring.
type grid struct{ slots, shift int }

func (g grid) queues() int { return g.slots*g.slots + g.shift }

func (g grid) of(seat int) []lane {
	all := make([]lane, g.slots)
	for peer := range all {
		all[peer] = lane{receive: peer*g.slots + seat, send: seat*g.slots + peer + g.shift}
	}
	return all
}

// openSockets makes a socket for each queue.
func (l *Lines) openSockets(c Config) error {
	dev, mode := l.steering.device, l.steering.mode
	d := depths{fill: c.RxDepth, completion: c.TxDepth, rx: c.RxDepth, tx: c.TxDepth}
	links := len(l.plan.of(0))
	senders, receivers := l.users()
	for queue := range l.plan.queues() {
		umem, err := overlay(senders[queue], receivers[queue], receiveLen(links, c.RxDepth))
		if err != nil {
			return err
		}
		s, err := newSocket(dev.name, mem.Over(umem), d)
		_ = unix.Munmap(umem) // the kernel holds the pages
		if err != nil {
			return err
		}
		l.sockets = append(l.sockets, s)
		if err := s.bind(dev, queue, c.bindings(dev, mode), bindPatience); err != nil {
			return err
		}
		s.tune(d.tx)
	}
	var err error
	l.caps, err = capsOf(c, dev, mode, l.sockets[0])
	l.caps.RxDepth *= links
	return err
}

// users returns the arenas of those who send and who receive on each queue, or nil
// for nobody, where a host has fewer seats than others.
func (l *Lines) users() (senders, receivers []*Arena) {
	n := l.plan.queues()
	senders, receivers = make([]*Arena, n), make([]*Arena, n)
	for seat, arena := range l.arenas {
		for _, at := range l.plan.of(seat) {
			senders[at.send], receivers[at.receive] = arena, arena
		}
	}
	return senders, receivers
}

// register has frames steered into the sockets of those that they are for.
func (l *Lines) register() error {
	for seat := range l.config.Seats {
		for _, at := range l.plan.of(seat) {
			if err := l.steering.program.Register(at.receive, seat, l.sockets[at.receive].fd); err != nil {
				return err
			}
		}
	}
	return nil
}

// Caps says what a port on a seat can do.
func (l *Lines) Caps() PortCaps { return l.caps }

// Steering returns what gives frames to the seats.
func (l *Lines) Steering() *Steering { return l.steering }

// Stray is Steering.Stray.
func (l *Lines) Stray() uint64 { return l.steering.Stray() }

// Seat describes a seat as Queue.Seat does.
func (l *Lines) Seat(number int) Seat {
	steer := l.config.Steer
	s := Seat{
		Number: number, Seats: l.config.Seats, Port: steer.PortBase + uint16(number),
		TCPBase: steer.TCPBase + uint16(number*steer.TCPPorts), TCPPorts: steer.TCPPorts,
		Device: l.config.Device, Caps: l.caps, RxDepth: l.config.RxDepth, TxDepth: l.config.TxDepth,
		Part: l.config.Part, ArenaFD: l.arenas[number].FD(),
	}
	for _, at := range l.plan.of(number) {
		s.Lines = append(s.Lines, Line{ReceiveFD: l.sockets[at.receive].fd, SendFD: l.sockets[at.send].fd})
	}
	return s
}

// Vacate makes nothing more arrive at a seat whose process has ended. What that
// had was its own. Vacating twice is harmless.
func (l *Lines) Vacate(seat int) error {
	if l.vacated[seat] {
		return nil
	}
	l.vacated[seat] = true
	var errs []error
	for _, at := range l.plan.of(seat) {
		errs = append(errs, l.steering.program.Unregister(at.receive, seat))
	}
	return errors.Join(errs...)
}

// Close closes the sockets of all seats and removes the program and filters. What the
// processes of the seats send afterwards goes nowhere.
func (l *Lines) Close() error {
	var errs []error
	if l.flows != nil {
		errs = append(errs, l.removeFlows())
		l.flows = nil
	}
	if l.steering != nil {
		errs = append(errs, l.steering.Close())
	}
	for _, s := range l.sockets {
		errs = append(errs, s.close())
	}
	l.sockets = nil
	for _, a := range l.arenas {
		errs = append(errs, a.Close())
	}
	l.arenas = nil
	return errors.Join(errs...)
}
