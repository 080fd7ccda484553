package secure

import (
	"cmp"
	"errors"
	"net/netip"
	"runtime"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Errors of streams.
var (
	ErrNotSecure = errors.New("secure: the other end of the connection does not encrypt, or is no end of ours: start both with the same secret")
	ErrForged    = errors.New("secure: what arrives was changed on the way, or encrypted with another secret")
	ErrCutOff    = errors.New("secure: the connection was cut off: its end is not authentic")
)

// Streams are byte streams that are encrypted and authenticated over those of a carrier.
//
// Owner: engine, like the carrier's.
type Streams struct {
	fabric.Streams
	keys   schedule
	bits   uint
	linger mono.Duration
	all    []*stream         // by number; nil: none of ours
	fresh  []fabric.StreamID // accepted since the last Poll
	out    []byte            // records that are being made
	spare  [][]byte          // buffers for what arrives

	taken, given uint64 // bytes, of users
	forged       uint64 // see fabric.StreamStats
}

// streamKeyBits is KeyBits of streams, whose records are longer: RFC 8446, section 5.5.
const streamKeyBits = 24

// NewStreams wraps inner, which it owns from now on when err is nil. Of c it takes Secret,
// Linger, and KeyBits, whose default is 24.
func NewStreams(inner fabric.Streams, c Config) (*Streams, error) {
	keys, err := newSchedule(c.Secret)
	if err != nil {
		return nil, err
	}
	c.KeyBits = cmp.Or(c.KeyBits, streamKeyBits)
	c.Linger = cmp.Or(c.Linger, mono.Second)
	return &Streams{Streams: inner, keys: keys, bits: c.KeyBits, linger: c.Linger, out: make([]byte, 0, sendMost)}, nil
}

// Caps returns those of the carrier below.
func (s *Streams) Caps() fabric.StreamCaps {
	c := s.Streams.Caps()
	c.Carrier += "+aes-gcm"
	return c
}

// Stats returns those of the carrier below, with what was refused here; bytes are those of users.
func (s *Streams) Stats() fabric.StreamStats {
	all := s.Streams.Stats()
	all.RxBytes, all.TxBytes, all.RxForged = s.taken, s.given, s.forged
	return all
}

// Dial begins to connect. The stream is open when the other end has answered.
func (s *Streams) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	inner, err := s.Streams.Dial(to, from)
	if err != nil {
		return nil, err
	}
	return s.add(inner, dialer), nil
}

// Listen waits for connections.
func (s *Streams) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	inner, err := s.Streams.Listen(at, backlog)
	if err != nil {
		return nil, err
	}
	return &listener{inner, s}, nil
}

type listener struct {
	fabric.Listener
	s *Streams
}

func (l *listener) Accept() fabric.Stream {
	inner := l.Listener.Accept()
	if inner == nil {
		return nil // no stream, and no interface with one in it
	}
	x := l.s.add(inner, accepter)
	l.s.fresh = append(l.s.fresh, x.ID()) // what arrived before has no further event
	return x
}

func (s *Streams) add(inner fabric.Stream, r role) *stream {
	x := &stream{Stream: inner, s: s, role: r}
	x.draw()
	x.moved()
	id := int(inner.ID())
	for id >= len(s.all) {
		s.all = append(s.all, nil)
	}
	s.all[id] = x
	return x
}

// Poll lets time and bytes pass.
func (s *Streams) Poll(now mono.Time, ready []fabric.StreamID) []fabric.StreamID {
	first := len(ready)
	ready = append(s.Streams.Poll(now, ready), s.fresh...)
	s.fresh = s.fresh[:0]
	for _, id := range ready[first:] {
		if int(id) < len(s.all) && s.all[id] != nil {
			s.all[id].moved()
		}
	}
	return ready
}

// Close lets streams that were closed send what is pending, for Config.Linger at most, aborts
// the others, and closes the carrier below.
func (s *Streams) Close() error {
	var clock mono.Real
	for until := clock.Now().Add(s.linger); s.leaving(); {
		now := clock.Now()
		if now >= until {
			break
		}
		s.Poll(now, nil)
		s.Flush()
		runtime.Gosched()
	}
	return s.Streams.Close()
}

// leaving reports whether a stream that was closed is still there.
func (s *Streams) leaving() bool {
	return slices.ContainsFunc(s.all, func(x *stream) bool { return x != nil && x.closed })
}

// buffer returns one for what arrives.
func (s *Streams) buffer() []byte {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return make([]byte, 0, recvMost)
}
