package shm

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

// lifeline is a socket whose other end a peer holds open while it lives. A
// goroutine waits for its end.
type lifeline struct {
	file *os.File
	gone atomic.Bool // the peer has closed it, or died
}

// watch waits until the line ends, and calls ended.
func (l *lifeline) watch(ended func()) {
	_, _ = l.file.Read(make([]byte, 1)) // nobody ever writes to it
	l.gone.Store(true)
	ended()
}

// close ends the line, which the peer notices. It may be called again.
func (l *lifeline) close() { _ = l.file.Close() }

// porter lets senders in. It works in a goroutine of its own, because a rank
// that computes does not step its engine, and its peers shall not wait.
type porter struct {
	sock    int
	file    *os.File // owns sock
	arena   *mem.Arena
	base    mem.Addr // of the first ring
	size    int      // of a ring
	span    int      // of all rings
	max     int      // largest payload in bytes
	bell    int
	changed atomic.Uint32 // counts what happened to guests
	busy    sync.WaitGroup

	mu      sync.Mutex
	guests  []*inbound // in the order in which they came
	free    []int32    // ring slots
	dropped uint64     // by guests that have left
	refused uint64     // letters that made no sense, or of other users
	closed  bool
}

// serve admits senders until the socket is closed.
func (p *porter) serve() {
	defer p.busy.Done()
	raw, err := p.file.SyscallConn()
	for err == nil {
		var l letter
		var bad error
		err = raw.Read(func(fd uintptr) bool {
			l, bad = receive(int(fd))
			return !errors.Is(bad, unix.EAGAIN)
		})
		if err != nil {
			return
		}
		from, ok := parseCall(l.body)
		if bad == nil && ok && len(l.fds) == 1 {
			p.admit(from, l.fds[0])
			continue
		}
		l.discard()
		p.mu.Lock()
		p.refused++
		p.mu.Unlock()
	}
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
		_ = unix.Sendmsg(line, body[:], nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
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
	// When the answer cannot be sent the sender is dead, which watch notices.
	_ = unix.Sendmsg(line, body[:], unix.UnixRights(fd, p.bell), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
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

// newMemfd makes a memfd whose size nobody can change any more: touching what
// somebody has cut off would be fatal.
func newMemfd(size int) (int, error) {
	fd, err := unix.MemfdCreate("xwarp-shm", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("shm: %w", os.NewSyscallError("memfd_create", err))
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("shm: ring of %d bytes: %w", size, err)
	}
	return fd, nil
}

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

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
	return dropped, p.refused
}

// close sends everybody away and waits until nobody works here any more.
func (p *porter) close() error {
	p.mu.Lock()
	p.closed = true
	for _, in := range p.guests {
		in.line.close()
	}
	p.mu.Unlock()
	err := p.file.Close()
	p.busy.Wait()
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
