package xdp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
)

// QueueSetConfig describes queues of a device that several processes have for
// themselves. Device, Slots and Steer.PortBase are needed; the rest has defaults.
// Steer.PortBase is the UDP port of slot 0, and each slot has the one after that
// of the slot before it.
type QueueSetConfig struct {
	Device string
	Slots  int // how many ports there can be, 1 to 1024
	Steer  bpf.Config

	// PeerSlots is the most slots that a host has with which frames are exchanged,
	// this one included; default Slots. All hosts must agree.
	PeerSlots int
	// Hops is how many forwarding devices a frame passes between two hosts that
	// are joined by veths, or negative if that is not known; default 0: none.
	Hops int

	Mode     bpf.Mode // as in Config
	ZeroCopy ZeroCopy
	MTU      int
	BusyPoll bool

	RxDepth int // of each queue: chunks that may wait for it, a power of two; default 2048, less where a slot has many queues
	TxDepth int // of each queue: buffers that may be on their way out, a power of two; default 1024
	Part    int // bytes of the arena for each slot, for frames and applications; default that of QueueConfig, or more where a slot has many queues

	// NeedTCP makes a network card that cannot steer the TCP ports of Steer one
	// that cannot steer. Else its slots have no TCP ports then.
	NeedTCP bool
	// Keep is told what will be changed in a network card, before it is, so that
	// it can be undone by another process when this process dies before Close. An error
	// of it is one of OpenQueueSet. Default nil.
	Keep func(Flows) error

	card ethtool // tests: the network card, which is no veth
}

// rxLeast is the least default of QueueSetConfig.RxDepth: what a few peers may send
// before they have heard from us.
const rxLeast = 256

// withDefaults returns c with all defaults but that of Part filled in, or says what is
// wrong with it. links is how many queues a slot receives on.
func (c QueueSetConfig) withDefaults(links int) (QueueSetConfig, error) {
	c.RxDepth = cmp.Or(c.RxDepth, max(2048/powerFrom(links), rxLeast))
	c.TxDepth = cmp.Or(c.TxDepth, 1024)
	switch {
	case c.Part < 0:
		return c, fmt.Errorf("xdp: QueueSetConfig.Part is %d: give the bytes of the arena that each port has for itself", c.Part)
	case !isDepth(c.RxDepth) || !isDepth(c.TxDepth):
		return c, fmt.Errorf("xdp: QueueSetConfig.RxDepth is %d and QueueSetConfig.TxDepth is %d: give powers of two from %d to %d", c.RxDepth, c.TxDepth, depthMin, depthMax)
	}
	return c, nil
}

// setPart returns QueueSetConfig.Part, of which receive bytes are to receive into, or its
// default if it is 0. rooms says what else must fit.
func setPart(part, receive, slots int, rooms Budget) (int, error) {
	if part == 0 { // half of what is usual is left besides chunks to receive into
		usual := defaultPart(slots)
		part = max(usual, receive+usual/2)
	}
	part = roundUp(part, hugePage)
	if err := rooms.Check((part - receive) / mem.FrameSize); err != nil {
		return 0, fmt.Errorf("xdp: QueueSetConfig.Part is %d: %w", part, err)
	}
	return part, nil
}

// receiveBudget is how many of a slot's chunks to receive into each part holds
// with queues of its own at most.
func receiveBudget(links, rxDepth int) Budget {
	return Budget{
		{Name: "FILL and RX rings", Frames: links * rxDepth, Why: "chunks ready to be received into, or received", Knob: "QueueSetConfig.RxDepth"},
		{Name: "received", Frames: rxHeld, Why: "one batch that the protocols read", Knob: "none: it is fixed"},
	}
}

// receiveLen is how much of the arena of a slot these chunks take, in bytes: the
// beginning.
func receiveLen(links, rxDepth int) int {
	return roundUp(receiveBudget(links, rxDepth).Frames()*mem.FrameSize, hugePage)
}

