package shm

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// admit is what the listener calls: it gives a sender a ring.
func (e *Datagram) admit(l *handshake) bool {
	var c call
	if !parse(l.body, &c) || len(l.fds) != 1 || c.Port == 0 || c.from().Addr().IsUnspecified() {
		return false
	}
	a := answer{Ring: 1 << e.shift, Memory: dataAt + 1<<e.shift, Most: uint32(e.caps.MaxPayload)}
	in, ring, err := e.newRing(&c, l.fds[0])
	if err != nil {
		refuse(l, &a)
		return true
	}
	e.grant(in.alive, l.fds[0], &a, ring)
	return true
}

// newRing makes a ring, which replaces a piece of the arena, for the peer at the other end
// of line. It returns the memfd, too, which the caller closes.
func (e *Datagram) newRing(c *call, line int) (*inbound, int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.free)
	if n == 0 || e.closed {
		return nil, -1, ErrPeers
	}
	if err := unix.SetNonblock(line, true); err != nil {
		return nil, -1, err
	}
	slot, size := e.free[n-1], 1<<e.shift
	fd, err := mem.Memfd(memfdName, dataAt+size)
	if err != nil {
		return nil, -1, err
	}
	base := e.base + mem.Addr(slot*size)
	data := e.arena.At(base, size)
	control, err := unix.Mmap(fd, 0, dataAt, readWrite, unix.MAP_SHARED)
	if err == nil {
		if err = mapOver(data, fd, dataAt); err != nil {
			_ = unix.Munmap(control)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, -1, err
	}
	e.free = e.free[:n-1]
	in := &inbound{
		reader: reader{
			ring: newRing(control, data), most: e.caps.MaxPayload, slot: slot,
			alive: &liveness{file: os.NewFile(uintptr(line), "shm")},
		},
		base: base, from: fabric.RemoteOf(c.from()), lent: make([]uint32, size/granule),
	}
	in.asleep.Store(wantBell) // perhaps the engine sleeps now; if not, one ring too many does no harm
	e.senders = append(e.senders, in)
	e.busy.Add(1)
	return in, fd, nil
}

// senderList writes the connected senders into list, after it took out those
// that have left and of which nothing is left to read or to release. leaving
// means that there are some of which there is.
func (e *Datagram) senderList(list []*inbound) (now []*inbound, leaving bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list = list[:0]
	for _, in := range e.senders {
		if in.alive.gone.Load() || in.broken {
			if !in.waiting() && in.freed == in.next {
				e.dropped += in.dropped.Load()
				e.remove(in)
				continue
			}
			leaving = true
		}
		list = append(list, in)
	}
	e.senders = append(e.senders[:0], list...)
	return list, leaving
}

// remove gives back what a sender had. Its ring stays where it is in the arena
// until the next one replaces it.
func (e *Datagram) remove(in *inbound) {
	in.alive.close()
	_ = unix.Munmap(in.control)
	e.free = append(e.free, in.slot)
}

// disconnect ends what others send here, and waits until no goroutine is at work here any more.
func (e *Datagram) disconnect() error {
	e.mu.Lock()
	e.closed = true
	for _, in := range e.senders {
		in.alive.close()
	}
	e.mu.Unlock()
	err := e.listener.close()
	for _, in := range e.senders {
		err = errors.Join(err, unix.Munmap(in.control))
	}
	e.senders = nil
	return err
}

// restore makes the rings' memory part of the arena's file again and gives it
// back. No peer may be connected any more.
func (e *Datagram) restore() error {
	if err := mapOver(e.arena.At(e.base, e.span), e.arena.FD(), int64(e.base)); err != nil {
		return err // and no peer gets this memory any more
	}
	e.arena.Free(e.base)
	return nil
}
