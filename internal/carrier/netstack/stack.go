package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"gvisor.dev/gvisor/pkg/sync"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/gso"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// Stack is TCP over a port: a [fabric.Streams].
//
// Owner: engine.
type Stack struct {
	config   Config
	gvisor   *stack.Stack
	inline   inline
	attached stack.NetworkDispatcher // of the link
	mail     mail
	clock    clock
	hosts    hosts

	port   fabric.Port
	pool   *mem.Pool
	bytes  []byte // the arena
	room   int    // bytes to leave free in front of a frame
	local  bool   // what arrives may not have left the machine, with a checksum that the device was to complete
	family family
	mac    inet.MAC

	rx  [rxStage]fabric.Desc
	out output

	syns    synTable
	ids     []fabric.StreamID // free ones
	idNext  fabric.StreamID
	leaving []tcpip.Endpoint // closed streams that may have something to deliver
	now     mono.Time        // of the last Poll
	told    mono.Time        // when the engine will come back by itself

	stats fabric.StreamStats
	dropped
	closed bool
}

// dropped counts what went no further.
type dropped struct {
	malformed   uint64 // frames that were no TCP for us, or damaged
	unreachable uint64 // packets without next hop
}

// output is what gVisor has sent and the port does not have yet.
type output struct {
	frames  [txStage]fabric.Desc // for one call to the port's Send
	staged  int                  // buffers in frames
	offload *gso.Socket          // for packets of more than a frame; or nil
	head    [headMost]byte       // of such a packet
	packets []*stack.PacketBuffer
	next    int // packets[next:] waits for room
	cut     int // bytes of packets[next] that have been sent
	held    heldAck
	short   []*Stream // whose Send is to be called again when something has arrived
}

const (
	rxStage = 5 * fabric.MaxBufs // fewer than the 100 segments that gVisor handles at a time
	txStage = 8 * fabric.MaxBufs
	nicID   = 1
)

var _ fabric.Streams = (*Stack)(nil)

// ErrOwnAddress is wrapped by Dial's error for an address of this host.
var ErrOwnAddress = errors.New("frames to an address of this device never leave it: use the kernel's TCP (--fabric tcp) on one host")

// Open makes a stack. It owns c.Port from now on when err is nil.
func Open(c Config) (*Stack, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Stack{
		config: c, port: c.Port, pool: c.Port.Pool(), bytes: c.Port.Arena().Bytes(), room: c.Port.Caps().Headroom(),
		family: familyOf(c.Local), mac: c.MAC, told: mono.Never,
	}
	if err := s.mail.open(c.Port.FD()); err != nil {
		return nil, err
	}
	caps := c.Port.Caps()
	s.local, s.out.offload = caps.Device != "" && !caps.ZeroCopy, gso.Open(caps, c.Ifindex)
	s.clock.init(c.Clock, &s.mail)
	s.hosts.init(c.Resolver, &s.mail)
	if err := s.start(); err != nil {
		s.gvisor.Destroy()
		return nil, errors.Join(err, s.out.offload.Close(), s.mail.close())
	}
	return s, nil
}

// start makes gVisor's stack: one device, one address, everything goes there.
func (s *Stack) start() error {
	s.gvisor = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{s.family.factory},
		TransportProtocols: []stack.TransportProtocolFactory{s.inline.factory},
		Clock:              &s.clock,
	})
	if err := s.tune(); err != nil {
		return err
	}
	l := &link{mtu: uint32(s.config.MTU), mac: s.mac}
	if err := s.gvisor.CreateNICWithOptions(nicID, l, stack.NICOptions{QDisc: &s.mail}); err != nil {
		return fmt.Errorf("netstack: device: %w", errno(err))
	}
	s.attached = l.attached()
	addr := tcpip.ProtocolAddress{
		Protocol:          s.family.protocol,
		AddressWithPrefix: s.family.addr(s.config.Local).WithPrefix(),
	}
	if err := s.gvisor.AddProtocolAddress(nicID, addr, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("netstack: address %s: %w", s.config.Local, errno(err))
	}
	s.gvisor.SetRouteTable([]tcpip.Route{{Destination: s.family.everywhere, NIC: nicID}})
	if err := s.gvisor.SetPortRange(s.config.PortBase, s.config.last()); err != nil {
		return fmt.Errorf("netstack: ports %d to %d: %w", s.config.PortBase, s.config.last(), errno(err))
	}
	return nil
}

