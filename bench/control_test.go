package bench

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

var _ boot.Job = (*Pair)(nil)

// newPairs returns both ends of a control connection.
func newPairs(t *testing.T) (server, client *Pair) {
	t.Helper()
	a, b := net.Pipe()
	server, client = newPair(a, 0, nil), newPair(b, 1, nil)
	t.Cleanup(func() { server.close(); client.close() })
	return server, client
}

// both runs two functions at once and returns their errors.
func both(f, g func() error) (error, error) {
	done := make(chan error)
	go func() { done <- f() }()
	err := g()
	return <-done, err
}

func TestPair_fence(t *testing.T) {
	server, client := newPairs(t)
	for _, p := range []*Pair{server, client} {
		if err := p.Put("name", []string{"server", "client"}[p.Rank()]); err != nil {
			t.Fatal(err)
		}
		if _, ok := p.Get(0, "name"); ok {
			t.Error("a value is visible before the fence")
		}
	}
	if a, b := both(server.Fence, client.Fence); a != nil || b != nil {
		t.Fatal(a, b)
	}
	for _, p := range []*Pair{server, client} {
		s, _ := p.Get(0, "name")
		c, _ := p.Get(1, "name")
		if s != "server" || c != "client" {
			t.Errorf("rank %d: got %q and %q", p.Rank(), s, c)
		}
	}
	if _, ok := server.Get(2, "name"); ok {
		t.Error("there is no rank 2")
	}
	if _, err := server.peerValue("nothing"); err == nil {
		t.Error("a value that nobody put")
	}
}

func TestPair_abortReachesPeer(t *testing.T) {
	server, client := newPairs(t)
	aborted := ""
	server.abort = func(_ int, why string) { aborted = why }
	server.Abort(3, "out of luck")
	err := client.Fence()
	if peer, ok := errors.AsType[*PeerError](err); !ok || peer.Why != "out of luck" || aborted != "out of luck" {
		t.Errorf("client: %v, server: %q", err, aborted)
	}
}

func TestPair_lostPeer(t *testing.T) {
	server, client := newPairs(t)
	if client.Spoken() {
		t.Error("spoken before anything was said")
	}
	server.close()
	if err := client.Fence(); !errors.Is(err, ErrPeerLost) {
		t.Errorf("got %v", err)
	}
	<-client.gone
	for !client.Spoken() || !client.Over() {
	}
}

func TestPair_unexpectedMessage(t *testing.T) {
	server, client := newPairs(t)
	go func() { _ = server.send(message{Op: opReady}) }()
	if _, err := client.receive(opDone); err == nil || !strings.Contains(err.Error(), "ready") {
		t.Errorf("got %v", err)
	}
}

func TestPair_foreignPeer(t *testing.T) {
	a, b := net.Pipe()
	p := newPair(a, 0, nil)
	defer p.close()
	go func() { _, _ = b.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }()
	if _, err := p.receive(opHello); err == nil || !strings.Contains(err.Error(), "not a message of xperf") {
		t.Errorf("got %v", err)
	}
}

func TestParseMessage_errors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"op":"hello","version":2}`, "use the same xperf"},
		{`{"op":"hello","version":3,"session":-1}`, "session"},
		{`{"op":"hello","version":3,"spec":{"test":"x"}}`, "there is no test"},
		{`{"op":"run"}`, "without a burst"},
		{`{"op":"run","burst":{"size":-1,"iters":1,"window":1}}`, "size"},
		{`{"op":"run","burst":{"size":8,"iters":0,"window":1}}`, "iterations"},
		{`{"op":"run","burst":{"size":8,"iters":1,"warmup":-1,"window":1}}`, "warm-up"},
		{`{"op":"run","burst":{"size":8,"iters":1}}`, "window"},
		{`{"op":"done","tally":{"messages":-1}}`, "impossible tally"},
		{`{"op":"dance"}`, "unknown"},
		{`[]`, "not a message"},
	} {
		if _, err := parseMessage([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.line, err, c.want)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"op":"hello","version":3,"spec":{"test":"raw_lat","sizes":[64]},"key":"7"}`))
	f.Add([]byte(`{"op":"run","burst":{"size":8,"iters":1,"warmup":0,"window":1}}`))
	f.Add([]byte(`{"op":"done","tally":{"messages":9,"whole":3,"bytes":4000,"elapsed_ns":5,"records":true}}`))
	f.Add([]byte(`{"op":"fence","values":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseMessage(line)
		if err != nil {
			return
		}
		if m.Burst != nil && m.Op == opRun && m.Burst.check() != nil {
			t.Fatalf("accepted %+v", *m.Burst)
		}
		if m.Op == opHello && m.Spec != nil {
			if err := m.Spec.Check(); err != nil {
				t.Fatalf("accepted %+v: %v", *m.Spec, err)
			}
			_ = m.Spec.Complete(1500) // must not panic
		}
	})
}
