package xdp

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

// QueueConfig describes a queue of a device that many processes share. Device,
// Seats and Steer.PortBase are needed; the rest has defaults. Steer.PortBase is
// the UDP port of seat 0, and each seat has the one after that of the seat
// before it.
type QueueConfig struct {
	Device string // name of the network device
	Queue  int    // its queue, from 0
	Seats  int    // how many ports there can be, 1 to 1024
	Steer  bpf.Config

	Mode     bpf.Mode // as in Config
	ZeroCopy ZeroCopy
	MTU      int

	RxDepth int // of each seat: chunks that may wait for it, a power of two; default 512
	TxDepth int // of each seat: buffers that may be on their way out, a power of two; default 1024
	Frames  int // chunks to receive into, for all seats together; default what Budget says
	Part    int // bytes of the arena for each seat, for frames to send and applications; default 64 MiB, or 32 MiB with more than four seats
}

// rxDepthShared is less than a port has that is alone: all chunks circulate, or
// else one seat could take what another needs, and those that fit into the caches
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
	for _, d := range []struct {
		field *int
		value int
	}{{&c.RxDepth, rxDepthShared}, {&c.TxDepth, 1024}, {&c.Part, defaultPart(c.Seats)}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	switch {
	case c.Seats < 1 || c.Seats > seatsMax:
		return c, fmt.Errorf("xdp: QueueConfig.Seats is %d: give the number of ports, 1 to %d", c.Seats, seatsMax)
	case c.Part < 0:
		return c, fmt.Errorf("xdp: QueueConfig.Part is %d: give the bytes of the arena that each port has for itself", c.Part)
	case !isDepth(c.RxDepth) || !isDepth(c.TxDepth):
		return c, fmt.Errorf("xdp: QueueConfig.RxDepth is %d and QueueConfig.TxDepth is %d: give powers of two from %d to %d", c.RxDepth, c.TxDepth, depthMin, depthMax)
	}
	c.Part = roundUp(c.Part, hugePage)
	c.Steer.Slots = c.Seats
	c.Steer.Queues = max(c.Steer.Queues, c.Queue+1)
	b := c.Budget()
	if c.Frames == 0 {
		c.Frames = b.Frames()
	}
	if err := b.Check(c.Frames); err != nil {
		return c, fmt.Errorf("xdp: QueueConfig.Frames is %d: %w", c.Frames, err)
	}
	if err := seatBudget(c.TxDepth).Check(c.Part / mem.FrameSize); err != nil {
		return c, fmt.Errorf("xdp: QueueConfig.Part is %d: %w", c.Part, err)
	}
	return c, nil
}

// defaultPart is less where there are many: all of the arena is cleared and
// pinned when the queue is opened, which is most of the time that a job of many
// ranks takes to start.
func defaultPart(seats int) int {
	if seats > 4 {
		return 32 << 20
	}
	return 64 << 20
}

// Budget says who holds how many of the shared chunks at most. While they are
// enough for all, a seat whose process does not look at what arrives cannot
// take those away that others need.
func (c QueueConfig) Budget() mem.Budget {
	var b mem.Budget
	for i := range c.Seats {
		b = append(b,
			mem.Term{Name: fmt.Sprintf("RX ring of seat %d", i), Frames: c.RxDepth, Why: "chunks that were received for it", Knob: "QueueConfig.RxDepth"},
			mem.Term{Name: fmt.Sprintf("received by seat %d", i), Frames: rxHeld, Why: "one batch that the protocols read", Knob: "none: it is fixed"},
			mem.Term{Name: fmt.Sprintf("given back by seat %d", i), Frames: slab, Why: "they gather in slabs", Knob: "none: it is fixed"})
	}
	return append(b, mem.Term{Name: "FILL ring", Frames: fillLeast, Why: "ready for a burst when all else is taken", Knob: "none: it is fixed"})
}

// fillLeast is how many chunks are ready to receive into when every seat has
// as many as it may.
const fillLeast = 512

// seatBudget says who holds how many of the chunks in a seat's own part at
// most.
func seatBudget(txDepth int) mem.Budget {
	return mem.Budget{
		{Name: "TX ring", Frames: txDepth, Why: "on their way out", Knob: "QueueConfig.TxDepth"},
		{Name: "to send", Frames: rxHeld, Why: "one batch that the protocols write", Knob: "none: it is fixed"},
		{Name: "reserve to send", Frames: fillReserve, Why: "acknowledgements", Knob: "none: it is fixed"},
	}
}

// Queue is a queue of a device that many processes share, as the one sees it
// that has the privileges: it makes the arena and a socket for each seat, and
// passes their descriptors on. It takes no part in moving frames, and must live
// as long as its seats are used. Its methods are for one goroutine at a time.
type Queue struct {
	config   QueueConfig
	layout   layout
	arena    *mem.Arena
	steering *Steering
	first    *socket   // has the FILL and COMPLETION rings and no seat
	sockets  []*socket // by seat; nil once it was vacated
	roll     roll
	member   *member
	caps     fabric.PortCaps
}

