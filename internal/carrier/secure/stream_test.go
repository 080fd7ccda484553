package secure

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// pipe is one end of a stream in memory: what it sends is in out, what it receives in in.
type pipe struct {
	in, out []byte
	eof     bool // nothing follows in
	room    int  // bytes that out takes yet
	reset   bool // by the peer, which Recv finds, as the kernel's sockets do
	failed  bool // it has found it
	gone    bool // Close was called
	aborted bool // with abort
}

func (p *pipe) ID() fabric.StreamID { return 0 }
func (p *pipe) State() fabric.StreamState {
	if p.failed {
		return fabric.StreamFailed
	}
	return fabric.StreamOpen
}
func (p *pipe) Err() error             { return nil }
func (p *pipe) Local() netip.AddrPort  { return addrA }
func (p *pipe) Remote() netip.AddrPort { return addrB }
func (p *pipe) MSS() int               { return 1460 }
func (p *pipe) CloseWrite()            {}
func (p *pipe) Close(abort bool)       { p.gone, p.aborted = true, abort }
func (p *pipe) Send(bufs [][]byte) (n int) {
	for _, b := range bufs {
		k := min(len(b), p.room)
		p.out = append(p.out, b[:k]...)
		n, p.room = n+k, p.room-k
	}
	return n
}

func (p *pipe) Recv(dst []byte) (int, bool) {
	if p.failed = p.failed || p.reset; p.failed {
		return 0, false
	}
	n := copy(dst, p.in)
	p.in = p.in[n:]
	return n, n == 0 && p.eof
}

// streamEnd is an encrypted stream over a pipe.
type streamEnd struct {
	*stream
	pipe *pipe
}

func newStreamEnd(t *testing.T, r role, secret []byte, bits uint) *streamEnd {
	t.Helper()
	s, err := NewStreams(nil, Config{Secret: secret, KeyBits: bits})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipe{room: 1 << 30}
	return &streamEnd{s.add(p, r), p}
}

// pass moves what one has sent to the other.
func pass(from, to *streamEnd) {
	to.pipe.in = append(to.pipe.in, from.pipe.out...)
	from.pipe.out = nil
	to.moved()
}

// all receives until nothing comes.
func (e *streamEnd) all() (got []byte, eof bool) {
	b := make([]byte, 777)
	for {
		n, end := e.Recv(b)
		got = append(got, b[:n]...)
		if n == 0 {
			return got, end
		}
	}
}

func (e *streamEnd) say(t *testing.T, text string) {
	t.Helper()
	if n := e.Send([][]byte{[]byte(text)}); n != len(text) {
		t.Fatalf("%d of %d bytes are taken: %v", n, len(text), e.Err())
	}
}

// conversation returns two ends that have met, and what the first has sent for it.
func conversation(t *testing.T, bits uint) (a, b *streamEnd, greeted []byte) {
	t.Helper()
	a, b = newStreamEnd(t, dialer, counting(), bits), newStreamEnd(t, accepter, counting(), bits)
	greeted = bytes.Clone(a.pipe.out)
	pass(a, b)
	pass(b, a)
	if !a.opened || !b.opened {
		t.Fatal("they do not meet")
	}
	return a, b, greeted
}

// Whole texts arrive, whatever the carrier takes at a time, over changes of keys; nothing of
// them can be read on the way.
func TestStream_exchange(t *testing.T) {
	a, b, _ := conversation(t, 1)
	text := strings.Repeat("it can be read. ", 30_000)
	var got []byte
	for left := text; left != "" || len(a.pending) > 0; {
		a.pipe.room = 40_000
		left = left[a.Send([][]byte{[]byte(left)[:len(left)/3], []byte(left)[len(left)/3:]}):]
		if bytes.Contains(a.pipe.out, []byte("read")) {
			t.Fatal("it is in clear")
		}
		pass(a, b)
		more, _ := b.all()
		got = append(got, more...)
		a.push()
	}
	pass(a, b)
	more, _ := b.all()
	if string(append(got, more...)) != text {
		t.Error("another text arrives")
	}
	b.say(t, "answer")
	pass(b, a)
	if got, _ := a.all(); string(got) != "answer" {
		t.Errorf("%q comes back", got)
	}
	a.CloseWrite()
	pass(a, b)
	if got, eof := b.all(); len(got) != 0 || !eof {
		t.Errorf("the end is %q, %v", got, eof)
	}
}

// No byte can be changed, none left out, and the stream cannot be cut off: what is received is
// what was sent, up to where it fails.
func TestStream_tampered(t *testing.T) {
	const first, second = "the first record", "and the second"
	try := func(change func(wire []byte) []byte) (string, bool, error) {
		a, b, _ := conversation(t, 0)
		a.say(t, first)
		a.say(t, second)
		a.CloseWrite()
		a.pipe.out, b.pipe.eof = change(a.pipe.out), true
		pass(a, b)
		got, eof := b.all()
		return string(got), eof, b.Err()
	}
	got, eof, err := try(func(wire []byte) []byte { return wire })
	if got != first+second || !eof || err != nil {
		t.Fatalf("unchanged: %q, %v, %v", got, eof, err)
	}
	const whole = len(first) + len(second) + 3*(recordLen+TagLen)
	for i := range whole {
		for name, change := range map[string]func([]byte) []byte{
			"changed":  func(wire []byte) []byte { wire[i] ^= 1 << (i % 8); return wire },
			"left out": func(wire []byte) []byte { return append(wire[:i], wire[i+1:]...) },
			"the end":  func(wire []byte) []byte { return wire[:i] },
		} {
			got, eof, err := try(change)
			if !strings.HasPrefix(first+second, got) || eof || !errors.Is(err, ErrForged) && !errors.Is(err, ErrCutOff) {
				t.Errorf("byte %d is %s: %q, %v, %v", i, name, got, eof, err)
			}
		}
	}
	swap := func(wire []byte) []byte {
		n := recordLen + len(first) + TagLen
		return append(bytes.Clone(wire[n:]), wire[:n]...)
	}
	twice := func(wire []byte) []byte { return append(bytes.Clone(wire[:recordLen+len(first)+TagLen]), wire...) }
	for _, change := range []func([]byte) []byte{swap, twice} {
		if got, eof, err := try(change); got != "" && got != first || eof || !errors.Is(err, ErrForged) {
			t.Errorf("records in another order: %q, %v, %v", got, eof, err)
		}
	}
}