// A QueueSet is the queues of a device that several processes have for themselves, as the
// one sees them that has the privileges. A queue pair is a queue, one socket on it, and
// at most two processes: RX and FILL ring belong to the one that receives there,
// TX and COMPLETION ring to the one that sends there. So nothing is shared and
// nothing is locked, and what a process holds when it dies is not missing elsewhere.
// Each slot has an arena of its own.
//
// On a network card that steers flows to queues (n-tuple filters) a slot has one
// pair, on which it receives and sends. On a veth a frame arrives on the queue
// that it was sent on, so there is one for each pair of peers: see pairwise.
//
// It takes no part in moving frames, and must live as long as their slots are
// used. Its methods are for one goroutine at a time.
type QueueSet struct {
	config   QueueSetConfig
	plan     queuePlan
	mode     bpf.Mode
	base     int      // where in the arenas is what slots receive into
	parts    int      // where they send from
	arenas   []*Arena // by slot
	ownArena bool     // Close closes them
	steering *Steering
	flows    *Flows    // in a network card, or nil
	sockets  []*socket // by queue
	caps     PortCaps
	vacated  []bool // by slot
}

// queuePlan says which queues a slot uses.
type queuePlan interface {
	// queues is how many queues there must be.
	queues() int
	// of returns the queues of a slot, by the slot of the peer: the one to
	// receive on, and the one to send on.
	of(slot int) []pairQueues
}

// pairQueues is how a slot reaches one slot of the other hosts, or all.
type pairQueues struct{ receive, send int }

