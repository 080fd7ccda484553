package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// abort ends the process when MPI asks for it.
func abort(code int, why string) {
	fmt.Fprintln(os.Stderr, "xperf: aborted:", why)
	os.Exit(code)
}

// serve serves whatever clients ask for until it is killed.
func (p *program) serve(o *options) error {
	return p.listen(o, bench.ServeConfig{Report: func(err error) {
		if err != nil {
			p.notice("%v", err)
		}
	}})
}

// launched is an error among the ranks of a job, where each would wait for a client.
func launched(o *options) error {
	for _, name := range []string{config.EnvSize, pmi.EnvSize, "OMPI_COMM_WORLD_SIZE"} {
		if n, _ := strconv.Atoi(os.Getenv(name)); n > 1 { // one alone may have a launcher: srun takes it to its host
			return fmt.Errorf("%w: a launcher has started %d xperf (%s), which makes its ranks itself: without the launcher "+
				"run `xperf %s --testbed`, or on one host `xperf %[4]s` and on another one `xperf %[4]s HOST`", bench.ErrUsage, n, name, o.command)
		}
	}
	return nil
}

// server serves one client, with --vs both of its configurations.
func (p *program) server(o *options) error {
	if err := launched(o); err != nil {
		return err
	}
	var config bench.ServeConfig
	for _, c := range o.configurations() {
		config.Expect = append(config.Expect, bench.Expectation{Spec: c.spec, Given: c.given})
	}
	config.Sessions = len(config.Expect)
	failed := false
	config.Report = func(err error) {
		if err != nil && !failed {
			p.notice("%v", err)
		}
	}
	return p.listen(o, config)
}

func (p *program) listen(o *options, config bench.ServeConfig) error {
	config.Local, config.Key = bench.Local{Device: o.device, Cores: o.cores}, o.key
	for _, name := range o.netns {
		config.Hosts = append(config.Hosts, func(fn func() error) error { return testbed.DoIn(name, fn) })
	}
	config.Abort = abort
	addr, err := o.controlAddr()
	if err != nil {
		return err
	}
	ln, err := net.Listen(bench.Network(addr, o.spec.IPv6), addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("control port: %w (another xperf may be running; choose with --port)", err)
	} else if err != nil {
		return fmt.Errorf("control port: %w", err)
	}
	defer ln.Close()
	if _, err := fmt.Fprintf(p.out, "listening %v %s\n", ln.Addr(), o.listening(addr)); err != nil {
		return err
	}
	return bench.Serve(ln, config)
}

// controlAddr returns what the control port of a server is bound to: the address
// of its device, if it was told which.
func (o *options) controlAddr() (string, error) {
	port := strconv.Itoa(o.port)
	listen := o.listen
	if listen != "" {
		listen = withPort(listen, port)
	}
	if o.device == "" {
		return cmp.Or(listen, ":"+port), nil
	}
	ipv6 := bench.Network(listen, o.spec.IPv6) == "tcp6"
	_, addr, err := bench.FindDevice(o.device, ipv6)
	if err != nil && !ipv6 { // it may have none but of IPv6
		if _, other, err := bench.FindDevice(o.device, true); err == nil {
			return cmp.Or(listen, net.JoinHostPort(other.String(), port)), nil
		}
	}
	return cmp.Or(listen, net.JoinHostPort(addr.String(), port)), err
}

// withPort adds a port to an address or name that has none. One of IPv6 may have
// brackets, as it has where a port follows.
func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if inside, closed := strings.CutSuffix(strings.TrimPrefix(host, "["), "]"); closed && strings.HasPrefix(host, "[") {
		host = inside
	}
	return net.JoinHostPort(host, port)
}

// listening says what a server serves at an address.
func (o *options) listening(addr string) string {
	where := "the device of each client's connection"
	if o.device != "" {
		where = "device " + o.device
	} else if strings.HasPrefix(addr, ":") {
		where = "any device (--device or --listen narrow that)"
	}
	what, fabric := "any test", "the client's fabric"
	if o.command != "serve" {
		what = o.command
	}
	if o.given["fabric"] {
		fabric = o.spec.Fabric
	}
	return fmt.Sprintf("for %s over %s, %s", what, fabric, where)
}