// tune sets what is not as on Linux by default, or must hold for us.
func (s *Stack) tune() error {
	cc := tcpip.CongestionControlOption("cubic")
	sack := tcpip.TCPSACKEnabled(true)
	nagle := tcpip.TCPDelayEnabled(false)
	grow := tcpip.TCPModerateReceiveBufferOption(true)
	recv := tcpip.TCPReceiveBufferSizeRangeOption{Min: minBuffer, Default: min(tcp.DefaultReceiveBufferSize, s.config.RecvBuffer), Max: s.config.RecvBuffer}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: minBuffer, Default: min(tcp.DefaultSendBufferSize, s.config.SendBuffer), Max: s.config.SendBuffer}
	for _, o := range []tcpip.SettableTransportProtocolOption{&cc, &sack, &nagle, &grow, &recv, &send} {
		if err := s.gvisor.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("netstack: %T: %w", o, errno(err))
		}
	}
	return nil
}

// Caps implements fabric.Streams.
func (s *Stack) Caps() fabric.StreamCaps {
	return fabric.StreamCaps{Carrier: "netstack on " + s.port.Caps().Driver, IPv6: s.config.Local.Is6()}
}

// Arena implements fabric.Streams.
func (s *Stack) Arena() *mem.Arena { return s.port.Arena() }

// Addr implements fabric.Streams.
func (s *Stack) Addr() netip.Addr { return s.config.Local }

// Stats implements fabric.Streams.
func (s *Stack) Stats() fabric.StreamStats { return s.stats }

// FD implements fabric.Streams. It has to be asked for before each wait, as a
// Datagram's: no peer rings while the engine polls.
func (s *Stack) FD() int {
	s.mail.sleep()
	if s.clock.deadline() < s.told { // a goroutine has set a timer since
		s.mail.wake()
	}
	return int(s.mail.set)
}

// Deadline implements fabric.Streams.
func (s *Stack) Deadline() mono.Time {
	s.told = s.clock.deadline()
	if s.out.next < len(s.out.packets) { // the port was full
		s.told = min(s.told, s.now.Add(retry))
	}
	if s.out.held.packet != nil {
		s.told = min(s.told, s.out.held.until)
	}
	return s.told
}

// retry is when a port that was full is tried again though nothing arrives.
const retry = 100 * mono.Microsecond

// Poll implements fabric.Streams.
func (s *Stack) Poll(now mono.Time, ready []fabric.StreamID) []fabric.StreamID {
	s.mail.awake()
	s.now = now
	s.receive()
	if s.inline.yields > 0 {
		// gVisor's goroutine for other segments was put first in the queue of
		// this processor: it runs here and now, and not when another thread has
		// been woken for it. (Gosched would wake one.) Once in a while another
		// goroutine is let in before it, and an engine that spins must not keep it
		// waiting then.
		s.inline.yields--
		sync.Goyield()
	}
	s.clock.fire(now)
	if len(s.leaving) > 0 {
		s.seeOff()
	}
	s.told = s.clock.deadline()
	if !s.mail.news.Load() {
		return ready
	}
	ready, answers := s.mail.takeNews(ready)
	for _, f := range answers {
		for _, p := range s.hosts.answered(f) {
			if f.err != nil {
				s.unreachable++
				p.DecRef()
			} else if !s.forward(p, new(int)) {
				p.DecRef() // no room now: TCP sends it again
			}
		}
	}
	return ready
}

// Flush implements fabric.Streams.
func (s *Stack) Flush() {
	s.hosts.follow()
	if s.out.staged > 0 || s.out.next < len(s.out.packets) || s.mail.packets.Load() || s.out.held.packet != nil && s.now >= s.out.held.until {
		s.drain()
	}
	s.port.Flush()
}

// Dial implements fabric.Streams. Its errors are the resolver's, an [*Error],
// or wrap [ErrOwnAddress].
func (s *Stack) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	switch {
	case s.closed:
		return nil, errClosed
	case !to.Addr().IsValid() || to.Addr().Is4() != s.config.Local.Is4() || to.Port() == 0:
		return nil, fmt.Errorf("netstack: %s cannot be dialled: want an %s address and a port, as this end has: %s", to, s.family.name, s.config.Local)
	case to.Addr() == s.config.Local || to.Addr().IsLoopback():
		return nil, fmt.Errorf("netstack: %s: %w", to, ErrOwnAddress)
	}
	if err := s.checkLocal(from); err != nil {
		return nil, err
	}
	hop, err := s.hosts.resolve(to.Addr())
	if err != nil {
		return nil, fmt.Errorf("netstack: %w", err)
	}
	ep, wq, err := s.endpoint()
	if err != nil {
		return nil, err
	}
	st := s.adopt(ep, wq)
	st.mtu = min(s.config.MTU, hop.MTU)
	if err := st.connect(to, from.Port()); err != nil {
		st.Close(true)
		return nil, &Error{"connect", from, to, err}
	}
	s.stats.Opened++
	return st, nil
}

