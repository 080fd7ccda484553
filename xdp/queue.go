package xdp

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
)

// QueueConfig describes the queues of a device that many processes share. Device,
// Slots and Steer.PortBase are needed; the rest has defaults. Steer.PortBase is
// the UDP port of slot 0, and each slot has the one after that of the slot
// before it.
type QueueConfig struct {
	Device string // name of the network device
	Queues int    // how many of its queues to receive on, from 0; default all: see Config.Queues
	Slots  int    // how many ports there can be, 1 to 1024
	Steer  bpf.Config

	Mode     bpf.Mode // as in Config
	ZeroCopy ZeroCopy
	MTU      int

	BusyPoll bool // as in Config

	// Late leaves the sockets unbound until Queue.Bind is called, which is when the
	// slots are opened: see MapsBound. Default: they are bound at once.
	Late bool

	RxDepth int // of each slot and queue: chunks that may wait for it, a power of two; default 512
	TxDepth int // of each slot: buffers that may be on their way out, a power of two; default 1024
	Frames  int // chunks to receive into, for all slots together; default what Budget says
	Part    int // bytes of the arena for each slot, for frames to send and applications; default 64 MiB, or 32 MiB with more than four slots
}

// rxDepthShared is less than a port has that is alone: all chunks circulate, or
// else one slot could take what another needs, and those that fit into the caches
// are faster. It holds what a few peers may send before they have heard from us.
const rxDepthShared = 512

// sharedDepthMax is the largest FILL or COMPLETION ring of a shared queue.
const sharedDepthMax = 1 << 22

func isPower(n int) bool { return n > 0 && bits.OnesCount(uint(n)) == 1 }

// powerFrom returns the least power of two that is not below n.
func powerFrom(n int) int { return 1 << bits.Len(uint(n-1)) }

// WithDefaults returns c with all defaults filled in, or says what is wrong
// with it.
func (c QueueConfig) WithDefaults() (QueueConfig, error) {
	c.Queues = cmp.Or(c.Queues, 1)
	c.RxDepth = cmp.Or(c.RxDepth, rxDepthShared)
	c.TxDepth = cmp.Or(c.TxDepth, 1024)
	c.Part = cmp.Or(c.Part, defaultPart(c.Slots))
	switch {
	case c.Queues < 1 || c.Queues > queuesMax:
		return c, fmt.Errorf("xdp: QueueConfig.Queues is %d: give the number of queues to receive on, 1 to %d", c.Queues, queuesMax)
	case c.Slots < 1 || c.Slots > slotsMax:
		return c, fmt.Errorf("xdp: QueueConfig.Slots is %d: give the number of ports, 1 to %d", c.Slots, slotsMax)
	case c.Part < 0:
		return c, fmt.Errorf("xdp: QueueConfig.Part is %d: give the bytes of the arena that each port has for itself", c.Part)
	case !isDepth(c.RxDepth) || !isDepth(c.TxDepth):
		return c, fmt.Errorf("xdp: QueueConfig.RxDepth is %d and QueueConfig.TxDepth is %d: give powers of two from %d to %d", c.RxDepth, c.TxDepth, depthMin, depthMax)
	}
	c.Part = roundUp(c.Part, hugePage)
	c.Steer.Slots = c.Slots
	c.Steer.Queues = max(c.Steer.Queues, c.Queues)
	b := c.Budget()
	c.Frames = cmp.Or(c.Frames, b.Frames())
	if err := b.Check(c.Frames); err != nil {
		return c, fmt.Errorf("xdp: QueueConfig.Frames is %d: %w", c.Frames, err)
	}
	if err := slotBudget(c.TxDepth).Check(c.Part / mem.FrameSize); err != nil {
		return c, fmt.Errorf("xdp: QueueConfig.Part is %d: %w", c.Part, err)
	}
	return c, nil
}

// defaultPart is less where there are many: all of the arena is cleared and
// pinned when the queue is opened, which is most of the time that a job of many
// ranks takes to start.
func defaultPart(slots int) int {
	if slots > 4 {
		return 32 << 20
	}
	return mem.DefaultSize
}

