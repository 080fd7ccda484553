package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// site is where the two ends of a test of this package run.
type site struct {
	server, client Local
	listen         string
}

// loopback has both ends on this host.
func loopback(*testing.T) site { return site{listen: "127.0.0.1:0"} }

// hosts has the ends on two hosts of a testbed.
func hosts(t *testing.T, mtu int) site {
	t.Helper()
	bed := hosttest.New(t, testbed.Config{Hosts: 2, MTU: mtu})
	a, b := bed.Hosts[0], bed.Hosts[1]
	return site{Local{Device: a.Dev, Enter: a.Do}, Local{Device: b.Dev, Enter: b.Do}, a.Addr.String() + ":0"}
}

// serve starts a server and returns its address. It ends with the test.
func (s site) serve(t *testing.T, config ServeConfig) string {
	t.Helper()
	var ln net.Listener
	listen := func() (err error) {
		ln, err = net.Listen("tcp4", s.listen)
		return err
	}
	enter := s.server.Enter
	if enter == nil {
		enter = func(fn func() error) error { return fn() }
	}
	if err := enter(listen); err != nil {
		t.Fatal(err)
	}
	config.Local = s.server
	done := make(chan error)
	go func() { done <- Serve(ln, config) }()
	t.Cleanup(func() {
		ln.Close()
		if err := <-done; err != nil {
			t.Log("server:", err)
		}
	})
	return ln.Addr().String()
}

// open opens a test between the two ends.
func (s site) open(t *testing.T, spec Spec) *Session {
	t.Helper()
	addr := s.serve(t, ServeConfig{})
	session, err := Connect(t.Context(), spec, ConnectConfig{Local: s.client, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error("closing:", err)
		}
	})
	return session
}

// brief makes a test take little time.
func brief(test, fabric string, sizes ...int) Spec {
	return Spec{Test: test, Fabric: fabric, Iters: 100, Warmup: 10, Window: 16, Sizes: sizes}
}

