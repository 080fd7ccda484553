package sim

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// StreamConfig describes how an end of byte streams behaves: TCP as a user of
// sockets sees it. What it says of bytes is about those that this end sends.
// Time on the wire is that of the links of the two nodes, whose other faults
// TCP would hide; a cut link or a partition holds bytes back until it heals.
type StreamConfig struct {
	MSS        int           // most bytes in a segment; default 1448, as with time stamps at MTU 1500
	SendBuffer int           // most bytes that are taken and not acknowledged; default 256 KiB
	RecvBuffer int           // the window: most bytes on the way to this end, or waiting in it; default 256 KiB
	Gap        mono.Duration // least time between the arrivals of two segments of a stream
	Timeout    mono.Duration // what gets no answer for so long fails with ETIMEDOUT; default 10 s
	// Segment, when not nil, says how many of the n bytes that wait at offset
	// off of a stream the next segment has, instead of MSS. Recv then never
	// returns bytes of two segments at once. conn counts the streams of this
	// end from 0, in the order of Dial and of arrival.
	Segment func(conn int, off int64, n int) int
	Faults  []StreamFault
}

// StreamFault is something that befalls what an end sends on one stream.
type StreamFault struct {
	Conn int // as for StreamConfig.Segment
	// Offset is where: it happens when the bytes before it, and no more, have
	// arrived.
	Offset int64
	Kind   StreamFaultKind
	Heal   mono.Duration // StreamSilence: how long it lasts; 0: for ever
}

// StreamFaultKind is what happens to a stream.
type StreamFaultKind uint8

// Kinds of faults.
const (
	StreamReset         StreamFaultKind = iota + 1 // both ends see ECONNRESET
	StreamResetSender                              // the sender sees it, the receiver nothing more
	StreamResetReceiver                            // the receiver sees it, the sender nothing more
	StreamFIN                                      // the receiver sees the end of the stream; further bytes vanish
	StreamSilence                                  // nothing arrives at either end any more, until it heals
)

func (k StreamFaultKind) String() string {
	return [...]string{"?", "reset", "reset of the sender", "reset of the receiver", "FIN", "silence"}[k]
}

func (c *StreamConfig) fill() {
	fallback(&c.MSS, 1448)
	fallback(&c.SendBuffer, 256<<10)
	fallback(&c.RecvBuffer, 256<<10)
	fallback(&c.Timeout, 10*mono.Second)
}

// Streams is the TCP of one process on a node. It implements fabric.Streams.
type Streams struct {
	config StreamConfig
	node   *Node
	users  []streamEnd       // by StreamID; nil: free
	free   []fabric.StreamID // to use again
	news   []fabric.StreamID // for the next Poll
	dirty  []*Stream         // have taken bytes since the last Flush
	wire   mono.Time         // when it is free for the next segment
	conns  int               // streams so far
	reader *Task             // whoever called Poll last: news wakes it
	closed bool
	stats  fabric.StreamStats
}

// streamEnd is what has a StreamID.
type streamEnd interface{ named() *bool }

var _ fabric.Streams = (*Streams)(nil)

// Streams opens an end of byte streams on the node. A node may have several,
// which share its addresses and ports, as processes do.
func (n *Node) Streams(c StreamConfig) *Streams {
	c.fill()
	c.Faults = slices.Clone(c.Faults)
	slices.SortStableFunc(c.Faults, func(a, b StreamFault) int { return int(a.Offset - b.Offset) })
	s := &Streams{config: c, node: n}
	n.streams = append(n.streams, s)
	return s
}

// Addr6 returns the IPv6 address of the node, fd00::h:l (see Addr). Streams
// have it; there are no IPv6 frames in the world.
func (n *Node) Addr6() netip.Addr {
	a := [16]byte{0: 0xfd}
	binary.BigEndian.PutUint16(a[14:], uint16(n.id+1))
	return netip.AddrFrom16(a)
}

