package shm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
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

// door is the socket by which peers find an endpoint. A goroutine reads what
// comes in, because a rank that computes does not step its engine, and its
// peers shall not wait.
type door struct {
	sock    int
	file    *os.File      // owns sock
	changed atomic.Uint32 // counts what happened to guests
	busy    sync.WaitGroup
	refused atomic.Uint64 // letters that made no sense, or of other users
}

// open begins to read letters. admit owns the descriptors of a letter that it
// says yes to.
func (d *door) open(sock int, admit func(*letter) bool) {
	d.sock, d.file = sock, os.NewFile(uintptr(sock), "shm")
	d.busy.Add(1)
	go d.serve(admit)
}

// serve reads until the socket is closed.
func (d *door) serve(admit func(*letter) bool) {
	defer d.busy.Done()
	raw, err := d.file.SyscallConn()
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
		if bad != nil || !admit(&l) {
			l.discard()
			d.refused.Add(1)
		}
	}
}

// close waits until nobody works here any more. All lifelines are closed.
func (d *door) close() error {
	err := d.file.Close()
	d.busy.Wait()
	return err
}

// knock sends a letter that asks for a ring, with descriptors, and returns the
// socket on which the answer will come.
func (d *door) knock(to unix.Sockaddr, call []byte, fds ...int) (asked int, err error) {
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

// reply sends the answer to a letter. When that fails the sender is dead, which
// its lifeline tells.
func reply(line int, answer []byte, fds ...int) {
	_ = unix.Sendmsg(line, answer, unix.UnixRights(fds...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

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

// mapMemfd maps a memfd that a peer has made with newMemfd.
func mapMemfd(fd, size int) ([]byte, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	have, sealed := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || st.Size != int64(size) || sealed != nil || have&seals != seals {
		return nil, fmt.Errorf("shm: %d bytes, seals %#x: that is no memory of ours", st.Size, have)
	}
	b, err := unix.Mmap(fd, 0, size, readWrite, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", os.NewSyscallError("mmap", err))
	}
	return b, nil
}
