package bench

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// tcpBench is the baseline: one kernel TCP connection with no protocol on it,
// TCP_NODELAY, both ends spinning. Streams go in windows with an answer of one
// byte after each, as in mpi_bw, and with one system call per message.
type tcpBench struct {
	*End
	s    *socket
	size int // of each half of the buffer; the second half receives
}

// tcpChunk is the least that one system call may receive.
const tcpChunk = 256 << 10

func openTCP(e *End) (Bench, error) {
	size := max(slices.Max(e.Spec.Sizes), tcpChunk)
	s, err := newSocket(e.Addr, unix.SOCK_STREAM, 2*size)
	if err != nil {
		return nil, err
	}
	t := &tcpBench{End: e, s: s, size: size}
	if err := t.connect(); err != nil {
		s.close()
		return nil, fmt.Errorf("data connection: %w", err)
	}
	return t, nil
}

// connect replaces the socket by a connected one. The server listens on a port
// of the kernel's choice and tells the client.
func (t *tcpBench) connect() error {
	if err := unix.Bind(t.s.fd, sockaddr(netip.AddrPortFrom(t.Addr, 0))); err != nil {
		return fmt.Errorf("bind to %v: %w", t.Addr, err)
	}
	if t.Server {
		if err := unix.Listen(t.s.fd, 1); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	if err := exchangeAddr(t.End, t.s.fd); err != nil {
		return err
	}
	if !t.Server {
		if err := connectPeer(t.End, t.s.fd); err != nil {
			return err
		}
	}
	if err := t.Pair.Fence(); err != nil { // now the connection waits to be accepted
		return err
	}
	if t.Server {
		fd, _, err := unix.Accept4(t.s.fd, unix.SOCK_CLOEXEC)
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		unix.Close(t.s.fd)
		t.s.fd = fd
	}
	if err := unix.SetsockoptInt(t.s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("TCP_NODELAY: %w", err)
	}
	return nil
}

// exchangeAddr tells the other end what address the socket is bound to.
func exchangeAddr(e *End, fd int) error {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	port := 0
	switch n := name.(type) {
	case *unix.SockaddrInet4:
		port = n.Port
	case *unix.SockaddrInet6:
		port = n.Port
	}
	if err := e.Pair.Put("address", netip.AddrPortFrom(e.Addr, uint16(port)).String()); err != nil {
		return err
	}
	return e.Pair.Fence()
}

// connectPeer connects the socket to the address that the other end told.
func connectPeer(e *End, fd int) error {
	peer, err := said(e.Pair, "address", netip.ParseAddrPort)
	if err == nil && peer.Addr().Is4() != e.Addr.Is4() {
		err = fmt.Errorf("the other end said that its address is %v, and that of this end is %v", peer, e.Addr)
	}
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, sockaddr(peer)); err != nil {
		return fmt.Errorf("connect to %v: %w", peer, err)
	}
	return nil
}

func (t *tcpBench) Carrier() string { return "kernel TCP" }

func (t *tcpBench) Close() error { return t.s.close() }

// Progress has nothing to do: the kernel does it.
func (t *tcpBench) Progress() {}

func (t *tcpBench) Run(b Burst, rec *Recorder) error {
	pingPong := t.Spec.kind() == PingPong
	switch {
	case pingPong && t.Server:
		return t.echo(b)
	case pingPong:
		return t.trips(b, rec, func(int) error {
			if err := t.send(b.Size); err != nil {
				return err
			}
			return t.recv(b.Size)
		})
	case t.Server:
		return t.swallow(b)
	}
	return t.stream(b, rec, func(n int) error { return t.windows(b, n) })
}

// send sends n bytes of the first half of the buffer.
func (t *tcpBench) send(n int) error {
	var turns spin
	for off := 0; off < n; {
		r := t.s.send(off, n-off)
		if r < 0 {
			return t.s.failure("send")
		}
		off += r
		if r == 0 && turns.idle() && t.Pair.Over() {
			return errOver
		}
	}
	return nil
}

// recv receives n bytes into the second half of the buffer, which may be
// smaller: nobody looks at them.
func (t *tcpBench) recv(n int) error {
	var turns spin
	for n > 0 {
		r := t.s.recv(t.size, min(n, t.size))
		if r < 0 {
			return t.s.failure("recv")
		}
		n -= r
		if r == 0 && turns.idle() && t.Pair.Over() {
			return errOver
		}
	}
	return nil
}

func (t *tcpBench) echo(b Burst) error {
	for range b.Warmup + b.Iters {
		if err := t.recv(b.Size); err != nil {
			return err
		}
		if err := t.send(b.Size); err != nil {
			return err
		}
	}
	return nil
}

// windows sends messages and waits for the answer after each window.
func (t *tcpBench) windows(b Burst, messages int) error {
	for range messages / b.Window {
		for range b.Window {
			if err := t.send(b.Size); err != nil {
				return err
			}
		}
		if err := t.recv(1); err != nil {
			return err
		}
	}
	return nil
}

func (t *tcpBench) swallow(b Burst) error {
	for range (b.Warmup + b.Iters) / b.Window {
		if err := t.recv(b.Window * b.Size); err != nil {
			return err
		}
		if err := t.send(1); err != nil {
			return err
		}
	}
	return nil
}