// has reports whether a is an address of the node, or unspecified.
func (n *Node) has(a netip.Addr) bool {
	return !a.IsValid() || a.IsUnspecified() || a.Unmap() == n.Addr() || a == n.Addr6()
}

// streamsAt finds the node with an address.
func (w *World) streamsAt(a netip.Addr) *Node {
	for _, n := range w.nodes {
		if a == n.Addr() || a == n.Addr6() {
			return n
		}
	}
	return nil
}

// SetMSS changes how many bytes a segment has from now on: the path MTU has
// changed.
func (s *Streams) SetMSS(mss int) { s.config.MSS = mss }

// Caps implements fabric.Streams.
func (s *Streams) Caps() fabric.StreamCaps { return fabric.StreamCaps{Carrier: "sim", IPv6: true} }

// Arena implements fabric.Streams.
func (s *Streams) Arena() *mem.Arena { return s.node.arena }

// Addr implements fabric.Streams.
func (s *Streams) Addr() netip.Addr { return s.node.Addr() }

// Stats implements fabric.Streams.
func (s *Streams) Stats() fabric.StreamStats { return s.stats }

// FD implements fabric.Streams: there is nothing to poll.
func (s *Streams) FD() int { return -1 }

// Deadline implements fabric.Streams: the world knows what time is for.
func (s *Streams) Deadline() mono.Time { return mono.Never }

// Poll implements fabric.Streams.
func (s *Streams) Poll(_ mono.Time, ready []fabric.StreamID) []fabric.StreamID {
	s.reader = s.node.world.running // nil outside of tasks
	for _, id := range s.news {
		if u := s.users[id]; u != nil && *u.named() {
			*u.named() = false
			ready = append(ready, id)
		}
	}
	s.news = s.news[:0]
	return ready
}

// Flush implements fabric.Streams: nothing that Send takes moves before.
func (s *Streams) Flush() {
	for _, st := range s.dirty {
		st.dirty = false
		st.out.launch()
	}
	s.dirty = s.dirty[:0]
}

// Close implements fabric.Streams.
func (s *Streams) Close() error {
	if s.closed {
		return nil
	}
	s.Flush()
	for _, u := range s.users {
		switch u := u.(type) {
		case *Stream:
			u.Close(true)
		case *StreamListener:
			u.Close()
		}
	}
	s.closed = true
	s.node.streams = slices.DeleteFunc(s.node.streams, func(o *Streams) bool { return o == s })
	return nil
}

// add gives u a number.
func (s *Streams) add(u streamEnd) fabric.StreamID {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		s.users[id] = u
		return id
	}
	s.users = append(s.users, u)
	return fabric.StreamID(len(s.users) - 1)
}

// remove takes the number back.
func (s *Streams) remove(id fabric.StreamID) {
	s.users[id] = nil
	s.free = append(s.free, id)
}

// tell makes the next Poll name an end, and wakes who waits for it.
func (s *Streams) tell(id fabric.StreamID) {
	u := s.users[id]
	if *u.named() {
		return
	}
	*u.named() = true
	s.news = append(s.news, id)
	for _, t := range s.node.tasks {
		if t.frames && s.readBy(t) {
			t.wake()
		}
	}
}

// readBy: see Port.readBy.
func (s *Streams) readBy(t *Task) bool { return s.reader == nil || s.reader.ended || s.reader == t }

// Dial implements fabric.Streams.
func (s *Streams) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	n := s.node
	a := from.Addr()
	switch {
	case s.closed:
		return nil, fmt.Errorf("sim: node %d: Dial: the carrier is closed: %w", n.id, syscall.EBADF)
	case !to.IsValid() || to.Port() == 0 || to.Addr().IsUnspecified() || to.Addr().IsMulticast():
		return nil, fmt.Errorf("sim: node %d: Dial to %v: %w", n.id, to, syscall.EINVAL)
	case !n.has(a):
		return nil, fmt.Errorf("sim: node %d: Dial from %v: %w", n.id, from, syscall.EADDRNOTAVAIL)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if own := n.Addr(); !a.IsValid() || a.IsUnspecified() {
		if a = own; to.Addr().Is6() {
			a = n.Addr6()
		}
	}
	if a = a.Unmap(); a.Is4() != to.Addr().Is4() {
		return nil, fmt.Errorf("sim: node %d: Dial from %v to %v: %w", n.id, from, to, syscall.EAFNOSUPPORT)
	}
	port, err := n.takePort(from.Port())
	if err != nil {
		return nil, fmt.Errorf("sim: node %d: Dial from %v: %w", n.id, from, err)
	}
	st := s.newStream(netip.AddrPortFrom(a, port), to)
	st.port = port
	s.stats.Opened++
	st.connect()
	return st, nil
}

