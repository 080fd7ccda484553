package conform

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// streamRig is two ends of a network of streams.
type streamRig struct {
	t      *testing.T
	net    StreamNet
	a, b   *streamEnd
	asleep bool
	stuff  []byte // what all streams carry, again and again
}

// stuffLen is prime, so that nothing that is cut evenly repeats itself.
const stuffLen = 65521

// streamEnd is one of the two carriers, and a program on it that obeys the
// contract: it uses a stream when Poll has named it, and not otherwise.
type streamEnd struct {
	fabric.Streams
	rig       *streamRig
	host      int
	addr      netip.Addr
	conns     []*conn     // by number
	listeners []*listener // by number
	ready     []fabric.StreamID
	buf       []byte
	sizes     int // Recv calls so far
	closed    bool
}

// conn is a stream with what it has to do.
type conn struct {
	fabric.Stream
	end        *streamEnd
	cuts       []int // lengths of the buffers to send, in turn
	turn       int
	offered    int64 // bytes to send
	sent, got  int64
	appetite   int64 // bytes to receive in all
	short      bool  // the last Send took less than it was given
	eof        bool
	txAt, rxAt int // where in stuff each direction begins
	scratch    []byte
	bufs       [][]byte
}

// listener is a fabric.Listener with what has come in.
type listener struct {
	fabric.Listener
	end *streamEnd
	in  []*conn
}

const everything = int64(1) << 62

func newStreamRig(t *testing.T, net StreamNet, asleep bool) *streamRig {
	if net.Clock == nil {
		net.Clock = mono.Real{}
	}
	if net.Step == nil {
		net.Step = func(int) {}
	}
	if net.On == nil {
		net.On = func(_ int, fn func() error) error { return fn() }
	}
	r := &streamRig{t: t, net: net, asleep: asleep, stuff: make([]byte, stuffLen)}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range r.stuff {
		r.stuff[i] = byte(rng.Uint32())
	}
	r.a, r.b = r.newEnd(0), r.newEnd(1)
	return r
}

func (r *streamRig) newEnd(host int) *streamEnd {
	s, under, err := r.net.Open(host)
	if err != nil {
		r.t.Fatal(err)
	}
	e := &streamEnd{Streams: s, rig: r, host: host, addr: s.Addr(), buf: make([]byte, 100_003)}
	if r.net.Addr != nil {
		e.addr = r.net.Addr(host)
	}
	r.t.Cleanup(func() {
		e.close()
		for _, u := range under {
			if err := u.Close(); err != nil {
				r.t.Error(err)
			}
		}
	})
	return e
}

// close closes the carrier, once.
func (e *streamEnd) close() {
	if !e.closed {
		e.closed = true
		if err := e.Close(); err != nil {
			e.rig.t.Error(err)
		}
	}
}

// until lets both ends work until done. What never happens makes it hang.
func (r *streamRig) until(done func() bool) {
	for idle := 0; !done(); {
		if r.a.poll()+r.b.poll() > 0 {
			idle = 0
			continue
		}
		if !done() {
			idle++
			r.rest(idle)
		}
	}
}