// OpenQueue opens a queue of a device, in the network namespace of the calling
// thread. The errors are those of [Open]. The caller closes it.
func OpenQueue(c QueueConfig) (*Queue, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	q := &Queue{config: c, layout: layout{c.Seats, c.TxDepth, c.Frames, c.Part}, roll: roll{-1}}
	if q.arena, err = mem.New(mem.Config{Size: q.layout.size()}); err != nil {
		return nil, err
	}
	if err := q.open(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.steering.device.settle()
	return q, nil
}

// portConfig is the configuration of a port that is like a seat.
func (q *Queue) portConfig() Config {
	c := &q.config
	return Config{
		Device: c.Device, Queue: c.Queue, Arena: q.arena, Steer: c.Steer, Mode: c.Mode,
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
	dev, mode := q.steering.device, q.steering.mode
	d := q.depths()
	if q.first, err = newSocket(dev.name, q.arena, depths{fill: d.fill, completion: d.completion, rx: depthMin, tx: depthMin}); err != nil {
		return err
	}
	if q.roll, err = newRoll(); err != nil {
		return err
	}
	r, err := sign(q.roll.fd, q.config.Seats)
	if err != nil {
		return err
	}
	g := newLedger(q.arena, q.layout)
	q.member = newMember(g, r, q.config.Seats, q.first.rings)
	end := uint32(0)
	for i := range q.config.Frames {
		end = q.member.fill.put(end, g.frame(i))
	}
	q.member.fill.show(end)
	if err := q.first.bind(dev, c.Queue, c.bindings(dev, mode), bindPatience); err != nil {
		return err
	}
	if q.caps, err = capsOf(c, dev, mode, q.first); err != nil {
		return err
	}
	return q.openSockets(dev, d)
}

// depths are the sizes of the rings of a seat.
func (q *Queue) depths() depths {
	return depths{
		// What was sent stays in the COMPLETION ring until all seats have seen it.
		fill: powerFrom(q.config.Frames), completion: powerFrom(2 * q.config.Seats * q.config.TxDepth),
		rx: q.config.RxDepth, tx: q.config.TxDepth,
	}
}

// openSockets makes the seats' sockets and has frames steered into them.
func (q *Queue) openSockets(dev *device, d depths) error {
	for i := range q.config.Seats {
		s, err := newSocketBeside(q.first, depths{rx: d.rx, tx: d.tx})
		if err != nil {
			return fmt.Errorf("xdp: seat %d of %s: %w", i, dev.name, err)
		}
		q.sockets = append(q.sockets, s)
		if err := s.bindBeside(q.first, dev, q.config.Queue); err != nil {
			return fmt.Errorf("xdp: seat %d: %w", i, err)
		}
		s.tune(d.tx)
		if err := q.steering.program.Register(q.config.Queue, i, s.fd); err != nil {
			return err
		}
	}
	return nil
}

// Seats returns how many seats there are.
func (q *Queue) Seats() int { return q.config.Seats }

// Caps says what a port on a seat can do.
func (q *Queue) Caps() fabric.PortCaps { return q.caps }

// Steering returns what gives frames to the seats.
func (q *Queue) Steering() *Steering { return q.steering }

// Seat describes a seat, with the descriptors as they are in this process. They
// stay the queue's, and are not inherited: they can be passed on in the order of
// Seat.FDs, and Seat.At tells where they went.
func (q *Queue) Seat(number int) Seat {
	d := q.depths()
	steer := q.config.Steer
	return Seat{
		Number: number, Seats: q.config.Seats, Port: steer.PortBase + uint16(number),
		TCPBase: steer.TCPBase + uint16(number*steer.TCPPorts), TCPPorts: steer.TCPPorts,
		Device: q.config.Device, Caps: q.caps, RxDepth: d.rx, TxDepth: d.tx, Fill: d.fill, Completion: d.completion,
		Frames: q.config.Frames, Part: q.config.Part,
		ArenaFD: q.arena.FD(), RollFD: q.roll.fd, RingsFD: q.first.fd, SocketFD: q.sockets[number].fd,
	}
}

// Vacate gives back to the others what the process of a seat had, which has
// ended: frames in its RX ring and frames that it held. Nothing more arrives at
// the seat. Vacating twice is harmless. It fails with ErrSeatTaken, and does
// nothing, while some process has the seat.
func (q *Queue) Vacate(seat int) error {
	s := q.sockets[seat]
	if s == nil {
		return nil
	}
	if !q.member.roll.absent(seat) {
		return fmt.Errorf("xdp: seat %d: %w", seat, ErrSeatTaken)
	}
	q.sockets[seat] = nil
	err := q.steering.program.Unregister(q.config.Queue, seat)
	// Packets that were being delivered when the socket was taken out of the
	// table are delivered after this: it waits for what runs on all processors.
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
	return errors.Join(err, q.takeBack(seat, s), s.close())
}

// MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

func (q *Queue) takeBack(seat int, s *socket) error {
	rx, err := mapRx(s, q.config.RxDepth)
	if err != nil {
		return fmt.Errorf("xdp: cannot map the RX ring of seat %d: %w", seat, err)
	}
	g := q.member.ledger
	rx.refresh()
	for rx.ours != rx.theirs {
		g.mark(g.held[seat], rx.pop().Addr)
	}
	rx.publish()
	q.member.give(g.heldBy(seat), g.held[seat])
	return nil
}

// Close closes the sockets of all seats and removes the program. What the
// processes of the seats send afterwards goes nowhere.
func (q *Queue) Close() error {
	var errs []error
	if q.steering != nil {
		errs = append(errs, q.steering.Close())
	}
	for i, s := range q.sockets {
		if s != nil {
			errs = append(errs, s.close())
		}
		q.sockets[i] = nil
	}
	if q.first != nil {
		errs = append(errs, q.first.close())
		q.first = nil
	}
	if q.member != nil {
		q.member.roll.close()
		q.member = nil
	}
	if q.roll.fd >= 0 {
		q.roll.close()
		q.roll.fd = -1
	}
	return errors.Join(append(errs, q.arena.Close())...)
}