// What was recorded of a connection is good for no other, nor for the end that sent it; and
// ends with different secrets, or of which one does not encrypt, find that out.
func TestStream_replayed(t *testing.T) {
	a, b, greeted := conversation(t, 0)
	a.say(t, "once")
	wire := append(greeted, a.pipe.out...)
	pass(a, b)
	if got, _ := b.all(); string(got) != "once" {
		t.Fatalf("%q arrives", got)
	}
	for name, c := range map[string]struct {
		to   *streamEnd
		wire []byte
		want error
	}{
		"again":          {newStreamEnd(t, accepter, counting(), 0), wire, ErrForged},
		"mirrored":       {newStreamEnd(t, dialer, counting(), 0), nil, ErrForged},
		"next job":       {newStreamEnd(t, accepter, bytes.Repeat([]byte{9}, SecretLen), 0), wire, ErrForged},
		"no end of ours": {newStreamEnd(t, accepter, counting(), 0), []byte("MPA ID Req Frame"), ErrNotSecure},
	} {
		if c.wire == nil {
			c.wire = bytes.Clone(c.to.pipe.out)
			c.to.pipe.in = c.wire
			c.to.moved()
			c.to.say(t, "to myself")
			c.wire = c.to.pipe.out[len(c.wire):]
		}
		c.to.pipe.in = append(c.to.pipe.in, c.wire...)
		if got, _ := c.to.all(); len(got) != 0 || !errors.Is(c.to.Err(), c.want) || c.to.State() != fabric.StreamFailed {
			t.Errorf("%s: %q, %v; want %v", name, got, c.to.Err(), c.want)
		}
		if c.to.s.forged != 1 {
			t.Errorf("%s: %d are counted", name, c.to.s.forged)
		}
	}
}

// A stream that is closed with bytes pending stays until they are sent, whatever of its end the
// peer has sent by then, and goes when the peer resets or sends what nobody will read.
func TestStream_closedWhilePending(t *testing.T) {
	open := func() (a, b *streamEnd) {
		a, b, _ = conversation(t, 0)
		a.pipe.room = 10
		a.say(t, "it waits for room")
		a.Close(false)
		if a.pipe.gone || len(a.pending) == 0 {
			t.Fatal("it does not wait for room")
		}
		return a, b
	}
	for name, ends := range map[string]bool{"reset": false, "reset behind the end": true} {
		a, b := open()
		if ends {
			b.CloseWrite()
			pass(b, a)
		}
		if a.pipe.gone {
			t.Fatalf("%s: it is gone before", name)
		}
		a.pipe.reset = true
		if a.moved(); !a.pipe.gone {
			t.Errorf("%s: it stays", name)
		}
	}
	a, b := open()
	b.say(t, "nobody reads that")
	if pass(b, a); !a.pipe.gone || !a.pipe.aborted {
		t.Errorf("what arrives unread: gone %v, aborted %v", a.pipe.gone, a.pipe.aborted)
	}
	a, b = open()
	b.CloseWrite()
	for _, c := range b.pipe.out { // the end comes in pieces
		a.pipe.in = append(a.pipe.in, c)
		a.moved()
	}
	if a.pipe.gone {
		t.Fatal("it goes with bytes pending")
	}
	a.pipe.room = 1000
	a.moved()
	pass(a, b)
	if got, eof := b.all(); string(got) != "it waits for room" || !eof || !a.pipe.gone || a.pipe.aborted {
		t.Errorf("%q arrives, end %v; gone %v, aborted %v", got, eof, a.pipe.gone, a.pipe.aborted)
	}
}

// slow is a carrier whose only stream has room for a byte at each Poll, and at most most bytes.
type slow struct {
	fabric.Streams
	end  *streamEnd
	most int
}

func (s *slow) Poll(mono.Time, []fabric.StreamID) []fabric.StreamID {
	if s.most > 0 {
		s.most--
		s.end.pipe.room = 1
	}
	return []fabric.StreamID{0}
}

func (s *slow) Flush()       {}
func (s *slow) Close() error { return nil }

// What Send has taken of a stream that was closed is sent before the carrier closes, as TCP
// itself has it, unless that takes too long.
func TestStreams_closeSendsWhatIsPending(t *testing.T) {
	for _, most := range []int{1 << 20, 100} {
		a, b, _ := conversation(t, 0)
		a.s.Streams, a.s.linger = &slow{end: a, most: most}, 10*mono.Millisecond
		if most > 1000 {
			a.s.linger = 60 * mono.Second
		}
		text := strings.Repeat("x", 1000)
		a.pipe.room = 0
		a.say(t, text)
		a.Close(false)
		if err := a.s.Close(); err != nil {
			t.Fatal(err)
		}
		pass(a, b)
		if got, eof := b.all(); eof != (most > 1000) || eof && string(got) != text {
			t.Errorf("%d bytes of %d arrive, end %v", len(got), len(text), eof)
		}
	}
}