// rest is what an engine does when nothing is to be done.
func (r *streamRig) rest(idle int) {
	if !r.asleep {
		r.net.Step(idle)
		return
	}
	var fds []unix.PollFd
	until := mono.Never
	for _, e := range []*streamEnd{r.a, r.b} {
		if e.closed {
			continue
		}
		if fd := e.FD(); fd >= 0 {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		until = min(until, e.Deadline())
	}
	var timeout *unix.Timespec
	if until != mono.Never {
		ts := unix.NsecToTimespec(max(0, int64(until.Sub(r.net.Clock.Now()))))
		timeout = &ts
	}
	if _, err := unix.Ppoll(fds, timeout, nil); err != nil && err != unix.EINTR {
		r.t.Fatal(err)
	}
}

// poll is one step of an engine, and returns how much there was to do.
func (e *streamEnd) poll() (work int) {
	if e.closed {
		return 0
	}
	e.ready = e.Poll(e.rig.net.Clock.Now(), e.ready[:0])
	for _, id := range e.ready {
		if int(id) < len(e.listeners) && e.listeners[id] != nil {
			work += e.listeners[id].open()
		}
		if int(id) < len(e.conns) && e.conns[id] != nil {
			work += e.conns[id].transmit()
		}
	}
	e.Flush()
	return work
}

// adopt makes the program of this end look after a stream.
func (e *streamEnd) adopt(s fabric.Stream) *conn {
	id := s.ID()
	if id < 0 || id > 100_000 {
		e.rig.t.Fatalf("a stream has the number %d: want small ones", id)
	}
	e.grow(id)
	if e.conns[id] != nil || e.listeners[id] != nil {
		e.rig.t.Fatalf("the number %d is given out twice", id)
	}
	c := &conn{Stream: s, end: e, appetite: everything, cuts: []int{stuffLen}}
	e.conns[id] = c
	return c
}

func (e *streamEnd) grow(id fabric.StreamID) {
	for len(e.conns) <= int(id) {
		e.conns = append(e.conns, nil)
		e.listeners = append(e.listeners, nil)
	}
}

// listen opens a listener at a port of this end's address.
func (e *streamEnd) listen(port uint16) *listener {
	return e.listenAt(netip.AddrPortFrom(e.addr, port))
}

func (e *streamEnd) listenAt(at netip.AddrPort) *listener {
	l, err := e.tryListen(at)
	if err != nil {
		e.rig.t.Fatal(err)
	}
	e.grow(l.ID())
	if e.conns[l.ID()] != nil || e.listeners[l.ID()] != nil {
		e.rig.t.Fatalf("the number %d is given out twice", l.ID())
	}
	d := &listener{Listener: l, end: e}
	e.listeners[l.ID()] = d
	return d
}

func (e *streamEnd) tryListen(at netip.AddrPort) (l fabric.Listener, err error) {
	err = e.rig.net.On(e.host, func() (err error) {
		l, err = e.Listen(at, 512)
		return err
	})
	return l, err
}

// freePort returns a port that nobody has at an address.
func (e *streamEnd) freePort(at netip.Addr) uint16 {
	d := e.listenAt(netip.AddrPortFrom(at, 0))
	defer d.shut()
	return d.Local().Port()
}

func (d *listener) open() (work int) {
	for s := d.Accept(); s != nil; s = d.Accept() {
		if s.State() == fabric.StreamConnecting {
			d.end.rig.t.Error("a stream that was accepted is still connecting")
		}
		d.in = append(d.in, d.end.adopt(s))
		work++
	}
	return work
}

// shut closes a listener.
func (d *listener) shut() {
	d.end.listeners[d.ID()] = nil
	d.Close()
}

// dial begins to connect.
func (e *streamEnd) dial(to, from netip.AddrPort) *conn {
	var s fabric.Stream
	err := e.rig.net.On(e.host, func() (err error) {
		s, err = e.Dial(to, from)
		return err
	})
	if err != nil {
		e.rig.t.Fatal(err)
	}
	return e.adopt(s)
}

// connect joins a to b, through a listener that it shuts again.
func (r *streamRig) connect() (x, y *conn) {
	d := r.b.listen(0)
	defer d.shut()
	return r.connectTo(d)
}

func (r *streamRig) connectTo(d *listener) (x, y *conn) {
	x = r.a.dial(d.Local(), netip.AddrPort{})
	before := len(d.in)
	r.until(func() bool { return x.State() != fabric.StreamConnecting && len(d.in) > before })
	y = d.in[before]
	x.join(y)
	return x, y
}

// join makes two ends of a connection known to each other: what each sends
// begins elsewhere.
func (c *conn) join(d *conn) {
	if c.State() != fabric.StreamOpen || d.State() != fabric.StreamOpen {
		c.end.rig.t.Fatalf("connected in states %d and %d, errors %v and %v", c.State(), d.State(), c.Err(), d.Err())
	}
	c.txAt = int(c.Local().Port()) * 7919 % stuffLen
	d.txAt = (c.txAt + stuffLen/2) % stuffLen
	c.rxAt, d.rxAt = d.txAt, c.txAt
}

// offer gives c more to send, in buffers of the lengths cuts.
func (c *conn) offer(n int64, cuts ...int) {
	if len(cuts) > 0 {
		c.cuts = cuts
	}
	c.offered += n
	c.transmit()
	c.end.Flush()
}

// eat lets c receive n bytes more.
func (c *conn) eat(n int64) {
	c.appetite += n
	c.transmit()
	c.end.Flush()
}

// transmit does what there is to do until Recv and Send do nothing more.
func (c *conn) transmit() (work int) {
	if errors.Is(c.Err(), unix.ETIMEDOUT) { // no case wants that, and many would wait for ever
		c.end.rig.t.Fatalf("%v - %v: %v", c.Local(), c.Remote(), c.Err())
	}
	for c.State() == fabric.StreamOpen && !c.eof && c.got < c.appetite {
		n, eof := c.Recv(c.room())
		if n > 0 {
			c.check(c.end.buf[:n])
			work++
		}
		if c.eof = eof; n == 0 {
			break
		}
	}
	if c.eof {
		work++
	}
	for c.State() == fabric.StreamOpen && c.sent < c.offered {
		want := c.fill()
		n := c.Send(c.bufs)
		if n < 0 || n > want {
			c.end.rig.t.Fatalf("Send takes %d bytes of %d", n, want)
		}
		clear(c.scratch) // they are ours again
		c.sent += int64(n)
		if c.short = n < want; c.short {
			break
		}
		work++
	}
	return work
}

// room is the memory for the next Recv: of all sizes, often one.
func (c *conn) room() []byte {
	sizes := [...]int{len(c.end.buf), 1, 7, 4096, 1, 1448, 60_000, 3}
	c.end.sizes++
	n := int64(sizes[c.end.sizes%len(sizes)])
	return c.end.buf[:min(n, c.appetite-c.got)]
}

// check compares what was received with what was sent.
func (c *conn) check(b []byte) {
	stuff := c.end.rig.stuff
	for len(b) > 0 {
		at := int((int64(c.rxAt) + c.got) % stuffLen)
		n := min(len(b), stuffLen-at)
		if !bytes.Equal(b[:n], stuff[at:at+n]) {
			c.end.rig.t.Fatalf("wrong bytes among the %d behind byte %d", n, c.got)
		}
		b = b[n:]
		c.got += int64(n)
	}
}

// fill makes the buffers for the next Send, up to 64 KiB, and returns how many
// bytes they have.
func (c *conn) fill() (total int) {
	c.scratch, c.bufs = c.scratch[:0], c.bufs[:0]
	if cap(c.scratch) == 0 {
		c.scratch = make([]byte, 0, 1<<16)
	}
	for c.sent+int64(total) < c.offered {
		n := int(min(int64(c.cuts[c.turn%len(c.cuts)]), c.offered-c.sent-int64(total)))
		c.turn++
		if total+n > cap(c.scratch) {
			break
		}
		for n := n; n > 0; {
			stuff := c.end.rig.stuff[(int64(c.txAt)+c.sent+int64(len(c.scratch)))%stuffLen:]
			part := min(n, len(stuff))
			c.scratch = append(c.scratch, stuff[:part]...)
			n -= part
		}
		c.bufs = append(c.bufs, c.scratch[total:total+n])
		total += n
	}
	return total
}

// give gives the stream back.
func (c *conn) give(abort bool) {
	c.end.conns[c.ID()] = nil
	c.Close(abort)
	c.end.Flush()
}
