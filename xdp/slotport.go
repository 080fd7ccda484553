package xdp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// MapArena maps the arena of the slot's queue into this process. What it
// allocates is of the slot's own part. It owns Slot.ArenaFD from now on when
// the error is nil; the caller closes it.
func (s *Slot) MapArena() (*Arena, error) {
	if len(s.Pairs) > 0 {
		own := s.sendPart()
		return mem.MapPart(s.ArenaFD, s.Part, own, own, mem.Part{Len: int(own.Start)})
	}
	l := s.layout()
	return mem.MapPart(s.ArenaFD, l.size(), l.partOf(s.Number), l.partOf(s.Number), l.common())
}

// OpenSlot opens a port on a slot of shared queues. arena is that of
// Slot.MapArena and must outlive the port. pool are frames of it that ports on several
// devices share, as many as their Slot.ToSend together, which the caller keeps; nil
// stands for a pool of the port's own. It needs no privilege. With track every move of
// a frame to send is checked.
//
// The port owns the other descriptors of the slot from now on, also when there
// is an error. Close does not give the slot free: what arrives for it fills its
// RX ring until [Queue.Vacate] is called, usually when the process has ended.
//
// Buffers to send must lie in the part of the arena that is the slot's own.
func OpenSlot(s Slot, arena *Arena, pool *Pool, track bool) (FramePort, error) {
	f := &portSet{poll: -1}
	if n := len(s.Queues); n > 1 { // the slots divide the queues among them
		f.home = 1 + s.Number%n
	}
	for _, q := range s.Queues {
		p := &Port{sock: &socket{fd: q.SocketFD}, arena: arena, caps: s.Caps}
		p.out = p.sock
		f.ports = append(f.ports, p)
	}
	err := f.openSlot(&s, arena, pool, track)
	_ = unix.Close(s.LivenessFD)
	for _, q := range s.Queues {
		_ = unix.Close(q.RingsFD)
	}
	if err != nil {
		_ = f.Close() // the reason is what counts
		return nil, err
	}
	if len(f.ports) == 1 {
		return tagging(f.ports[0]), nil
	}
	return tagging(f), nil
}

func (f *portSet) openSlot(s *Slot, arena *Arena, pool *Pool, track bool) error {
	if err := s.check(); err != nil {
		return err
	}
	l := s.layout()
	if arena.Len() < l.size() {
		return fmt.Errorf("xdp: slot %d needs the arena of its queues, which Slot.MapArena maps", s.Number)
	}
	unix.CloseOnExec(s.ArenaFD) // the descriptors were inherited
	d := depths{fill: s.Fill, completion: s.Completion, rx: s.RxDepth, tx: s.TxDepth}
	for i, q := range s.Queues {
		if i > 0 {
			d.completion, d.tx = depthMin, depthMin
		}
		p := f.ports[i]
		unix.CloseOnExec(p.sock.fd)
		p.from, p.span = l.partOf(s.Number).Start, mem.Addr(s.Part)
		var err error
		if p.sock.rings, err = mapSlot(q.RingsFD, q.SocketFD, d); err != nil {
			return fmt.Errorf("xdp: cannot map the rings of slot %d of %s: %w", s.Number, s.Device, err)
		}
		p.rings = p.sock.rings
	}
	if err := f.join(s, pool, track); err != nil {
		return err
	}
	if s.Late {
		caps, err := meetingOf(arena, l).await(s.Number)
		if err == nil && !s.sound(caps) {
			err = s.wrong("MTU", caps.MTU)
		}
		if err != nil {
			return err
		}
		for _, p := range f.ports {
			p.caps = caps
		}
	}
	f.startBusyPoll(s)
	if len(f.ports) == 1 {
		return nil
	}
	return f.watch()
}

// join makes the ports of f, whose rings are mapped, take part in the shared queues:
// as one participant with one pool.
func (f *portSet) join(s *Slot, pool *Pool, track bool) error {
	first := f.ports[0]
	if err := first.takePool(s, pool, track); err != nil {
		return err
	}
	g := newSlotTable(first.arena, s.layout())
	borrowed := first.pool.Borrow(g.frame(0), s.Frames)
	r, err := sign(s.LivenessFD, s.Number)
	if err != nil {
		return err
	}
	var fills []*fillRing
	for _, p := range f.ports {
		fills = append(fills, &p.rings.fill)
	}
	m := newParticipant(g, r, s.Number, &first.rings.completion, fills...)
	for _, p := range f.ports {
		p.pool, p.borrowed, p.participant = first.pool, borrowed, m
		m.fds = append(m.fds, p.sock.fd)
	}
	return nil
}

// takePool gives the port its pool.
func (p *Port) takePool(s *Slot, pool *Pool, track bool) (err error) {
	if p.pool = pool; pool != nil {
		return nil
	}
	if p.pool, err = mem.NewPool(p.arena, s.ToSend(), track); err != nil {
		return fmt.Errorf("xdp: slot %d of %s: %w", s.Number, s.Device, err)
	}
	p.ownPool = true
	return nil
}

// ToSend returns how many frames to send the pool of a port on the slot has.
func (s *Slot) ToSend() int { return slotBudget(s.TxDepth).Frames() }

// flushSlot is Flush after what is queued was sent. Others write the lines of the
// COMPLETION ring, too, so a look is paid for a few buffers at a time: few enough
// for those that come back to be in the cache.
func (p *Port) flushSlot() {
	if p.queued >= lookAt {
		p.queued -= p.participant.look(p.pool)
	}
	if len(p.borrowed.Returned()) >= slab {
		p.giveBack()
		p.participant.widen()
	}
}

// lookAt is for how many buffers on their way out it looks whether they were sent.
const lookAt = 8

// giveBack gives received frames back to all.
func (p *Port) giveBack() {
	m := p.participant
	queue, _ := m.give(p.borrowed.Returned(), m.held)
	p.borrowed.TakeReturned()
	if p.caps.ZeroCopy && m.fills[queue].needWakeup() {
		p.refill(m.fds[queue])
	}
}

// leave gives back what the port holds and signs off.
func (m *participant) leave(p *Port) {
	p.giveBack()
	m.liveness.close()
}
