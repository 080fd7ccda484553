package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// grace is how long a loop may take to notice that its peer is gone. It bounds
// how long one that never does is waited for; the others take what they need of
// it, which is seconds where more processes want to run than there are processors.
const grace = 30 * time.Second

// Session is the client end of a test that is open on both ends. Its methods
// are for one goroutine at a time.
type Session struct {
	Spec    Spec     // complete
	Carrier string   // what carries the messages
	Notes   []string // what the user should know about the test
	Detail  string   // how that is used: device, queues, buffers; may be empty
	Place   string   // where the ends are, for people; set by the end that connects
	Case    Case

	lost, told Losses // up to now, and up to the last result

	pair   *Pair
	bursts chan Burst
	points chan outcome
	ended  chan error
}

type outcome struct {
	point Point
	err   error
}

// ConnectConfig says how a client reaches its server.
type ConnectConfig struct {
	Local
	// Addr is the server's host:port. It must be set.
	Addr string
	// Key protects the control connection: KeyLen bytes, which the server has as well. It
	// must be set if Spec.Secure is. Default: that connection is in clear.
	Key []byte
	// Index says which of several configurations this is (--vs).
	Index int
	// Timeout is how long to wait for the server to answer. Default: until it
	// does, or the context ends.
	Timeout time.Duration
	// Silence is as in ServeConfig.
	Silence time.Duration
	// Abort ends this process when MPI asks for it. Default: the test fails.
	Abort func(code int, why string)
}

// Connect opens a test on this end and on the server's. It returns when both
// are ready. Its errors wrap ErrUsage when spec or the device is wrong, are a *PeerError
// when the server refused, and name the server when it does not answer.
func Connect(ctx context.Context, spec Spec, config ConnectConfig) (*Session, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if err := CheckKey(spec, config.Key); err != nil {
		return nil, err
	}
	if config.Capture != "" {
		if err := spec.CheckCapture(); err != nil {
			return nil, err
		}
	}
	config.Timeout = cmp.Or(config.Timeout, math.MaxInt64)
	s := &Session{Spec: spec, bursts: make(chan Burst), points: make(chan outcome), ended: make(chan error, 1)}
	s.Case, _ = Find(spec.Test)
	opened := make(chan struct{})
	go func() { s.ended <- config.enter(1, func() error { return s.main(ctx, config, opened) }) }()
	select {
	case <-opened:
		return s, nil
	case err := <-s.ended:
		return nil, err
	}
}

// main is the life of the client end, on its own thread.
func (s *Session) main(ctx context.Context, config ConnectConfig, opened chan<- struct{}) error {
	if config.Device != "" { // the server need not be there to know
		if _, _, err := FindDevice(config.Device, Network(config.Addr, s.Spec.IPv6) == "tcp6"); err != nil {
			return err
		}
	}
	conn, err := dial(ctx, config, s.Spec.IPv6)
	if err != nil {
		return err
	}
	if conn, err = protect(conn, config.Key, true, config.Timeout); err != nil {
		return err
	}
	s.pair = newPair(conn, 1, config.Abort)
	defer s.pair.close()
	bench, err := s.open(conn, config)
	if err != nil {
		s.pair.refuse(err)
		return err
	}
	s.Carrier, s.Detail = bench.Carrier(), detailOf(bench)
	opened <- struct{}{}
	if err = s.serveBursts(bench); err != nil {
		return errors.Join(err, s.pair.end(bench, err))
	}
	s.pair.bye.Store(true)
	if err = s.pair.send(message{Op: opBye}); err == nil {
		err = s.pair.end(bench, nil)
		<-s.pair.gone // the server hangs up when it has given its device back, which the next test may need
		if gone := s.pair.err; err == nil && !errors.Is(gone, io.EOF) && !errors.Is(gone, unix.ECONNRESET) {
			err = gone // it did not hang up: nothing comes from there
		}
		return err
	}
	return errors.Join(err, s.pair.end(bench, err))
}

