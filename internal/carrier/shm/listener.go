package shm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
)

// liveness is a socket whose other end a peer holds open while it lives. A
// goroutine waits for its end.
type liveness struct {
	file *os.File
	gone atomic.Bool // the peer has closed it, or died
}

// watch waits until the socket ends, and calls ended.
func (l *liveness) watch(ended func()) {
	_, _ = l.file.Read(make([]byte, 1)) // it is never written to
	l.gone.Store(true)
	ended()
}

// close closes the socket, which the peer notices. It may be called again.
func (l *liveness) close() { _ = l.file.Close() }

// listener is the socket by which peers find an endpoint. A goroutine reads what
// comes in, because a rank that computes does not step its engine, and its
// peers shall not wait.
type listener struct {
	sock    int
	bell    event.Bell    // which peers ring when they come
	file    *os.File      // owns sock
	changed atomic.Uint32 // counts what happened to senders
	busy    sync.WaitGroup
	refused atomic.Uint64 // handshakes that made no sense, or of other users
}

// openBell makes the bell, before anything else of a listener is used.
func (d *listener) openBell() (err error) {
	if d.bell, err = event.NewBell(); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	return nil
}

// open begins to read handshakes. admit owns the descriptors of a handshake that it
// says yes to.
func (d *listener) open(sock int, admit func(*handshake) bool) {
	d.sock, d.file = sock, os.NewFile(uintptr(sock), "shm")
	d.busy.Add(1)
	go d.serve(admit)
}

// serve reads until the socket is closed.
func (d *listener) serve(admit func(*handshake) bool) {
	defer d.busy.Done()
	raw, err := d.file.SyscallConn()
	for err == nil {
		var l handshake
		var bad error
		err = raw.Read(func(fd uintptr) bool {
			l, bad = receive(int(fd))
			return !errors.Is(bad, unix.EAGAIN)
		})
		if err != nil {
			return
		}
		if bad != nil || !admit(&l) {
			l.discard()
			d.refused.Add(1)
		}
	}
}

// close waits until no goroutine is at work here any more. All liveness sockets are closed.
func (d *listener) close() error {
	err := d.file.Close()
	d.busy.Wait()
	return err
}

// request sends a handshake that asks for a ring, with descriptors, and returns the
// socket on which the answer will come.
func (d *listener) request(to unix.Sockaddr, call []byte, fds ...int) (asked int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("shm: %w (too many open files? see ulimit -n)", os.NewSyscallError("socketpair", err))
	}
	defer unix.Close(pair[1])
	if err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err == nil {
		rights := unix.UnixRights(append([]int{pair[1]}, fds...)...)
		err = unix.Sendmsg(d.sock, call, rights, to, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	if err != nil {
		unix.Close(pair[0])
		return -1, err
	}
	return pair[0], nil
}

// grant answers a handshake with a ring, whose memfd it closes, and other descriptors.
// The caller has counted the sender in busy.
func (d *listener) grant(alive *liveness, asked int, a *answer, ring int, more ...int) {
	a.Status = statusOK
	d.changed.Add(1)
	// Only now: what a sender that has its answer puts must be found at once.
	reply(asked, bodyOf(a), append([]int{ring, int(d.bell)}, more...)...)
	unix.Close(ring)
	go alive.watch(d.ended)
}

// ended is called when a sender is gone.
func (d *listener) ended() {
	d.changed.Add(1)
	d.bell.Ring()
	d.busy.Done()
}

// refuse answers a handshake with an answer that gives nothing, and closes its descriptors.
func refuse(l *handshake, a *answer) {
	a.Status = statusFull
	reply(l.fds[0], bodyOf(a))
	l.discard()
}

// reply sends the answer to a handshake. When that fails the sender is dead, which
// its liveness tells.
func reply(line int, answer []byte, fds ...int) {
	_ = unix.Sendmsg(line, answer, unix.UnixRights(fds...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// memfdName is what /proc/PID/maps says of memory of ours.
const memfdName = "xwarp-shm"

// newMemory makes a memfd of size bytes, and maps it. The caller closes fd, and unmaps b with mem.Unmap.
func newMemory(name string, size int) (fd int, b []byte, err error) {
	if fd, err = mem.Memfd(name, size); err != nil {
		return -1, nil, fmt.Errorf("shm: %w", err)
	}
	if b, err = mem.MapAligned(fd, size, 0); err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("shm: %d bytes of %s: %w", size, name, os.NewSyscallError("mmap", err))
	}
	return fd, b, nil
}

// mapMemfd maps a memfd that a peer has made with mem.Memfd. The caller unmaps it with mem.Unmap.
func mapMemfd(fd, size int) ([]byte, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	have, sealed := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || st.Size != int64(size) || sealed != nil || have&mem.Seals != mem.Seals {
		return nil, fmt.Errorf("shm: %d bytes, seals %#x: that is no memory of ours", st.Size, have)
	}
	b, err := mem.MapAligned(fd, size, 0)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", os.NewSyscallError("mmap", err))
	}
	return b, nil
}
