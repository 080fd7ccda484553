package sim

import (
	"net/netip"
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Stream is one end of a connection. It implements fabric.Stream.
type Stream struct {
	streams       *Streams
	id            fabric.StreamID
	number        int // among the streams of this end
	local, remote netip.AddrPort
	port          uint16 // to give back; 0: the listener's
	peer          *Stream
	pair          *pair
	in, out       *flow
	state         fabric.StreamState
	err           error
	isNamed       bool
	hasID         bool // false while it waits to be accepted
	dirty         bool // is in Streams.dirty
	wantSpace     bool // Send has taken less than it was given
	closed        bool
}

// pair is what the two ends of a connection share.
type pair struct {
	number uint64
	silent mono.Time // nothing arrives before
	mute   bool      // one end does not know that the other one is gone, and is not told
}

var _ fabric.Stream = (*Stream)(nil)

// newStream makes an end that is connecting, with its number.
func (s *Streams) newStream(local, remote netip.AddrPort) *Stream {
	st := &Stream{streams: s, local: local, remote: remote, number: s.conns}
	s.conns++
	st.accept()
	return st
}

// accept makes the stream known to its user.
func (st *Stream) accept() {
	st.id, st.hasID = st.streams.add(st), true
	st.tell() // what has arrived by now is news
}

// tell makes the next Poll name the stream.
func (st *Stream) tell() {
	if st.hasID && !st.closed {
		st.streams.tell(st.id)
	}
}

func (st *Stream) named() *bool  { return &st.isNamed }
func (st *Stream) world() *World { return st.streams.node.world }

// alive reports whether bytes can still arrive.
func (st *Stream) alive() bool { return !st.closed && st.state != fabric.StreamFailed }

// connect does the handshake: the peer exists after half a round trip, this end
// is open after a whole one, and the peer can be accepted half a one later.
func (st *Stream) connect() {
	w := st.world()
	w.push(w.present().Add(st.streams.config.Timeout), callback(func() {
		if st.state == fabric.StreamConnecting {
			st.fail(syscall.ETIMEDOUT)
		}
	}))
	st.request()
}

// retryAfter is how long after a request to connect that got no answer another
// one goes out (RFC 6298, section 2).
const retryAfter = mono.Second

// request asks the peer's node to connect.
func (st *Stream) request() {
	n, w := st.streams.node, st.world()
	to := w.streamsAt(st.remote.Addr())
	if to == nil {
		st.after(n, n, func() { st.fail(syscall.EHOSTUNREACH) })
		return
	}
	st.after(n, to, func() {
		l := to.listener(st.remote)
		switch {
		case st.state != fabric.StreamConnecting || st.closed:
		case l == nil:
			st.after(to, n, func() { st.fail(syscall.ECONNREFUSED) })
		case len(l.queue)+l.handshakes >= l.backlog:
			w.push(w.now.Add(retryAfter), callback(st.request))
		default:
			l.handshakes++
			l.greet(st)
		}
	})
}

// after runs f when something has got from one node to another.
func (st *Stream) after(from, to *Node, f func()) {
	w := st.world()
	at := w.present().Add(from.Up.Delay + to.Down.Delay)
	w.push(at, &journey{from: from, to: to, what: f})
}

// journey is something small that goes from node to node.
type journey struct {
	from, to *Node
	what     func()
}

func (j *journey) fire(w *World) {
	if until := w.blocked(j.from, j.to); until > w.now {
		if until != mono.Never {
			w.push(until, j)
		}
		return
	}
	j.what()
}

// blocked returns until when nothing gets from one node to another.
func (w *World) blocked(from, to *Node) mono.Time {
	until := max(from.Up.CutUntil, to.Down.CutUntil)
	if from.island != to.island {
		until = max(until, w.heal)
	}
	return until
}

// greet makes the peer's end of a connection.
func (l *StreamListener) greet(dialer *Stream) {
	s := l.streams
	w := s.node.world
	w.conns++
	st := &Stream{streams: s, local: dialer.remote, remote: dialer.local, state: fabric.StreamOpen, number: s.conns}
	s.conns++
	st.peer, dialer.peer = dialer, st
	st.pair = &pair{number: w.conns}
	dialer.pair = st.pair
	st.out, dialer.out = newFlow(st, dialer), newFlow(dialer, st)
	st.in, dialer.in = dialer.out, st.out
	w.note(traceConnect, w.conns, s.node.id, nil)
	st.after(s.node, dialer.streams.node, func() {
		if !dialer.alive() {
			l.handshakes--
			st.fail(syscall.ECONNRESET)
			return
		}
		dialer.state = fabric.StreamOpen
		dialer.tell()
		dialer.out.launch() // what Send has taken before, and faults at the start
		st.after(dialer.streams.node, s.node, func() { l.ready(st) })
	})
}

// ready makes a connection wait for Accept.
func (l *StreamListener) ready(st *Stream) {
	l.handshakes--
	if l.closed {
		st.Close(true)
		return
	}
	l.queue = append(l.queue, st)
	l.streams.tell(l.id)
	st.out.launch()
}

// fail ends the stream here, with what has arrived.
func (st *Stream) fail(err error) {
	if !st.alive() {
		return
	}
	st.streams.stats.Failed++
	st.state, st.err = fabric.StreamFailed, err
	st.tell()
}

// ID implements fabric.Stream.
func (st *Stream) ID() fabric.StreamID { return st.id }

// State implements fabric.Stream.
func (st *Stream) State() fabric.StreamState { return st.state }

// Err implements fabric.Stream.
func (st *Stream) Err() error { return st.err }

// Local implements fabric.Stream.
func (st *Stream) Local() netip.AddrPort { return st.local }

// Remote implements fabric.Stream.
func (st *Stream) Remote() netip.AddrPort { return st.remote }

// MSS implements fabric.Stream.
func (st *Stream) MSS() int {
	if st.state != fabric.StreamOpen {
		return 0
	}
	return st.streams.config.MSS
}

// Recv implements fabric.Stream.
func (st *Stream) Recv(dst []byte) (n int, eof bool) {
	if st.state != fabric.StreamOpen || st.closed {
		return 0, false
	}
	n = st.in.recv(dst)
	stats := &st.streams.stats
	stats.RxCalls++
	stats.RxBytes += uint64(n)
	return n, st.in.over && st.in.read == st.in.arrived
}

// RecvVector implements fabric.VectorReceiver.
func (st *Stream) RecvVector(dst [][]byte) (n int, eof bool) {
	for _, b := range dst {
		for len(b) > 0 { // one segment is received at a time
			k, end := st.Recv(b)
			n, b = n+k, b[k:]
			if k == 0 || end {
				return n, end
			}
		}
	}
	return n, eof
}

// Send implements fabric.Stream.
func (st *Stream) Send(bufs [][]byte) int {
	if st.state != fabric.StreamOpen || st.closed || st.out.fin {
		return 0
	}
	taken := 0
	for _, b := range bufs {
		n := min(len(b), st.streams.config.SendBuffer-st.out.held())
		st.out.buf.push(b[:n]...)
		st.out.taken += int64(n)
		taken += n
		if n < len(b) {
			st.wantSpace = true
			break
		}
	}
	stats := &st.streams.stats
	stats.TxCalls++
	stats.TxBytes += uint64(taken)
	st.touch()
	return taken
}

// touch makes the next Flush look after the stream.
func (st *Stream) touch() {
	if !st.dirty {
		st.dirty = true
		st.streams.dirty = append(st.streams.dirty, st)
	}
}

// CloseWrite implements fabric.Stream.
func (st *Stream) CloseWrite() {
	if st.state == fabric.StreamOpen && !st.closed {
		st.out.fin = true
		st.touch()
	}
}

// Close implements fabric.Stream.
func (st *Stream) Close(abort bool) {
	if st.closed {
		return
	}
	if st.state == fabric.StreamOpen {
		if abort || st.in.read < st.in.arrived {
			st.out.reset()
		} else {
			st.out.fin = true
			st.out.launch()
		}
	}
	st.closed = true
	if st.port != 0 {
		delete(st.streams.node.tcp, st.port)
	}
	if st.hasID {
		st.streams.remove(st.id)
	}
}