// client measures against a server on another machine.
func (p *program) client(o *options) error {
	return p.each(o, func(i int, c *options) (*bench.Session, error) {
		s, err := bench.Connect(context.Background(), c.spec, bench.ConnectConfig{
			Local: bench.Local{Device: c.device, Cores: c.cores, Capture: c.capture},
			Addr:  o.address(), Key: o.key, Index: i, Timeout: o.timeout, Abort: abort,
		})
		if err == nil {
			s.Place = "server " + o.address()
		}
		return s, err
	})
}

// onTestbed measures between two ends on this machine, each configuration on
// hosts of its own.
func (p *program) onTestbed(o *options) error {
	return p.each(o, func(_ int, c *options) (*bench.Session, error) {
		if err := p.withoutRoot(c); err != nil {
			return nil, err
		}
		place, err := p.openPlace(c)
		if err != nil {
			return nil, err
		}
		return p.connect(place, c.spec, c.capture)
	})
}

// each opens a session for each configuration, and measures them.
func (p *program) each(o *options, open func(i int, c *options) (*bench.Session, error)) error {
	var sessions []*bench.Session
	for i, c := range o.configurations() {
		s, err := open(i, c)
		if err != nil {
			return errors.Join(err, closeAll(sessions))
		}
		sessions = append(sessions, s)
	}
	return errors.Join(p.measure(o, sessions), closeAll(sessions))
}

// withoutRoot makes the best of it when there can be no testbed: both ends on
// loopback, over kernel sockets. A fabric that was asked for is not replaced.
func (p *program) withoutRoot(o *options) error {
	switch {
	case bench.Root():
		return nil
	case onXDP(o) && o.given["fabric"]:
		return fmt.Errorf("--fabric %s: AF_XDP between two hosts of this machine: %w", o.spec.Fabric, testbed.ErrPermission)
	case onXDP(o) && o.spec.Transport == "rc":
		o.spec.Fabric = "tcp"
	case onXDP(o):
		o.spec.Fabric = "udp"
	}
	p.notice("not root: no network namespaces and no AF_XDP, so both ends run on loopback of this host, %s over %s", o.spec.Test, o.spec.Fabric)
	return nil
}

func (p *program) openPlace(o *options) (*bench.Place, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.progress("setting up " + o.command)
	oneHost := o.spec.Fabric == "shm" // shared memory reaches no other
	peers := 1                        // over kernel sockets they are ports of one host, over rc connections
	if onXDP(o) && o.spec.Transport != "rc" {
		peers = o.spec.Peers
	}
	place, err := bench.OpenPlace(bench.PlaceConfig{
		Server: []string{self, "serve"}, Loopback: !bench.Root() || oneHost, MTU: o.spec.MTU, IPv6: o.spec.IPv6, Switch: o.joined, Cores: o.cores, Peers: peers,
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.places = append(p.places, place)
	p.mu.Unlock()
	return place, nil
}

// connect opens a test with the server of a place. This end writes the file
// capture, unless that is "".
func (p *program) connect(place *bench.Place, spec bench.Spec, capture string) (*bench.Session, error) {
	config := place.Client
	config.Abort, config.Capture = abort, capture
	s, err := bench.Connect(place.Context, spec, config)
	if err != nil {
		return nil, err
	}
	s.Place = place.Name
	return s, nil
}

// closePlaces removes all testbeds.
func (p *program) closePlaces() {
	p.mu.Lock()
	places := p.places
	p.places = nil
	p.mu.Unlock()
	for _, place := range places {
		if err := place.Close(); err != nil {
			p.notice("cleaning up: %v", err)
		}
	}
}

func closeAll(sessions []*bench.Session) error {
	var errs []error
	for _, s := range sessions {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// measure measures and prints.
func (p *program) measure(o *options, sessions []*bench.Session) error {
	if !o.json {
		if err := bench.WriteHeader(p.out, sessions); err != nil {
			return err
		}
	} else {
		for _, s := range sessions {
			for _, note := range s.Notes {
				p.notice("%s: %s", s.Spec.Test, note)
			}
		}
	}
	m := bench.Measurement{Rounds: o.rounds, Duration: o.duration, Quick: len(sessions) > 1 || o.duration > 0, Progress: p.progress}
	err := m.Measure(sessions, func(row bench.Row) error {
		p.clear()
		p.keep(row)
		if o.json {
			return row.WriteJSON(p.out)
		}
		return row.WriteText(p.out, sessions)
	})
	return errors.Join(err, p.draw(o))
}
