package xdp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/mem"
)

// MapArena maps the arena of the seat's queue into this process. What it
// allocates is of the seat's own part. It owns Seat.ArenaFD from now on when
// the error is nil; the caller closes it.
func (s *Seat) MapArena() (*Arena, error) {
	if len(s.Lines) > 0 {
		own := s.sendPart()
		return mem.MapPart(s.ArenaFD, s.Part, own, own, mem.Part{Len: int(own.Start)})
	}
	l := s.layout()
	return mem.MapPart(s.ArenaFD, l.size(), l.partOf(s.Number), l.partOf(s.Number), l.common())
}

// OpenSeat opens a port on a seat of shared queues. arena is that of
// Seat.MapArena and must outlive the port. It needs no privilege. With track
// every move of a frame to send is checked.
//
// The port owns the other descriptors of the seat from now on, also when there
// is an error. Close does not give the seat free: what arrives for it fills its
// RX ring until [Queue.Vacate] is called, usually when the process has ended.
//
// Buffers to send must lie in the part of the arena that is the seat's own.
func OpenSeat(s Seat, arena *Arena, track bool) (FramePort, error) {
	f := &fan{poll: -1}
	for _, q := range s.Queues {
		p := &Port{sock: &socket{fd: q.SocketFD}, arena: arena, caps: s.Caps}
		p.out = p.sock
		f.ports = append(f.ports, p)
	}
	err := f.openSeat(&s, arena, track)
	_ = unix.Close(s.RollFD)
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

func (f *fan) openSeat(s *Seat, arena *Arena, track bool) error {
	if err := s.check(); err != nil {
		return err
	}
	l := s.layout()
	if arena.Len() < l.size() {
		return fmt.Errorf("xdp: seat %d needs the arena of its queues, which Seat.MapArena maps", s.Number)
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
		if p.sock.rings, err = mapSeat(q.RingsFD, q.SocketFD, d); err != nil {
			return fmt.Errorf("xdp: cannot map the rings of seat %d of %s: %w", s.Number, s.Device, err)
		}
		p.rings = p.sock.rings
	}
	if err := f.join(s, track); err != nil {
		return err
	}
	if s.Late {
		caps, err := meetingOf(arena).await(s.Number)
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
	if len(f.ports) == 1 {
		return nil
	}
	return f.watch()
}

// join makes the ports of f, whose rings are mapped, take part in the shared queues:
// as one member with one pool.
func (f *fan) join(s *Seat, track bool) error {
	first := f.ports[0]
	pool, err := mem.NewPool(first.arena, seatBudget(s.TxDepth).Frames(), track)
	if err != nil {
		return fmt.Errorf("xdp: seat %d of %s: %w", s.Number, s.Device, err)
	}
	first.pool, first.ownPool = pool, true
	g := newLedger(first.arena, s.layout())
	pool.Borrow(g.frame(0), s.Frames)
	r, err := sign(s.RollFD, s.Number)
	if err != nil {
		return err
	}
	var fills []*fillRing
	for _, p := range f.ports {
		fills = append(fills, &p.rings.fill)
	}
	m := newMember(g, r, s.Number, &first.rings.completion, fills...)
	for _, p := range f.ports {
		p.pool, p.member = pool, m
		m.fds = append(m.fds, p.sock.fd)
	}
	return nil
}

// flushSeat is Flush after what is queued was sent. Others write the lines of the
// COMPLETION ring, too, so a look is paid for a few buffers at a time: few enough
// for those that come back to be in the cache.
func (p *Port) flushSeat() {
	if p.queued >= lookAt {
		p.queued -= p.member.look(p.pool)
	}
	if len(p.pool.Returned()) >= slab {
		p.giveBack()
	}
}

// lookAt is for how many buffers on their way out it looks whether they were sent.
const lookAt = 8

// giveBack gives received frames back to all.
func (p *Port) giveBack() {
	m := p.member
	queue := m.give(p.pool.Returned(), m.held)
	p.pool.TakeReturned()
	if p.caps.ZeroCopy && m.fills[queue].needWakeup() {
		p.stats.Wakeups++
		receive(m.fds[queue])
	}
}

// leave gives back what the port holds and signs off.
func (m *member) leave(p *Port) {
	p.giveBack()
	m.roll.close()
}