// Budget is how many of the shared chunks each part holds at most. While they are
// enough for all, a slot whose process does not look at what arrives cannot
// take those away that others need.
func (c QueueConfig) Budget() Budget {
	var b Budget
	for i := range c.Slots {
		b = append(b,
			mem.Term{Name: fmt.Sprintf("RX rings of slot %d", i), Frames: c.Queues * c.RxDepth, Why: "chunks that were received for it", Knob: "QueueConfig.RxDepth, QueueConfig.Queues"},
			mem.Term{Name: fmt.Sprintf("received by slot %d", i), Frames: rxHeld, Why: "one batch that the protocols read", Knob: "none: it is fixed"},
			mem.Term{Name: fmt.Sprintf("given back by slot %d", i), Frames: slab, Why: "they gather in slabs", Knob: "none: it is fixed"})
	}
	return append(b, mem.Term{Name: "FILL rings", Frames: c.Queues * fillLeast, Why: "ready for a burst when all else is taken", Knob: "none: it is fixed"})
}

// fillLeast is how many chunks of each queue are ready to receive into when every
// slot has as many as it may.
const fillLeast = 512

// slotBudget is how many of the chunks in a slot's own part each part of it holds at
// most.
func slotBudget(txDepth int) Budget {
	return Budget{
		{Name: "TX ring", Frames: txDepth, Why: "on their way out", Knob: "QueueConfig.TxDepth"},
		{Name: "to send", Frames: rxHeld, Why: "one batch that the protocols write", Knob: "none: it is fixed"},
		{Name: "reserve to send", Frames: fillReserve, Why: "acknowledgements", Knob: "none: it is fixed"},
	}
}

// Queue is the queues of a device that many processes share, as the one sees it
// that has the privileges: it makes the arena and for each slot a socket on each
// queue, for a card may give any frame to any queue, and passes their descriptors
// on. All send on the first queue. It takes no part in moving frames, and must live
// as long as its slots are used. Its methods are for one goroutine at a time.
type Queue struct {
	config      QueueConfig
	layout      layout
	arena       *Arena
	ownArena    bool // Close closes it
	steering    *Steering
	shared      []*socket   // by queue: have the FILL and COMPLETION rings and no slot
	sockets     [][]*socket // by slot and queue; nil once it was vacated
	liveness    livenessFile
	participant *participant
	caps        PortCaps
}