// endpoint makes a TCP socket of gVisor's.
func (s *Stack) endpoint() (tcpip.Endpoint, *waiter.Queue, error) {
	wq := new(waiter.Queue)
	ep, err := s.gvisor.NewEndpoint(tcp.ProtocolNumber, s.family.protocol, wq)
	if err != nil {
		return nil, nil, fmt.Errorf("netstack: socket: %w", errno(err))
	}
	return ep, wq, nil
}

// checkLocal refuses local ends whose frames would not come to us.
func (s *Stack) checkLocal(at netip.AddrPort) error {
	addr := at.Addr().Unmap()
	switch {
	case addr.IsValid() && !addr.IsUnspecified() && addr != s.config.Local:
		return fmt.Errorf("netstack: local address %s: this stack has %s only", addr, s.config.Local)
	case at.Port() != 0 && !s.config.steered(at.Port()):
		return fmt.Errorf("netstack: local port %d: only those from %d to %d are taken from the kernel: use one of them, or open the device with others",
			at.Port(), s.config.PortBase, s.config.last())
	}
	return nil
}

// Listen implements fabric.Streams. The port must be one of Config.Ports.
func (s *Stack) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	if s.closed {
		return nil, errClosed
	}
	if err := s.checkLocal(at); err != nil {
		return nil, err
	}
	ep, wq, err := s.endpoint()
	if err != nil {
		return nil, err
	}
	l := &Listener{stack: s, ep: ep, wq: wq}
	s.enter(&l.entry, wq)
	if err := l.listen(at.Port(), backlog); err != nil {
		l.Close()
		return nil, &Error{"listen", at, netip.AddrPort{}, err}
	}
	return l, nil
}

// enter gives an entry a number and starts to listen to what is new of it.
func (s *Stack) enter(e *entry, wq *waiter.Queue) {
	e.mail = &s.mail
	if n := len(s.ids); n > 0 {
		e.id, s.ids = s.ids[n-1], s.ids[:n-1]
	} else {
		e.id = s.idNext
		s.idNext++
	}
	e.Init(e, events)
	wq.EventRegister(&e.Entry)
}

// leave gives the number of an entry back.
func (s *Stack) leave(e *entry, wq *waiter.Queue) {
	wq.EventUnregister(&e.Entry)
	s.ids = append(s.ids, e.id)
	e.forget()
}

// seeOff forgets closed streams that have delivered everything.
func (s *Stack) seeOff() {
	kept := s.leaving[:0]
	for _, ep := range s.leaving {
		if delivering(ep) {
			kept = append(kept, ep)
		}
	}
	clear(s.leaving[len(kept):])
	s.leaving = kept
}

var errClosed = errors.New("netstack: stack was closed")

// Close implements fabric.Streams. Streams that were closed before get
// Config.Linger to deliver what they have.
func (s *Stack) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	for until := s.config.Clock.Now().Add(s.config.Linger); len(s.leaving) > 0; {
		now := s.config.Clock.Now()
		if now >= until {
			break
		}
		s.Poll(now, nil)
		s.Flush()
		runtime.Gosched()
	}
	s.gvisor.Destroy() // what is left is reset
	s.Flush()
	s.hosts.done.Wait()
	s.drop()
	return errors.Join(s.out.offload.Close(), s.mail.close(), s.port.Close())
}

// drop releases packets that will not be sent.
func (s *Stack) drop() {
	s.mail.mu.Lock()
	s.mail.shut = true
	s.mail.mu.Unlock()
	s.out.held.drop()
	for _, p := range s.out.packets[s.out.next:] {
		p.DecRef()
	}
	for _, p := range s.mail.takeOut(nil) {
		p.DecRef()
	}
	for _, h := range s.hosts.byAddr {
		for _, p := range h.waiting {
			p.DecRef()
		}
	}
	s.out.packets, s.out.next = nil, 0
}
