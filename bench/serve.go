package bench

import (
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
)

// ServeConfig says what a server does. Its zero value serves whatever clients
// ask for, until the listener is closed.
type ServeConfig struct {
	Local
	// Expect are the configurations that the clients must come with, by
	// ConnectConfig.Index. Default: any.
	Expect []Expectation
	// Key is as in ConnectConfig: clients that do not have it are refused.
	Key []byte
	// Sessions is how many tests to serve. Default: no end.
	Sessions int
	// Silence is how long the other machine may answer nothing on the control
	// connection, while it has nothing to say too, before it counts as gone:
	// machines that lose their power say no goodbye. Default 30 s, at least 2 s.
	Silence time.Duration
	// Report is told how each session ended. Default: nil.
	Report func(error)
	// Abort ends this process when MPI asks for it. Default: the test fails.
	Abort func(code int, why string)
}

// Expectation is what a server was told to measure: Spec, but only those
// fields whose flags are in Given. The client decides about everything else.
type Expectation struct {
	Spec  Spec
	Given map[string]bool // by the names of the flags, and "test"
}

// check compares with what the client wants.
func (x Expectation) check(client Spec) error {
	var wrong []string
	for _, f := range []struct {
		flag       string
		mine, want any
	}{
		{"test", x.Spec.Test, client.Test},
		{"transport", x.Spec.Transport, client.Transport},
		{"fabric", x.Spec.Fabric, client.Fabric},
		{"mtu", x.Spec.MTU, client.MTU},
		{"size", x.Spec.Sizes, client.Sizes},
		{"iters", x.Spec.Iters, client.Iters},
		{"warmup", x.Spec.Warmup, client.Warmup},
		{"window", x.Spec.Window, client.Window},
		{"loss", x.Spec.Loss, client.Loss},
		{"op", x.Spec.Op, client.Op},
		{"peers", x.Spec.Peers, client.Peers},
		{"all", x.Spec.All, client.All},
		{"busy-poll", x.Spec.BusyPoll, client.BusyPoll},
		{"secure", x.Spec.Secure, client.Secure},
		{"crc", x.Spec.CRC, client.CRC},
		{"markers", x.Spec.Markers, client.Markers},
	} {
		if x.Given[f.flag] && !reflect.DeepEqual(f.mine, f.want) {
			wrong = append(wrong, fmt.Sprintf("%s is %v on the server and %v on the client", f.flag, f.mine, f.want))
		}
	}
	if wrong == nil {
		return nil
	}
	return usagef("the two ends disagree: %s; start both with the same flags", strings.Join(wrong, "; "))
}

// errNoHello says that a connection was not made by a client of ours.
var errNoHello = errors.New("no test was agreed on")

// Serve serves tests to the clients that connect to ln, until config.Sessions
// of them are over or ln is closed. It returns the errors of all sessions
// joined. Connections that do not agree on a test do not count.
func Serve(ln net.Listener, config ServeConfig) error {
	results := make(chan error)
	over := make(chan struct{})
	defer close(over)
	accepts := make(chan error, 1)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				accepts <- err
				return
			}
			go func() {
				err := serveConn(conn, config)
				select {
				case results <- err:
				case <-over:
				}
			}()
		}
	}()
	var errs []error
	for served := 0; config.Sessions == 0 || served < config.Sessions; {
		select {
		case err := <-results:
			if !errors.Is(err, errNoHello) {
				served++
				errs = append(errs, err)
			}
			if config.Report != nil {
				config.Report(err)
			}
		case err := <-accepts:
			if !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// serveConn serves one client. It returns at most grace after the client is
// gone, also when a loop inside a library cannot be interrupted.
func serveConn(conn net.Conn, config ServeConfig) error {
	if err := watch(conn, config.Silence); err != nil {
		conn.Close()
		return fmt.Errorf("%w with %s: %w", errNoHello, conn.RemoteAddr(), err)
	}
	conn, err := protect(conn, config.Key, false, math.MaxInt64) // a silent client holds nothing but this connection
	if err != nil {
		return fmt.Errorf("%w: %w", errNoHello, err)
	}
	p := newPair(conn, 0, config.Abort)
	defer p.close()
	p.key = boot.NewKey()
	done := make(chan error, 1)
	go func() { done <- config.enter(0, func() error { return serveSession(conn, p, config) }) }()
	select {
	case err := <-done:
		return err
	case <-p.gone:
	}
	if err, came := mono.Await(done, grace); came {
		return err
	}
	return p.err
}

func serveSession(conn net.Conn, p *Pair, config ServeConfig) error {
	e, err := agree(conn, p, config)
	if err != nil {
		p.refuse(err)
		return fmt.Errorf("%w with %s: %w", errNoHello, conn.RemoteAddr(), err)
	}
	bench, err := open(e)
	if err != nil {
		p.refuse(err)
		return err
	}
	err = p.because(serveBursts(p, e.Spec, bench))
	return errors.Join(err, p.end(bench, err))
}

// agree reads the client's hello and answers it.
func agree(conn net.Conn, p *Pair, config ServeConfig) (*End, error) {
	m, err := p.receive(opHello) // a silent client holds nothing but this connection
	if err != nil {
		return nil, err
	}
	if m.Spec == nil {
		return nil, errors.New("hello without a test")
	}
	if n := len(config.Expect); n > 0 {
		if m.Session >= n {
			return nil, usagef("the client wants to compare (--vs) and this server was not told what with: start both with the same flags")
		}
		if err := config.Expect[m.Session].check(*m.Spec); err != nil {
			return nil, err
		}
	}
	e, err := newEnd(conn, p, config.Local)
	if err != nil {
		return nil, err
	}
	e.Spec = *m.Spec
	if err := CheckKey(e.Spec, config.Key); err != nil {
		return nil, err
	}
	if err := e.Spec.Complete(e.Device.MTU); err != nil {
		return nil, err
	}
	if err := e.checkMTU(); err != nil {
		return nil, err
	}
	hello := message{Op: opHello, Version: protocolVersion, Key: p.key}
	if e.Spec.Secure {
		own := newPrivate()
		hello.Public = own.PublicKey().Bytes()
		if p.secret, err = agreeOn(own, m.Public); err != nil {
			return nil, err
		}
	}
	return e, p.send(hello)
}

// serveBursts runs bursts until the client says bye.
func serveBursts(p *Pair, spec Spec, bench Bench) error {
	var rec Recorder
	for {
		m, err := p.receive(opRun, opBye)
		if err != nil {
			return err
		}
		if m.Op == opBye {
			return nil
		}
		if !slices.Contains(spec.Sizes, m.Burst.Size) { // there are buffers for those only
			return fmt.Errorf("%s asks for size %d, which was not agreed on", p.conn.RemoteAddr(), m.Burst.Size)
		}
		rec.Reset(0)
		runtime.GC() // see Session.exchange
		if err := p.send(message{Op: opReady}); err != nil {
			return err
		}
		if err := bench.Run(*m.Burst, &rec); err != nil {
			return explain(err, bench)
		}
		p.linger(bench)
		if _, err := p.receive(opStop); err != nil {
			return err
		}
		lost := lossesOf(bench)
		if err := p.send(message{Op: opDone, Tally: rec.arrived, Losses: &lost}); err != nil {
			return err
		}
	}
}
