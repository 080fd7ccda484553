// Package split lets two protocols use one port: some frames go to the one, such
// as TCP, all others to the other, and both send. So datagrams and byte streams
// of one engine share a queue of a NIC.
package split

import (
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Side is what one of the two protocols sees of the port. It implements
// fabric.Port, and has the arena, the pool and the descriptor of the port.
//
// Owner: the engine of the port, like the other side.
type Side struct {
	fabric.Port
	both   *both
	closed bool

	// Frames that have arrived for this side: a ring of buffers.
	ring  []fabric.Desc
	head  int
	count int
}

// both is what the sides share.
type both struct {
	some, rest Side
	isSome     func(frame []byte) bool // whether the frame that begins like that is for some
	open       int                     // sides that are not closed
	stage      [8 * fabric.MaxBufs]fabric.Desc
}

var _ fabric.Port = (*Side)(nil)

// New splits a port into one for TCP and one for all else. Both sides own the
// port from now on: it is closed when both of them are.
func New(port fabric.Port) (tcp, rest *Side) { return By(port, isTCP) }

// By is New for frames that some picks by their first buffer.
func By(port fabric.Port, some func(frame []byte) bool) (picked, rest *Side) {
	b := &both{open: 2, isSome: some}
	for _, s := range []*Side{&b.some, &b.rest} {
		// Every buffer that waits is one of the pool, so there is room for all.
		*s = Side{Port: port, both: b, ring: make([]fabric.Desc, port.Pool().Cap())}
	}
	return &b.some, &b.rest
}

// Recv returns frames for this side; see fabric.Port. Those for the other side
// wait until it asks.
func (s *Side) Recv(dst []fabric.Desc) int {
	if s.count == 0 {
		s.both.sort(s.Port)
	}
	whole := 0
	for n := 0; n < min(s.count, len(dst)); n++ {
		at := s.head + n
		if at >= len(s.ring) {
			at -= len(s.ring)
		}
		dst[n] = s.ring[at]
		if dst[n].Flags&fabric.More == 0 {
			whole = n + 1
		}
	}
	s.head, s.count = (s.head+whole)%len(s.ring), s.count-whole
	return whole
}

// sort puts what has arrived into the rings of the sides that it is for.
func (b *both) sort(port fabric.Port) {
	arena := port.Arena().Bytes()
	to, first := &b.rest, true
	bufs := b.stage[:port.Recv(b.stage[:])]
	for i := range bufs {
		d := &bufs[i]
		if first {
			if to = &b.rest; b.isSome(arena[d.Addr:][:d.Len]) {
				to = &b.some
			}
		}
		to.put(d)
		first = d.Flags&fabric.More == 0
	}
}

func (s *Side) put(d *fabric.Desc) {
	if s.closed {
		s.Port.Pool().Put(d.Addr)
		return
	}
	at := s.head + s.count
	if at >= len(s.ring) {
		at -= len(s.ring)
	}
	s.ring[at] = *d
	s.count++
}

// Where the fields that tell TCP are in a frame, and what they hold.
const (
	ethTypeAt   = 12
	protocolAt  = 14 + 9
	protocolAt6 = 14 + 6 // next header
	protoTCP    = 6
)

// isTCP reports whether the frame that begins with h is TCP over IPv4, or over IPv6
// without extension headers.
func isTCP(h []byte) bool {
	if len(h) <= protocolAt {
		return false
	}
	if h[ethTypeAt] == 0x86 && h[ethTypeAt+1] == 0xdd {
		return h[protocolAt6] == protoTCP
	}
	return h[ethTypeAt] == 8 && h[ethTypeAt+1] == 0 && h[protocolAt] == protoTCP
}

// Close gives back what waits for this side. The second side to be closed
// closes the port.
func (s *Side) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	for ; s.count > 0; s.count-- {
		s.Port.Pool().Put(s.ring[s.head].Addr)
		s.head = (s.head + 1) % len(s.ring)
	}
	if s.both.open--; s.both.open > 0 {
		return nil
	}
	return s.Port.Close()
}
