package bench

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	t := &tcpBench{End: e, size: max(slices.Max(e.Spec.Sizes), tcpChunk)}
	conn, err := e.connectTCP()
	if err == nil {
		t.s, err = newSocket(conn, 2*t.size)
	}
	if err != nil {
		return nil, fmt.Errorf("data connection: %w", err)
	}
	return t, nil
}

// connectTCP connects the two ends, with TCP_NODELAY, as net has it. The server listens
// on a port of the kernel's choice and tells the client.
func (e *End) connectTCP() (*net.TCPConn, error) {
	here := net.TCPAddrFromAddrPort(netip.AddrPortFrom(e.Addr, 0))
	if !e.Server {
		if err := e.Pair.Fence(); err != nil {
			return nil, err
		}
		to, err := e.peerAddr()
		if err != nil {
			return nil, err
		}
		conn, err := net.DialTCP("tcp", here, net.TCPAddrFromAddrPort(to))
		if err != nil {
			return nil, err
		}
		return conn, e.Pair.Fence() // now the connection waits to be accepted
	}
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(context.Background(), "tcp", here.String())
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	err = e.Pair.Put("address", ln.Addr().String())
	for range 2 {
		if err == nil {
			err = e.Pair.Fence()
		}
	}
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener).AcceptTCP()
}

// peerAddr returns the address that the other end has told.
func (e *End) peerAddr() (netip.AddrPort, error) {
	peer, err := said(e.Pair, "address", netip.ParseAddrPort)
	if err == nil && peer.Addr().Is4() != e.Addr.Is4() {
		err = fmt.Errorf("the other end said that its address is %v, and that of this end is %v", peer, e.Addr)
	}
	return peer, err
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
// smaller: their contents are not used.
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