// OpenQueueSet opens queues of a device, in the network namespace of the calling
// thread. Its errors are those of [Open], and one that wraps ErrNoSteering when
// each slot cannot have a queue of its own there. The caller closes them.
func OpenQueueSet(c QueueSetConfig) (*QueueSet, error) {
	all, err := OpenQueueSets([]QueueSetConfig{c})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OpenQueueSets opens queues of several devices as OpenQueueSet does, for processes that
// have a slot on each: Slots and Part are the same for all. A process has one arena,
// and sends from the same part of it on any device. The caller closes the first ones
// last. Its errors are those of OpenQueueSet, or say which device differs from the first.
func OpenQueueSets(each []QueueSetConfig) (all []*QueueSet, err error) {
	at, rooms := 0, Budget{}
	for _, c := range each {
		l := &QueueSet{base: at}
		if err := l.prepare(c); err != nil {
			return nil, err
		}
		if c.Slots != each[0].Slots || c.Part != each[0].Part {
			return nil, fmt.Errorf("xdp: %s has %d slots with parts of %d bytes, and %s %d with %d: give QueueSetConfig.Slots and QueueSetConfig.Part alike", each[0].Device, each[0].Slots, each[0].Part, c.Device, c.Slots, c.Part)
		}
		at += receiveLen(len(l.plan.of(0)), l.config.RxDepth)
		rooms = append(rooms, slotBudget(l.config.TxDepth)...)
		all = append(all, l)
	}
	first := all[0]
	part, err := setPart(first.config.Part, at, first.config.Slots, rooms)
	if err != nil {
		return nil, err
	}
	first.ownArena = true
	for range first.config.Slots {
		a, err := mem.New(mem.Config{Size: part})
		if err != nil {
			return nil, errors.Join(err, first.Close())
		}
		first.arenas = append(first.arenas, a)
	}
	for _, l := range all {
		if l.config.Part, l.parts, l.arenas = part, at, first.arenas; err == nil {
			err = l.open()
		}
	}
	if err != nil {
		for _, l := range slices.Backward(all) {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	for _, l := range all {
		l.steering.device.settle()
	}
	return all, nil
}

// prepare decides which queues the slots get, and changes nothing.
func (l *QueueSet) prepare(c QueueSetConfig) error {
	c.PeerSlots = cmp.Or(c.PeerSlots, c.Slots)
	if c.Slots < 1 || c.Slots > c.PeerSlots || c.PeerSlots > slotsMax {
		return fmt.Errorf("xdp: QueueSetConfig.Slots is %d, PeerSlots is %d: give the number of ports, 1 to %d, and PeerSlots not below that", c.Slots, c.PeerSlots, slotsMax)
	}
	l.vacated = make([]bool, c.Slots)
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
	l.mode = dev.preferred(c.Mode)
	if l.plan, err = planQueues(c, dev, l.mode); err != nil {
		return err
	}
	l.config, err = c.withDefaults(len(l.plan.of(0)))
	l.config.Steer.Slots, l.config.Steer.Queues = c.PeerSlots, l.plan.queues()
	return err
}

func (l *QueueSet) open() error {
	c := &l.config
	pc, err := Config{
		Device: c.Device, Arena: l.arenas[0], Steer: c.Steer, Mode: l.mode, ZeroCopy: c.ZeroCopy,
		MTU: c.MTU, RxDepth: c.RxDepth, TxDepth: c.TxDepth,
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
	if _, ok := l.plan.(onePair); ok {
		return l.steerFlows()
	}
	return nil
}

// TCPBlock returns the range of TCP ports of the first of some peers, each of which
// has as many: a power of two, and base a multiple of it, so that one filter of a
// network card matches them all.
func TCPBlock(peers int) (base uint16, ports int) {
	const all = 1 << 12 // the largest such range that is left by programs of the kernel
	return 1<<16 - all, all / powerFrom(peers)
}

// sendQueue returns the queue to send on for frames to arrive at the peer's
// queue of the given number. On a cable that is up to the peer's network card.
// A veth that has no XDP program in driver mode leaves in a frame the queue
// that it was sent on, which its peer reads as the one that it was received on,
// and that counts from 1, since 0 stands for none.
func sendQueue(queue int, driver string, mode bpf.Mode) int {
	if driver == "veth" && mode == bpf.Generic {
		return queue + 1
	}
	return queue
}

// planQueues decides which queues the slots get.
func planQueues(c QueueSetConfig, dev *device, mode bpf.Mode) (queuePlan, error) {
	var plan queuePlan = onePair(c.Slots)
	if dev.driver == "veth" && c.card == nil {
		if c.Hops < 0 {
			return nil, &Error{Device: dev.name, Reason: ErrNoSteering, Detail: "it is a veth, and what it is joined to is not known",
				Remedy: "let the ranks share one queue"}
		}
		plan = pairwise{peers: c.PeerSlots, shift: sendQueue(0, dev.driver, mode) + c.Hops}
	} else if err := checkFlows(&c); err != nil {
		return nil, err
	}
	if n := plan.queues(); n > dev.queues {
		return nil, &Error{Device: dev.name, Reason: ErrNoSteering, Detail: fmt.Sprintf("%d queues are needed, it has %d", n, dev.queues),
			Remedy: fmt.Sprintf("add queues (ethtool -L %s combined %d), use fewer ranks, or let them share one queue", dev.name, n)}
	}
	return plan, nil
}

// onePair are a queue for each slot: the card finds the receiver's.
type onePair int

func (n onePair) queues() int              { return int(n) }
func (n onePair) of(slot int) []pairQueues { return []pairQueues{{slot, slot}} }

// pairwise are the queues of a device without steering, where a frame that is sent on
// queue q+shift arrives at queue q: one for each slot that sends and slot that
// receives. With fewer, two senders of a host would share a COMPLETION ring, or
// two receivers a FILL ring.
type pairwise struct{ peers, shift int }

func (g pairwise) queues() int { return g.peers*g.peers + g.shift }

func (g pairwise) of(slot int) []pairQueues {
	all := make([]pairQueues, g.peers)
	for peer := range all {
		all[peer] = pairQueues{receive: peer*g.peers + slot, send: slot*g.peers + peer + g.shift}
	}
	return all
}

// openSockets makes a socket for each queue.
func (l *QueueSet) openSockets(c Config) error {
	dev, mode := l.steering.device, l.steering.mode
	d := depths{fill: c.RxDepth, completion: c.TxDepth, rx: c.RxDepth, tx: c.TxDepth}
	links := len(l.plan.of(0))
	senders, receivers := l.users()
	for queue := range l.plan.queues() {
		umem, err := overlay(senders[queue], receivers[queue], l.parts)
		if err != nil {
			return err
		}
		s, err := newSocket(dev.name, mem.Over(umem), d)
		_ = unix.Munmap(umem) // the kernel holds the pages
		if err != nil {
			return err
		}
		l.sockets = append(l.sockets, s)
		if err := s.bind(dev, queue, c.bindings(dev, mode), bindTries); err != nil {
			return err
		}
		s.tune(d.tx)
		if l.config.BusyPoll {
			if err := s.busyPoll(dev.name); err != nil {
				return err
			}
		}
	}
	var err error
	l.caps, err = capsOf(c, dev, mode, l.sockets[0])
	l.caps.RxDepth *= links
	return err
}

// users returns the arenas of the sender and the receiver on each queue, or nil
// for none, where a host has fewer slots than others.
func (l *QueueSet) users() (senders, receivers []*Arena) {
	n := l.plan.queues()
	senders, receivers = make([]*Arena, n), make([]*Arena, n)
	for slot, arena := range l.arenas {
		for _, at := range l.plan.of(slot) {
			senders[at.send], receivers[at.receive] = arena, arena
		}
	}
	return senders, receivers
}

// register has frames steered into the sockets of those that they are for.
func (l *QueueSet) register() error {
	for slot := range l.config.Slots {
		for _, at := range l.plan.of(slot) {
			if err := l.steering.program.Register(at.receive, slot, l.sockets[at.receive].fd); err != nil {
				return err
			}
		}
	}
	return nil
}

// Caps says what a port on a slot can do.
func (l *QueueSet) Caps() PortCaps { return l.caps }

// Steering returns what gives frames to the slots.
func (l *QueueSet) Steering() *Steering { return l.steering }

// Stray is Steering.Stray.
func (l *QueueSet) Stray() uint64 { return l.steering.Stray() }

// Slot describes a slot as Queue.Slot does.
func (l *QueueSet) Slot(number int) Slot {
	steer := l.config.Steer
	s := Slot{
		Number: number, Slots: l.config.Slots, Port: steer.PortBase + uint16(number),
		TCPBase: steer.TCPBase + uint16(number*steer.TCPPorts), TCPPorts: steer.TCPPorts,
		Device: l.config.Device, Caps: l.caps, RxDepth: l.config.RxDepth, TxDepth: l.config.TxDepth,
		Part: l.config.Part, BusyPoll: l.config.BusyPoll, Base: l.base, Parts: l.parts, ArenaFD: l.arenas[number].FD(),
	}
	for _, at := range l.plan.of(number) {
		s.Pairs = append(s.Pairs, QueuePair{ReceiveFD: l.sockets[at.receive].fd, SendFD: l.sockets[at.send].fd})
	}
	return s
}

// Vacate makes nothing more arrive at a slot whose process has ended. What that
// had was its own. Vacating twice is harmless. It fails where the kernel does not let go
// of a socket.
func (l *QueueSet) Vacate(slot int) error {
	if l.vacated[slot] {
		return nil
	}
	l.vacated[slot] = true
	var errs []error
	for _, at := range l.plan.of(slot) {
		errs = append(errs, l.steering.program.Unregister(at.receive, slot))
	}
	return errors.Join(errs...)
}

// Close closes the sockets of all slots and removes the program and filters. What the
// processes of the slots send afterwards goes nowhere.
func (l *QueueSet) Close() error {
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
	if l.ownArena {
		for _, a := range l.arenas {
			errs = append(errs, a.Close())
		}
	}
	l.arenas = nil
	return errors.Join(errs...)
}
