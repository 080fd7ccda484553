package shm

import (
	"errors"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

// porter lets senders in, in the goroutine of its door.
type porter struct {
	door
	arena *mem.Arena
	base  mem.Addr // of the first ring
	size  int      // of a ring
	span  int      // of all rings
	max   int      // largest payload in bytes
	bell  int

	mu      sync.Mutex
	guests  []*inbound // in the order in which they came
	free    []int32    // ring slots
	dropped uint64     // by guests that have left
	closed  bool
}

// letter is a door's admit.
func (p *porter) letter(l *letter) bool {
	from, ok := parseCall(l.body)
	if !ok || len(l.fds) != 1 {
		return false
	}
	p.admit(from, l.fds[0])
	return true
}

// admit gives a sender a ring, and the answer over line, which it owns.
func (p *porter) admit(from netip.AddrPort, line int) {
	if unix.SetNonblock(line, true) != nil {
		unix.Close(line)
		return
	}
	a := answer{status: statusFull, ring: p.size, max: p.max}
	var body [answerLen]byte
	in, fd, err := p.newRing(from)
	if err != nil {
		a.put(body[:])
		reply(line, body[:])
		unix.Close(line)
		return
	}
	a.status = statusOK
	a.put(body[:])
	in.line = &lifeline{file: os.NewFile(uintptr(line), "shm")}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		in.line.close()
		unix.Close(fd)
		return
	}
	p.guests = append(p.guests, in)
	p.busy.Add(1)
	p.mu.Unlock()
	p.changed.Add(1)
	// Only now: what a sender that has its answer puts must be found at once.
	reply(line, body[:], fd, p.bell)
	unix.Close(fd)
	go in.line.watch(func() {
		p.changed.Add(1)
		p.busy.Done()
	})
}

// newRing makes a ring, which replaces a piece of the arena. It returns the
// memfd, too, which the caller closes.
func (p *porter) newRing(from netip.AddrPort) (*inbound, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 || p.closed {
		return nil, -1, ErrPeers
	}
	slot := p.free[n-1]
	fd, err := newMemfd(dataAt + p.size)
	if err != nil {
		return nil, -1, err
	}
	base := p.base + mem.Addr(int(slot)*p.size)
	data := p.arena.At(base, p.size)
	control, err := unix.Mmap(fd, 0, dataAt, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		if err = mapOver(data, fd, dataAt); err != nil {
			_ = unix.Munmap(control)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, -1, err
	}
	p.free = p.free[:n-1]
	in := &inbound{
		ring: newRing(control, data), base: base, slot: slot, most: p.max,
		from: fabric.RemoteOf(from), lent: make([]uint32, p.size/granule),
	}
	in.asleep.Store(1) // perhaps the engine sleeps now; if not, one ring too many does no harm
	return in, fd, nil
}

// guestList writes those who are connected into list, after it took out those
// who have left and of whom nothing is left to read or to release. leaving
// means that there are some of whom there is.
func (p *porter) guestList(list []*inbound) (now []*inbound, leaving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list = list[:0]
	for _, in := range p.guests {
		if in.line.gone.Load() || in.broken {
			if !in.waiting() && in.freed == in.next {
				p.dropped += in.dropped.Load()
				p.remove(in)
				continue
			}
			leaving = true
		}
		list = append(list, in)
	}
	p.guests = append(p.guests[:0], list...)
	return list, leaving
}

// remove gives back what a guest had. Its ring stays where it is in the arena
// until the next one replaces it.
func (p *porter) remove(in *inbound) {
	in.line.close()
	_ = unix.Munmap(in.control)
	p.free = append(p.free, in.slot)
}

// counts returns how many datagrams found no room, and how many letters and
// rings made no sense.
func (p *porter) counts() (dropped, refused uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped = p.dropped
	for _, in := range p.guests {
		dropped += in.dropped.Load()
	}
	return dropped, p.refused.Load()
}

// close sends everybody away and waits until nobody works here any more.
func (p *porter) close() error {
	p.mu.Lock()
	p.closed = true
	for _, in := range p.guests {
		in.line.close()
	}
	p.mu.Unlock()
	err := p.door.close()
	for _, in := range p.guests {
		err = errors.Join(err, unix.Munmap(in.control))
	}
	p.guests = nil
	return err
}

// restore makes the rings' memory part of the arena's file again and gives it
// back. Nobody may be connected any more.
func (p *porter) restore() error {
	if err := mapOver(p.arena.At(p.base, p.span), p.arena.FD(), int64(p.base)); err != nil {
		return err // and nobody gets this memory any more
	}
	p.arena.Free(p.base)
	return nil
}