// OpenQueue opens the queues of a device, in the network namespace of the calling
// thread. The errors are those of [Open]. The caller closes it.
func OpenQueue(c QueueConfig) (*Queue, error) {
	all, err := OpenQueues([]QueueConfig{c})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OpenQueues opens the queues of several devices as OpenQueue does, for processes that
// have a slot on each: Slots and Part are the same for all. The arena is one, in which
// a process has one part, that it sends from on any device; what is received into, and
// what else the processes share, each device has for itself. The caller closes the
// first one last. Its errors are those of OpenQueue, or say which device differs from the
// first.
func OpenQueues(each []QueueConfig) (all []*Queue, err error) {
	l, rooms := layout{}, Budget{}
	for _, c := range each {
		if c, err = c.onDevice(); err != nil {
			return nil, err
		}
		if rooms = append(rooms, slotBudget(c.TxDepth)...); len(all) > 0 && (c.Slots != l.slots || c.Part != l.part) {
			return nil, fmt.Errorf("xdp: %s has %d slots with parts of %d bytes, and %s %d with %d: give QueueConfig.Slots and QueueConfig.Part alike", each[0].Device, l.slots, l.part, c.Device, c.Slots, c.Part)
		}
		l = layout{c.Slots, c.TxDepth, c.Frames, c.Part, l.parts, 0}
		l.parts = l.end()
		all = append(all, &Queue{config: c, layout: l, liveness: livenessFile{-1}})
	}
	if err := rooms.Check(l.part / mem.FrameSize); err != nil {
		return nil, fmt.Errorf("xdp: QueueConfig.Part is %d: %w", l.part, err)
	}
	arena, err := mem.New(mem.Config{Size: l.size()})
	if err != nil {
		return nil, err
	}
	for i, q := range all {
		q.arena, q.ownArena, q.layout.parts = arena, i == 0, l.parts
	}
	for _, q := range all {
		if err == nil {
			err = q.open()
		}
	}
	if err != nil {
		for _, q := range slices.Backward(all) {
			err = errors.Join(err, q.Close())
		}
		return nil, err
	}
	for _, q := range all {
		if !q.config.Late {
			q.steering.device.settle()
		}
	}
	return all, nil
}

// onDevice returns c with all defaults filled in, for the queues that the device has.
func (c QueueConfig) onDevice() (QueueConfig, error) {
	if c.Queues == 0 {
		dev, err := lookup(c.Device)
		if err != nil {
			return c, err
		}
		c.Queues = min(dev.receive, queuesMax)
	}
	return c.WithDefaults()
}

// portConfig is the configuration of a port that is like a slot.
func (q *Queue) portConfig() Config {
	c := &q.config
	return Config{
		Device: c.Device, Queues: c.Queues, Arena: q.arena, Steer: c.Steer, Mode: c.Mode,
		ZeroCopy: c.ZeroCopy, MTU: c.MTU, RxDepth: c.RxDepth, TxDepth: c.TxDepth,
	}
}

func (q *Queue) open() (err error) {
	c, err := q.portConfig().WithDefaults()
	if err != nil {
		return err
	}
	if q.steering, err = NewSteering(c); err != nil {
		return err
	}
	if q.liveness, err = newLivenessFile(); err != nil {
		return err
	}
	r, err := sign(q.liveness.fd, q.config.Slots)
	if err != nil {
		return err
	}
	if err := q.makeShared(r); err != nil {
		return err
	}
	if err := q.makeSockets(); err != nil {
		return err
	}
	if q.config.Late {
		return nil
	}
	return q.bind()
}

// makeShared makes the sockets with the rings that all share, the first of which
// has the arena as its UMEM.
func (q *Queue) makeShared(r livenessFile) error {
	d := q.depths()
	d.rx, d.tx = depthMin, depthMin
	first, err := newSocket(q.steering.device.name, q.arena, d)
	if err != nil {
		r.close()
		return err
	}
	q.shared = append(q.shared, first)
	q.participant = newParticipant(newSlotTable(q.arena, q.layout), r, q.config.Slots, &first.rings.completion, &first.rings.fill)
	q.begin(0)
	d.completion = depthMin
	for queue := 1; queue < q.config.Queues; queue++ {
		s, err := newSocketBeside(d)
		if err != nil {
			return err
		}
		q.shared = append(q.shared, s)
		if s.rings, err = mapRings(s.fd, d); err != nil {
			return fmt.Errorf("xdp: cannot map the rings of queue %d: %w", queue, err)
		}
		q.participant.fills = append(q.participant.fills, &s.rings.fill)
		q.begin(queue)
	}
	return nil
}

// begin gives a queue its share of the frames that the kernel has at the beginning. A card with zero-copy
// may take all of them when the socket is bound.
func (q *Queue) begin(queue int) {
	c, first := q.portConfig(), q.config.Frames
	if c.bindings(q.steering.device, q.steering.mode)[0]&unix.XDP_COPY != 0 {
		first = min(first, q.config.Queues*beginQueue+q.config.Slots*beginSlot)
	}
	*q.participant.slotTable.begun = uint32(first)
	fill, end := q.participant.fills[queue], uint32(0)
	for i := queue; i < first; i += q.config.Queues {
		end, _ = fill.put(end, q.participant.slotTable.frame(i))
	}
	fill.show(end)
}

// depths are the sizes of the rings of a slot.
func (q *Queue) depths() depths {
	return depths{
		// What was sent stays in the COMPLETION ring until all slots have seen it.
		fill: powerFrom(q.config.Frames), completion: powerFrom(2 * q.config.Slots * q.config.TxDepth),
		rx: q.config.RxDepth, tx: q.config.TxDepth,
	}
}

// makeSockets makes the slots' sockets. All send on the first queue.
func (q *Queue) makeSockets() error {
	for slot := range q.config.Slots {
		q.sockets = append(q.sockets, nil)
		d := depths{rx: q.config.RxDepth, tx: q.config.TxDepth}
		for range q.config.Queues {
			s, err := newSocketBeside(d)
			if err != nil {
				return fmt.Errorf("xdp: slot %d of %s: %w", slot, q.config.Device, err)
			}
			q.sockets[slot] = append(q.sockets[slot], s)
			if q.config.Late { // for Vacate, which comes when it is bound
				if _, err := mapRx(s, d.rx); err != nil {
					return fmt.Errorf("xdp: cannot map the RX ring of slot %d: %w", slot, err)
				}
			}
			d.tx = depthMin
		}
	}
	return nil
}

// bind binds all sockets to their queues, and has frames steered into those of the
// slots.
func (q *Queue) bind() (err error) {
	c := q.portConfig()
	dev, mode, first := q.steering.device, q.steering.mode, q.shared[0]
	if err := first.bind(dev, 0, c.bindings(dev, mode), bindTries); err != nil {
		return err
	}
	if q.caps, err = capsOf(c, dev, mode, first); err != nil {
		return err
	}
	for queue, s := range q.shared[1:] {
		if err := s.bindBeside(first, dev, queue+1); err != nil {
			return err
		}
	}
	for slot, sockets := range q.sockets {
		for queue, s := range sockets {
			if err := s.bindBeside(q.shared[queue], dev, queue); err != nil {
				return fmt.Errorf("xdp: slot %d: %w", slot, err)
			}
			s.tune(q.config.TxDepth)
			if q.config.BusyPoll {
				if err := s.busyPoll(dev.name); err != nil {
					return err
				}
			}
			if err := q.steering.program.Register(queue, slot, s.fd); err != nil {
				return err
			}
		}
	}
	return nil
}

// Slots returns how many slots there are.
func (q *Queue) Slots() int { return q.config.Slots }

// Caps says what a port on a slot can do.
func (q *Queue) Caps() PortCaps { return q.caps }

// Steering returns what gives frames to the slots.
func (q *Queue) Steering() *Steering { return q.steering }

// Stray is Steering.Stray.
func (q *Queue) Stray() uint64 { return q.steering.Stray() }

// Slot describes a slot, with the descriptors as they are in this process. They
// stay the queue's, and are not inherited: they can be passed on in the order of
// Slot.FDs, and Slot.At tells where they went.
func (q *Queue) Slot(number int) Slot {
	d := q.depths()
	steer := q.config.Steer
	s := Slot{
		Number: number, Slots: q.config.Slots, Port: steer.PortBase + uint16(number),
		TCPBase: steer.TCPBase + uint16(number*steer.TCPPorts), TCPPorts: steer.TCPPorts,
		Device: q.config.Device, Caps: q.caps, RxDepth: d.rx, TxDepth: d.tx, Fill: d.fill, Completion: d.completion,
		Frames: q.config.Frames, Part: q.config.Part, Base: q.layout.base, Parts: q.layout.parts, Late: q.config.Late, BusyPoll: q.config.BusyPoll, ArenaFD: q.arena.FD(), LivenessFD: q.liveness.fd,
	}
	for queue, own := range q.sockets[number] {
		s.Queues = append(s.Queues, SlotQueue{RingsFD: q.shared[queue].fd, SocketFD: own.fd})
	}
	return s
}

// Vacate gives back to the others what the process of a slot had, which has
// ended: frames in its RX ring and frames that it held. Nothing more arrives at
// the slot. Vacating twice is harmless. It fails with ErrSlotTaken, and does
// nothing, while some process has the slot.
func (q *Queue) Vacate(slot int) error {
	sockets := q.sockets[slot]
	if sockets == nil {
		return nil
	}
	if !q.participant.liveness.absent(slot) {
		return fmt.Errorf("xdp: slot %d: %w", slot, ErrSlotTaken)
	}
	q.sockets[slot] = nil
	var errs []error
	for queue := range sockets {
		errs = append(errs, q.steering.program.Unregister(queue, slot))
	}
	// Packets that were being delivered when the socket was taken out of the
	// table are delivered after this: it waits for what runs on all processors.
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
	errs = append(errs, guarded(func() error { return q.takeBack(slot, sockets) }))
	for _, s := range sockets {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

func (q *Queue) takeBack(slot int, sockets []*socket) error {
	g := q.participant.slotTable
	for _, s := range sockets {
		if s.rings == nil {
			if _, err := mapRx(s, q.config.RxDepth); err != nil {
				return fmt.Errorf("xdp: cannot map the RX ring of slot %d: %w", slot, err)
			}
		}
		g.markReceived(&s.rings.rx, g.held[slot])
	}
	q.participant.giveAll(g.heldBy(slot), g.held[slot])
	return nil
}

// Widen gives the kernel more frames to receive into where it has few, of those that it has never had, and
// reports whether there are such. The slots do so as they receive. But one that does not look may have
// all that circulate in its RX ring, and then another one that sleeps is not woken: so
// the maker of the queue does it now and then.
func (q *Queue) Widen() (more bool) {
	_ = guarded(func() error { // of memory that is gone there is no more
		more = q.participant.widen()
		return nil
	})
	return more
}

// Close closes the sockets of all slots and removes the program. What the
// processes of the slots send afterwards goes nowhere.
func (q *Queue) Close() error {
	var errs []error
	if q.steering != nil {
		errs = append(errs, q.steering.Close())
	}
	for _, sockets := range append(q.sockets, q.shared) {
		for _, s := range sockets {
			errs = append(errs, s.close())
		}
	}
	q.sockets, q.shared = nil, nil
	if q.participant != nil {
		q.participant.liveness.close()
		q.participant = nil
	}
	if q.liveness.fd >= 0 {
		q.liveness.close()
		q.liveness.fd = -1
	}
	if q.ownArena {
		errs = append(errs, q.arena.Close())
	}
	return errors.Join(errs...)
}