// check measures s and judges whether the results are possible.
func check(t *testing.T, s *Session) {
	t.Helper()
	rows := 0
	err := Measurement{}.Measure([]*Session{s}, func(r Row) error {
		rows++
		x := r.Results[0]
		if x.Carrier == "" || x.MTU == 0 || x.Iters < s.Spec.Iters || x.Rounds != 1 {
			t.Errorf("incomplete result %+v", x)
		}
		if onXDP := strings.Contains(x.Carrier, "xdp/") && x.Transport != "rc"; onXDP && !strings.Contains(x.Detail, " queue") {
			t.Errorf("%s on %q: want device and queues", x.Carrier, x.Detail)
		}
		if x.Msgs <= 0 || x.Size > 0 && x.Gbit <= 0 {
			t.Errorf("no messages: %+v", x)
		}
		if (x.Lat != nil) != s.Case.Kind.Latency() {
			t.Errorf("latency %+v of %s", x.Lat, x.Test)
		}
		if l := x.Lat; l != nil && !(0 < l.Min && l.Min <= l.P50 && l.P50 <= l.P99 && l.P99 <= l.P999 && l.P999 <= l.Max && l.Min <= l.Avg && l.Avg <= l.Max) {
			t.Errorf("latency %+v", *l)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if rows != len(s.Spec.Sizes) {
		t.Errorf("%d rows for %d sizes", rows, len(s.Spec.Sizes))
	}
}

// specs returns what a case can be asked for over a fabric: brief tests with
// the sizes of messages that are sent inline, in one frame and in several, as
// far as the case can send them.
func specs(c Case, fabric string) map[string]Spec {
	all := map[string]Spec{}
	for _, transport := range append(Transports(), "") {
		s := brief(c.Name, fabric)
		s.Transport = transport
		if c.Kind.Latency() { // each waits for the one before, and on a busy machine for a turn of the other end
			s.Iters, s.Warmup = 20, 2
		}
		if s.Check() != nil {
			continue
		}
		switch {
		case c.Family == Raw && fabric == "tcp":
			s.Sizes = []int{8, 1400, 100_000}
		case c.Family == Raw && c.Kind.Latency():
			s.Sizes = []int{64, 1400, 2900}
		case c.Family == Raw || c.OneWord():
		case c.Family == Send && transport == "ud":
			s.Sizes = []int{8, 1400}
		default:
			s.Sizes = []int{8, 2000, 50_000}
		}
		all[s.Transport] = s
	}
	return all
}

// everyCase runs all cases over fabrics and transports, but those of fabrics to skip.
func everyCase(t *testing.T, s site, skip func(fabric string) bool) {
	all := func(Spec) bool { return true }
	chosen(slices.DeleteFunc(Fabrics(), skip), all, func(c Case, fabric, transport string, spec Spec) {
		t.Run(c.Name+"/"+fabric+"/"+transport, func(t *testing.T) { check(t, s.open(t, spec)) })
	})
}

// chosen calls do with each case on each transport that it has, with each fabric on each
// transport, and, if XWARP_LONG is set, with all other combinations, of those that may be.
// With the race detector a case on one transport will do.
func chosen(fabrics []string, may func(Spec) bool, do func(c Case, fabric, transport string, spec Spec)) {
	every, had := os.Getenv("XWARP_LONG") == "1", map[string]bool{}
	for i, c := range Cases() {
		for j := range fabrics {
			fabric := fabrics[(i+j)%len(fabrics)] // each is the first one of some cases
			all := specs(c, fabric)
			for _, transport := range slices.Sorted(maps.Keys(all)) {
				of, on := c.Name+"/"+transport, fabric+" "+transport
				if slow {
					of = c.Name
				}
				if may(all[transport]) && (every || !had[of] || !had[on]) {
					had[of], had[on] = true, true
					do(c, fabric, transport, all[transport])
				}
			}
		}
	}
}

func TestCases_loopback(t *testing.T) {
	everyCase(t, loopback(t), func(fabric string) bool { return strings.HasPrefix(fabric, "xdp") })
}

func TestCases_testbed(t *testing.T) {
	everyCase(t, hosts(t, 3000), func(fabric string) bool { return fabric == "shm" }) // which reaches no other host
}

// Frames that are lost must not stop a test. Where nobody sends them again
// they are counted.
func TestCases_loss(t *testing.T) {
	site := hosts(t, 9000)
	for _, c := range Cases() {
		for transport, spec := range specs(c, "xdp") {
			if spec.connects() {
				continue // TCP's own affair
			}
			t.Run(c.Name+"/"+transport, func(t *testing.T) {
				spec.Loss = 0.1
				s := site.open(t, spec)
				check(t, s)
				if transport == "rd" || c.OfMPI() {
					return
				}
				size := s.Spec.Sizes[len(s.Spec.Sizes)-1]
				n := 1000
				if c.Kind.Latency() {
					n = 100 // each that is lost takes 10 ms, and of large ones most are
				}
				p, err := s.Run(Burst{Size: size, Iters: n, Warmup: 16, Window: 16})
				if err != nil || p.Lost == 0 && whole(p) == 1 {
					t.Errorf("%d messages lost of %d (%v); a tenth should be", p.Lost, n, err)
				}
			})
		}
	}
}

// whole returns the share of whole Write-Records, and 1 for other messages.
func whole(p Point) float64 {
	if p.Sent == nil || p.Sent.Whole == nil {
		return 1
	}
	return *p.Sent.Whole
}

func TestMeasure_interleaves(t *testing.T) {
	site := loopback(t)
	a := site.open(t, brief("raw_lat", "udp", 8, 16))
	b := site.open(t, brief("raw_lat", "tcp", 32, 64))
	var order []string
	m := Measurement{Rounds: 3, Progress: func(what string) {
		name, _, _ := strings.Cut(what, ":")
		order = append(order, strings.TrimPrefix(name, "raw_lat over kernel "))
	}}
	var out, text bytes.Buffer
	if err := WriteHeader(&text, []*Session{a, b}); err != nil {
		t.Fatal(err)
	}
	err := m.Measure([]*Session{a, b}, func(r Row) error {
		return errors.Join(r.WriteJSON(&out), r.WriteText(&text, []*Session{a, b}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, " "), "UDP TCP TCP UDP UDP TCP UDP TCP TCP UDP UDP TCP"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines of JSON, want 6:\n%s", len(lines), out.String())
	}
	var q Ratio
	if err := json.Unmarshal([]byte(lines[2]), &q); err != nil || q.Ratio <= 0 || q.Low > q.Ratio || q.High < q.Ratio {
		t.Errorf("ratio %+v, %v", q, err)
	}
	if n := strings.Count(text.String(), "\n"); n != 6 {
		t.Errorf("%d lines of text, want 4 of header and 2 rows:\n%s", n, text.String())
	}
}

// The keys and types that programs rely on.
func TestResult_schema(t *testing.T) {
	s := loopback(t).open(t, brief("raw_lat", "tcp", 8))
	var out bytes.Buffer
	err := Measurement{}.Measure([]*Session{s}, func(r Row) error { return r.WriteJSON(&out) })
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(out.Bytes(), &m); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("not one object on one line: %v: %s", err, out.String())
	}
	for _, key := range []string{"test", "transport", "fabric", "carrier"} {
		if _, ok := m[key].(string); !ok {
			t.Errorf("%s is %v, want a string", key, m[key])
		}
	}
	for _, key := range []string{"mtu", "size", "iters", "gbit_s", "msg_s", "lost", "rounds"} {
		if _, ok := m[key].(float64); !ok {
			t.Errorf("%s is %v, want a number", key, m[key])
		}
	}
	lat, _ := m["lat_us"].(map[string]any)
	for _, key := range []string{"min", "p50", "p99", "p999", "max", "avg", "stdev"} {
		if v, ok := lat[key].(float64); !ok || v <= 0 {
			t.Errorf("lat_us.%s is %v, want a positive number", key, lat[key])
		}
	}
	if len(m) != 12 || len(lat) != 7 {
		t.Errorf("%d and %d keys, want 12 and 7: describe new ones here and in the help", len(m), len(lat))
	}
}

func TestConnect_nobodyThere(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	_, err = Connect(t.Context(), brief("raw_lat", "udp"), ConnectConfig{Addr: addr, Timeout: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no xperf server answers at "+addr) {
		t.Errorf("got %v", err)
	}
}

func TestConnect_silentServer(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp4", ln.Addr().String()) // for which a busy machine may need more than 50 ms
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{Spec: brief("raw_lat", "udp"), pair: newPair(conn, 1, nil)}
	defer s.pair.close()
	_, err = s.open(conn, ConnectConfig{Addr: ln.Addr().String(), Timeout: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "does not answer within 50ms") {
		t.Errorf("got %v", err)
	}
}

func TestConnect_serverProcessDied(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the server end exited")
	cancel(why)
	_, err := Connect(ctx, brief("raw_lat", "udp"), ConnectConfig{Addr: "127.0.0.1:1"})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestServe_disagreement(t *testing.T) {
	mine := brief("raw_lat", "tcp")
	if err := mine.Check(); err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 1)
	addr := loopback(t).serve(t, ServeConfig{
		Expect: []Expectation{{Spec: mine, Given: map[string]bool{"test": true, "fabric": true, "window": true}}},
		Report: func(err error) { reported <- err },
	})
	theirs := brief("raw_bw", "udp", 8)
	theirs.Iters = 77 // the server was not told: no disagreement
	_, err := Connect(t.Context(), theirs, ConnectConfig{Addr: addr})
	var peer *PeerError
	if !errors.As(err, &peer) {
		t.Fatalf("got %v", err)
	}
	want := "test is raw_lat on the server and raw_bw on the client; fabric is tcp on the server and udp on the client; start"
	if !strings.Contains(peer.Why, want) || strings.Contains(peer.Why, "iters") {
		t.Errorf("client: %v", err)
	}
	if err := <-reported; !strings.Contains(err.Error(), want) {
		t.Errorf("server: %v", err)
	}
	_, err = Connect(t.Context(), brief("raw_lat", "tcp"), ConnectConfig{Addr: addr, Index: 1})
	if !errors.As(err, &peer) || !strings.Contains(peer.Why, "--vs") {
		t.Errorf("second configuration: %v", err)
	}
}

// A server for one test ends after it, not after a connection that is none.
func TestServe_ends(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error)
	go func() { done <- Serve(ln, ServeConfig{Sessions: 1}) }()
	stray, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	stray.Close()
	s, err := Connect(t.Context(), brief("raw_lat", "udp", 8), ConnectConfig{Addr: ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client that dies in the middle of a burst must not leave the server stuck.
func TestServe_clientDies(t *testing.T) {
	reported := make(chan error, 1)
	addr := loopback(t).serve(t, ServeConfig{Report: func(err error) { reported <- err }})
	s, err := Connect(t.Context(), brief("raw_lat", "tcp", 8), ConnectConfig{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = s.Run(Burst{Size: 8, Iters: MaxIters, Window: 1}) }()
	time.Sleep(20 * time.Millisecond) // in the burst, or about to be: both must work
	s.pair.close()
	if err := <-reported; err == nil {
		t.Error("the server noticed nothing")
	}
}

// A client whose machine loses its power says nothing any more, not even that.
// The server gives its device back, and serves the next one.
func TestServe_clientVanishes(t *testing.T) {
	bed := hosttest.New(t, testbed.Config{Hosts: 2})
	a, b := bed.Hosts[0], bed.Hosts[1]
	s := site{Local{Device: a.Dev, Enter: a.Do}, Local{Device: b.Dev, Enter: b.Do}, a.Addr.String() + ":0"}
	reported := make(chan error, 1)
	addr := s.serve(t, ServeConfig{Silence: time.Second, Report: func(err error) { reported <- err }})
	client := ConnectConfig{Local: s.client, Addr: addr, Silence: time.Second}
	for _, c := range []struct {
		name     string
		inABurst bool
	}{{"between bursts", false}, {"in a burst", true}} {
		session, err := Connect(t.Context(), brief("raw_lat", "xdp", 64), client)
		if err != nil {
			t.Fatalf("before one vanishes %s: %v", c.name, err)
		}
		ran := make(chan error, 1)
		if c.inABurst {
			go func() {
				_, err := session.Run(Burst{Size: 64, Iters: MaxIters, Window: 1})
				ran <- err
			}()
		} else {
			ran <- errors.New("it was not in one")
		}
		if err := b.SetUp(false); err != nil {
			t.Fatal(err)
		}
		if err := <-reported; !errors.Is(err, ErrPeerLost) {
			t.Errorf("%s: the server says %v", c.name, err)
		}
		if err := <-ran; err == nil {
			t.Errorf("%s: it ended well", c.name)
		}
		if err := session.Close(); err == nil {
			t.Errorf("%s: the client noticed nothing", c.name)
		}
		if err := b.SetUp(true); err != nil {
			t.Fatal(err)
		}
	}
	session, err := Connect(t.Context(), brief("raw_lat", "xdp", 64), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-reported; err != nil {
		t.Error(err)
	}
}

// A test is closed when the server has given its device back, too: the next one
// takes it.
func TestClose_waitsForTheServer(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var freed atomic.Bool
	served := make(chan error, 1)
	go func() {
		served <- func() error {
			conn, err := ln.Accept()
			if err != nil {
				return err
			}
			p := newPair(conn, 0, nil)
			defer p.close()
			e, err := agree(conn, p, ServeConfig{})
			if err != nil {
				return err
			}
			bench, err := open(e)
			if err != nil {
				return err
			}
			err = serveBursts(p, e.Spec, bench)
			time.Sleep(50 * time.Millisecond) // the client has ended by now, were it not to wait
			err = errors.Join(err, bench.Close())
			freed.Store(true)
			return err
		}()
	}()
	s, err := Connect(t.Context(), brief("raw_lat", "udp", 8), ConnectConfig{Addr: ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !freed.Load() {
		t.Error("closed before the server had closed its end")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServe_burstOfAnotherSize(t *testing.T) {
	addr := loopback(t).serve(t, ServeConfig{})
	s, err := Connect(t.Context(), brief("raw_lat", "tcp", 8), ConnectConfig{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(Burst{Size: 1 << 20, Iters: 1, Window: 1})
	if peer, ok := errors.AsType[*PeerError](err); !ok || !strings.Contains(peer.Why, "not agreed on") {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err == nil {
		t.Error("the session was closed without an error")
	}
}

func TestEnd_errors(t *testing.T) {
	addr := loopback(t).serve(t, ServeConfig{})
	for _, c := range []struct {
		name   string
		spec   Spec
		device string
		want   string
	}{
		{"no such device", brief("raw_lat", "udp"), "nosuch0", "nosuch0"},
		{"MTU above the device's", Spec{Test: "raw_lat", Fabric: "udp", MTU: 65535, Warmup: -1}, "", ""},
		{"no Ethernet", brief("raw_lat", "xdp"), "", "no Ethernet"},
		{"MTU that sockets do not have", Spec{Test: "raw_lat", Fabric: "tcp", MTU: 1500}, "", "kernel sockets use the MTU"},
	} {
		s, err := Connect(t.Context(), c.spec, ConnectConfig{Local: Local{Device: c.device}, Addr: addr})
		if err == nil {
			err = s.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