// dial connects to the server, which may still be starting.
func dial(ctx context.Context, config ConnectConfig, ipv6 bool) (net.Conn, error) {
	var clock mono.Real
	start := clock.Now()
	for {
		left := config.Timeout - clock.Now().Sub(start)
		d := net.Dialer{Timeout: max(left, time.Millisecond)}
		conn, err := d.DialContext(ctx, Network(config.Addr, ipv6), config.Addr)
		if err == nil {
			if err := watch(conn, config.Silence); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		}
		if dns, is := errors.AsType[*net.DNSError](err); is && dns.IsNotFound {
			return nil, fmt.Errorf("no host is called %s: %w", dns.Name, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if clock.Now().Sub(start) >= config.Timeout {
			return nil, fmt.Errorf("no xperf server answers at %s within %v: start xperf there first, with the same test and no HOST; one with --device answers at the address of that only (%w)", config.Addr, config.Timeout, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Network returns the network of a control connection to or at address, host:port: a
// name has addresses of both families, and what is not asked for is IPv4.
func Network(address string, ipv6 bool) string {
	host, _, _ := net.SplitHostPort(address) // what is no address fails later
	if a, err := netip.ParseAddr(host); ipv6 || err == nil && a.Is6() {
		return "tcp6"
	}
	return "tcp4"
}

// open agrees with the server and opens the test.
func (s *Session) open(conn net.Conn, config ConnectConfig) (Bench, error) {
	e, err := newEnd(conn, s.pair, config.Local)
	if err != nil {
		return nil, err
	}
	if s.Spec.IPv6 = e.Addr.Is6(); s.Spec.IPv6 {
		if err := s.Spec.Check(); err != nil {
			return nil, err
		}
	}
	if err := s.Spec.Complete(e.Device.MTU); err != nil {
		return nil, err
	}
	e.Spec = s.Spec
	if err := e.checkMTU(); err != nil {
		return nil, err
	}
	hello := message{Op: opHello, Version: protocolVersion, Session: config.Index, Spec: &s.Spec}
	own := newPrivate()
	if s.Spec.Secure {
		hello.Public = own.PublicKey().Bytes()
	}
	err = s.pair.send(hello)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(config.Timeout, func() { conn.Close() })
	m, err := s.pair.receive(opHello)
	if !late.Stop() && err != nil {
		return nil, fmt.Errorf("%s took the connection but does not answer within %v: is that an xperf server?", config.Addr, config.Timeout)
	}
	if err != nil {
		return nil, err
	}
	s.pair.key = m.Key
	if s.Spec.Secure {
		if s.pair.secret, err = agreeOn(own, m.Public); err != nil {
			return nil, err
		}
	}
	bench, err := open(e)
	s.Spec, s.Notes = e.Spec, e.notes
	return bench, err
}

// serveBursts runs bursts until the session is closed.
func (s *Session) serveBursts(bench Bench) error {
	var rec Recorder
	for b := range s.bursts {
		point, err := s.burst(bench, b, &rec)
		s.points <- outcome{point, err}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) burst(bench Bench, b Burst, rec *Recorder) (Point, error) {
	if s.Spec.countsArrivals() && !s.Case.Kind.Latency() && b.Warmup > 0 {
		// A burst of its own: the server cannot tell what is lost of which.
		warmup := b
		warmup.Iters, warmup.Warmup, b.Warmup = b.Warmup, 0, 0
		if err := s.exchange(bench, warmup, rec); err != nil {
			return Point{}, err
		}
	}
	if err := s.exchange(bench, b, rec); err != nil {
		return Point{}, err
	}
	return rec.point(s.Case.Kind, b.Size), nil
}

// exchange runs one burst on both ends.
func (s *Session) exchange(bench Bench, b Burst, rec *Recorder) error {
	rec.Reset(b.Iters)
	runtime.GC() // now rather than later: nothing in the loop makes garbage
	if err := s.pair.send(message{Op: opRun, Burst: &b}); err != nil {
		return err
	}
	if _, err := s.pair.receive(opReady); err != nil {
		return err
	}
	if err := bench.Run(b, rec); err != nil {
		return explain(s.pair.because(err), bench)
	}
	if err := s.pair.send(message{Op: opStop}); err != nil {
		return err
	}
	s.pair.linger(bench)
	m, err := s.pair.receive(opDone)
	if err != nil {
		return err
	}
	s.note(lossesOf(bench), m.Losses)
	if s.Spec.tallies() {
		if m.Tally == nil {
			return fmt.Errorf("%s did not say what it has counted", s.pair.conn.RemoteAddr())
		}
		rec.Arrived(*m.Tally)
	}
	return nil
}

// end closes a test. After an error the other end learns why before, so that
// neither waits for the other.
func (p *Pair) end(bench Bench, err error) error {
	if err != nil {
		p.refuse(err)
		p.close()
	}
	return bench.Close()
}

// linger keeps a test going until the other end has something to say: that may
// need to hear from this one first.
func (p *Pair) linger(bench Bench) {
	var clock mono.Real
	for end := clock.Now().Add(lingerMin); !p.Spoken() || clock.Now() < end; {
		bench.Progress()
	}
}

// meet waits until both ends have come here, and keeps a test going meanwhile: what one end has
// sent last may get lost, and the other one wait for it.
func (p *Pair) meet(bench Bench) error {
	if err := p.send(message{Op: opFence}); err != nil {
		return err
	}
	p.linger(bench)
	_, err := p.receive(opFence)
	return err
}

// lingerMin is longer than acknowledgements are held back.
const lingerMin = 200 * mono.Microsecond

// because returns why the other end gave up when err only says that it did.
func (p *Pair) because(err error) error {
	if !errors.Is(err, errOver) {
		return err
	}
	for m := range p.inbox {
		p.news.Add(-1)
		if m.Op == opAbort {
			return &PeerError{p.conn.RemoteAddr().String(), m.Why}
		}
	}
	return p.err
}

// Run runs one burst and returns what it came to. After an error the session
// can only be closed.
func (s *Session) Run(b Burst) (Point, error) {
	s.bursts <- b
	select {
	case o := <-s.points:
		return o.point, o.err
	case <-s.pair.gone:
	}
	// A loop inside a library cannot be interrupted: leave it behind.
	if o, came := mono.Await(s.points, grace); came {
		return o.point, o.err
	}
	return Point{}, s.pair.err
}

// Close ends the test on both ends.
func (s *Session) Close() error {
	close(s.bursts)
	select {
	case err := <-s.ended:
		return err
	case <-s.pair.gone:
	}
	if s.pair.bye.Load() { // so it should be
		return <-s.ended
	}
	if err, came := mono.Await(s.ended, grace); came {
		return err
	}
	return s.pair.err
}
