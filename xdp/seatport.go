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

// OpenSeat opens a port on a seat of a shared queue. arena is that of
// Seat.MapArena and must outlive the port. It needs no privilege. With track
// every move of a frame to send is checked.
//
// The port owns the other descriptors of the seat from now on, also when there
// is an error. Close does not give the seat free: what arrives for it fills its
// RX ring until [Queue.Vacate] is called, usually when the process has ended.
//
// Buffers to send must lie in the part of the arena that is the seat's own.
func OpenSeat(s Seat, arena *Arena, track bool) (*Port, error) {
	defer unix.Close(s.RollFD)
	defer unix.Close(s.RingsFD)
	p := &Port{sock: &socket{fd: s.SocketFD}, arena: arena, caps: s.Caps}
	p.out = p.sock
	if err := p.openSeat(&s, track); err != nil {
		_ = p.Close() // the reason is what counts
		return nil, err
	}
	return p, nil
}

func (p *Port) openSeat(s *Seat, track bool) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	l := s.layout()
	if p.arena.Len() < l.size() {
		return fmt.Errorf("xdp: seat %d needs the arena of its queue, which Seat.MapArena maps", s.Number)
	}
	for _, fd := range []int{s.SocketFD, s.ArenaFD} {
		unix.CloseOnExec(fd) // they were inherited
	}
	p.from, p.span = l.partOf(s.Number).Start, mem.Addr(s.Part)
	d := depths{fill: s.Fill, completion: s.Completion, rx: s.RxDepth, tx: s.TxDepth}
	if p.sock.rings, err = mapSeat(s.RingsFD, s.SocketFD, d); err != nil {
		return fmt.Errorf("xdp: cannot map the rings of seat %d of %s: %w", s.Number, s.Device, err)
	}
	p.rings = p.sock.rings
	if p.pool, err = mem.NewPool(p.arena, seatBudget(s.TxDepth).Frames(), track); err != nil {
		return fmt.Errorf("xdp: seat %d of %s: %w", s.Number, s.Device, err)
	}
	p.ownPool = true
	g := newLedger(p.arena, l)
	p.pool.Borrow(g.frame(0), s.Frames)
	r, err := sign(s.RollFD, s.Number)
	if err != nil {
		return err
	}
	p.member = newMember(g, r, s.Number, p.rings)
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
	m.give(p.pool.Returned(), m.held)
	p.pool.TakeReturned()
	if p.caps.ZeroCopy && m.fill.needWakeup() {
		p.stats.Wakeups++
		receive(p.sock.fd)
	}
}

// leave gives back what the port holds and signs off.
func (m *member) leave(p *Port) {
	p.giveBack()
	m.roll.close()
}