// takePort takes a TCP port of the node, or one that is free.
func (n *Node) takePort(port uint16) (uint16, error) {
	if n.tcp == nil {
		n.tcp = map[uint16]bool{}
	}
	const first, count = 32768, 28232 // as Linux (net.ipv4.ip_local_port_range)
	for i := 0; port == 0; i++ {
		if i == count {
			return 0, syscall.EADDRNOTAVAIL
		}
		n.ephemeral = (n.ephemeral + 1) % count
		if p := uint16(first + n.ephemeral); !n.tcp[p] {
			port = p
		}
	}
	if n.tcp[port] {
		return 0, syscall.EADDRINUSE
	}
	n.tcp[port] = true
	return port, nil
}

// Listen implements fabric.Streams.
func (s *Streams) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	n := s.node
	if s.closed {
		return nil, fmt.Errorf("sim: node %d: Listen: the carrier is closed: %w", n.id, syscall.EBADF)
	}
	if !n.has(at.Addr()) {
		return nil, fmt.Errorf("sim: node %d: Listen at %v: %w", n.id, at, syscall.EADDRNOTAVAIL)
	}
	port, err := n.takePort(at.Port())
	if err != nil {
		return nil, fmt.Errorf("sim: node %d: Listen at %v: %w", n.id, at, err)
	}
	a := at.Addr().Unmap()
	if !a.IsValid() {
		a = netip.IPv6Unspecified()
	}
	l := &StreamListener{streams: s, local: netip.AddrPortFrom(a, port), backlog: max(backlog, 1)}
	l.id = s.add(l)
	return l, nil
}

// StreamListener accepts streams. It implements fabric.Listener.
type StreamListener struct {
	streams    *Streams
	id         fabric.StreamID
	local      netip.AddrPort
	backlog    int
	handshakes int // streams that are being set up
	queue      []*Stream
	isNamed    bool
	closed     bool
}

func (l *StreamListener) named() *bool { return &l.isNamed }

// ID implements fabric.Listener.
func (l *StreamListener) ID() fabric.StreamID { return l.id }

// Local implements fabric.Listener.
func (l *StreamListener) Local() netip.AddrPort { return l.local }

// Accept implements fabric.Listener.
func (l *StreamListener) Accept() fabric.Stream {
	if len(l.queue) == 0 {
		return nil
	}
	st := l.queue[0]
	l.queue = l.queue[1:]
	s := l.streams
	s.stats.Accepted++
	st.accept()
	return st
}

// Close implements fabric.Listener. Streams that wait to be accepted are reset.
func (l *StreamListener) Close() {
	if l.closed {
		return
	}
	l.closed = true
	for _, st := range l.queue {
		st.Close(true)
	}
	l.queue = nil
	delete(l.streams.node.tcp, l.local.Port())
	l.streams.remove(l.id)
}

// listener finds who listens at an address.
func (n *Node) listener(at netip.AddrPort) *StreamListener {
	for _, s := range n.streams {
		for _, u := range s.users {
			l, ok := u.(*StreamListener)
			if !ok || l.local.Port() != at.Port() {
				continue
			}
			a := l.local.Addr()
			if a == at.Addr() || a.IsUnspecified() && (a.Is6() || at.Addr().Is4()) {
				return l
			}
		}
	}
	return nil
}
