package xdp

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// socket is an AF_XDP socket with its UMEM and its four rings.
type socket struct {
	fd       int
	rings    *rings
	zeroCopy bool // after bind
	sg       bool // after bind: frames of several buffers
}

// newSocket makes a socket whose UMEM is the whole arena. dev names the device
// in errors.
func newSocket(dev string, arena *Arena, d depths) (*socket, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return nil, &Error{Device: dev, Reason: ErrPermission, Remedy: permissionRemedy, Cause: err}
	case errors.Is(err, unix.EAFNOSUPPORT):
		return nil, &Error{Device: dev, Reason: ErrUnsupported, Detail: "this kernel has no AF_XDP",
			Remedy: "use a kernel with CONFIG_XDP_SOCKETS, or kernel UDP", Cause: err}
	case err != nil:
		return nil, fmt.Errorf("xdp: cannot make an AF_XDP socket: %w", err)
	}
	s := &socket{fd: fd}
	if err := s.setUp(dev, arena, d); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *socket) setUp(dev string, arena *Arena, d depths) error {
	err := registerUMEM(s.fd, arena.Bytes(), mem.FrameSize)
	switch {
	case errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EPERM):
		return &Error{Device: dev, Reason: ErrMemlock, Detail: fmt.Sprintf("%d KiB are needed", arena.Len()/1024),
			Remedy: fmt.Sprintf("raise it (ulimit -l %d), give the program CAP_IPC_LOCK, or make the arena smaller", arena.Len()/1024), Cause: err}
	case err != nil:
		return fmt.Errorf("xdp: cannot register an arena of %d bytes as UMEM (it must be mapped memory, made by mem.New or mem.Map): %w", arena.Len(), err)
	}
	if err := s.makeRings(d); err != nil {
		return err
	}
	if s.rings, err = mapRings(s.fd, d); err != nil {
		return fmt.Errorf("xdp: cannot map the rings: %w", err)
	}
	return nil
}

// makeRings makes those rings whose size in d is not 0.
func (s *socket) makeRings(d depths) error {
	for _, ring := range []struct {
		name       string
		opt, depth int
	}{
		{"FILL", unix.XDP_UMEM_FILL_RING, d.fill},
		{"COMPLETION", unix.XDP_UMEM_COMPLETION_RING, d.completion},
		{"RX", unix.XDP_RX_RING, d.rx},
		{"TX", unix.XDP_TX_RING, d.tx},
	} {
		if ring.depth == 0 {
			continue
		}
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, ring.opt, ring.depth); err != nil {
			return fmt.Errorf("xdp: cannot make the %s ring with %d entries: %w", ring.name, ring.depth, err)
		}
	}
	return nil
}

// How often a busy queue is tried, with a pause that doubles from 1 ms up to
// bindPauseMax. The kernel gives up the queue of a closed socket only some
// time later.
const (
	bindTries    = 105 // about five seconds
	bindTriesFew = 9   // about a quarter of a second
	bindPauseMax = 50 * time.Millisecond
)

// bind connects the socket to a queue, with the first of flags that the driver
// takes; see Config.bindings. A busy queue is tried several times.
func (s *socket) bind(dev *device, queue int, flags []uint16, tries int) error {
	var err error
	for _, f := range flags {
		err = s.tryBind(&unix.SockaddrXDP{
			Flags: unix.XDP_USE_NEED_WAKEUP | f, Ifindex: uint32(dev.index), QueueID: uint32(queue),
		}, tries)
		if err == nil {
			s.sg = f&unix.XDP_USE_SG != 0
			break
		}
		if final(err) {
			return bindError(dev, queue, f, err)
		}
	}
	if err != nil {
		return bindError(dev, queue, flags[len(flags)-1], err)
	}
	opts, err := unix.GetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS)
	if err != nil {
		return fmt.Errorf("xdp: getsockopt XDP_OPTIONS: %w", err)
	}
	s.zeroCopy = opts&unix.XDP_OPTIONS_ZEROCOPY != 0
	return nil
}

// final reports whether binding with other flags fails for the same reason.
func final(err error) bool {
	for _, reason := range []error{unix.EBUSY, unix.ENETDOWN, unix.ENODEV, unix.EPERM} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// newSocketBeside makes a socket that will have the UMEM of another one, see
// bindBeside. It has FILL and COMPLETION rings of its own if their sizes in d are
// not 0, as it takes for another queue.
func newSocketBeside(d depths) (*socket, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("xdp: %w", os.NewSyscallError("socket", err))
	}
	s := &socket{fd: fd}
	if err := s.makeRings(d); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// bindBeside connects the socket to a queue, with the memory and the flags of
// first. A busy queue is tried several times.
func (s *socket) bindBeside(first *socket, dev *device, queue int) error {
	err := s.tryBind(&unix.SockaddrXDP{
		Flags: unix.XDP_SHARED_UMEM, Ifindex: uint32(dev.index), QueueID: uint32(queue), SharedUmemFD: uint32(first.fd),
	}, bindTries)
	if err != nil {
		return bindError(dev, queue, unix.XDP_SHARED_UMEM, err)
	}
	s.sg, s.zeroCopy = first.sg, first.zeroCopy
	return nil
}

func (s *socket) tryBind(sa *unix.SockaddrXDP, tries int) error {
	pause := time.Millisecond
	for range tries {
		if err := unix.Bind(s.fd, sa); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(pause)
		pause = min(2*pause, bindPauseMax)
	}
	return unix.EBUSY
}

func bindError(dev *device, queue int, flags uint16, err error) error {
	e := &Error{Device: dev.name, Cause: err}
	switch {
	case errors.Is(err, unix.EBUSY):
		e.Reason, e.Detail = ErrQueueBusy, fmt.Sprintf("queue %d", queue)
		e.Remedy = "use another queue or device, or end the process that holds it"
	case errors.Is(err, unix.ENETDOWN):
		e.Reason, e.Remedy = ErrDeviceDown, fmt.Sprintf("bring it up: ip link set dev %s up", dev.name)
	case errors.Is(err, unix.ENODEV):
		e.Reason, e.Remedy = ErrNoDevice, "it went away while it was opened"
	case errors.Is(err, unix.EPERM):
		e.Reason, e.Remedy = ErrPermission, permissionRemedy
	case flags&unix.XDP_ZEROCOPY != 0:
		e.Reason, e.Detail = ErrUnsupported, "zero-copy"
		e.Remedy = dev.driverText() + " has none in this configuration: do without"
	default:
		return fmt.Errorf("xdp: cannot bind to queue %d of %s: %w", queue, dev.name, err)
	}
	return e
}

// tune sets what makes sending cheaper where the kernel knows it.
func (s *socket) tune(txDepth int) {
	// One system call sends the whole ring instead of 32 frames (Linux 6.17).
	_ = unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, txDepth)
	// In copy mode frames count against the send buffer until they are on
	// the wire, rounded up to pages. The smaller default only costs speed.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, txDepth*2*mem.FrameSize)
}

func (s *socket) close() error {
	if s.rings != nil {
		s.rings.unmap()
	}
	err := unix.Close(s.fd)
	s.fd = -1
	return err
}
