package kudp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Socket is a UDP socket of the kernel as a [fabric.Datagram].
//
// Owner: engine.
type Socket struct {
	fd      int
	scout   int             // a second socket, connected to peers to learn whether there is a route
	kernel  *netlink.Handle // asked for the MTU of routes
	ready   event.Set       // of fd and those of groups
	arena   *mem.Arena
	pool    *mem.Pool // frames to send
	ownPool bool      // Close releases it
	local   netip.AddrPort
	caps    fabric.DatagramCaps
	rx      receiver
	tx      sender
	stats   fabric.DatagramStats

	family    family // of all addresses
	device    int    // index of the one that has local
	deviceMTU int
	paths     []rawAddr
	states    []pathState   // likewise, by fabric.Path
	free      []fabric.Path // numbers not in use
	dropped   []fabric.Path // that will be free when all that is queued was sent
	byAddr    map[netip.AddrPort]fabric.Path

	groups []group // joined
	turn   int     // whose turn it is to be received from: fd, or groups[turn-1]
	buffer int     // Config.SocketBuffer
}

var _ fabric.Datagram = (*Socket)(nil)

// Open opens a socket in the network namespace of the calling thread, where it
// stays for all users. The caller closes it.
func Open(c Config) (*Socket, error) {
	c.Local = netip.AddrPortFrom(c.Local.Addr().Unmap(), c.Local.Port())
	if c.Arena == nil {
		return nil, errors.New("kudp: Config.Arena is missing")
	}
	switch a := c.Local.Addr(); {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast():
		return nil, fmt.Errorf("kudp: local address %s: want an IPv4 address, or one of IPv6, of this host", c.Local)
	case a.Is6() && a.IsLinkLocalUnicast():
		return nil, fmt.Errorf("kudp: local address %s: %w", c.Local, ErrLinkLocal)
	}
	device, err := deviceOf(c.Local.Addr())
	if err != nil {
		return nil, err
	}
	if c, err = c.withDefaults(device.MTU); err != nil {
		return nil, err
	}
	s := &Socket{family: familyOf(c.Local.Addr()), device: device.Index, deviceMTU: device.MTU, fd: -1, scout: -1, ready: -1, buffer: c.SocketBuffer, arena: c.Arena, byAddr: map[netip.AddrPort]fabric.Path{}}
	if err := s.open(c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Socket) open(c Config) error {
	var err error
	if s.scout, _, err = bound(netip.AddrPortFrom(c.Local.Addr(), 0)); err != nil {
		return err
	}
	if s.kernel, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("kudp: netlink: %w", err)
	}
	if s.fd, s.local, err = bound(c.Local); err != nil {
		return err
	}
	if s.ready, err = event.NewSet(s.fd); err != nil {
		return fmt.Errorf("kudp: %w", err)
	}
	gso, gro, err := s.setOptions(c)
	if err != nil {
		return err
	}
	if s.pool = c.Pool; s.pool == nil {
		if s.pool, err = mem.NewPool(c.Arena, c.Frames, c.Track); err != nil {
			return fmt.Errorf("kudp: %w", err)
		}
		s.ownPool = true
	}
	payload := c.MTU - s.family.headers
	if err := s.rx.init(c.Arena, c.RxSlots, payload, gro); err != nil {
		return err
	}
	s.tx.init(c.Arena, s.pool, payload, gso)
	s.caps = fabric.DatagramCaps{
		Carrier: "udp", MaxPayload: payload, MaxBufs: fabric.MaxBufs,
		// The kernel charges a datagram with the memory that it takes, which
		// is up to twice its size and something for the bookkeeping.
		RxDepth: max(1, int(getMemInfo(s.fd)[memInfoRcvbuf])/(2*payload+1024)),
	}
	return nil
}

// bound makes a non-blocking UDP socket bound to local, and returns what it is
// bound to when the port was 0.
func bound(local netip.AddrPort) (int, netip.AddrPort, error) {
	fd, err := unix.Socket(familyOf(local.Addr()).domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, local, fmt.Errorf("kudp: %w", os.NewSyscallError("socket", err))
	}
	if err := unix.Bind(fd, sockaddr(local)); err != nil {
		unix.Close(fd)
		return -1, local, bindError(local, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return -1, local, fmt.Errorf("kudp: %w", os.NewSyscallError("getsockname", err))
	}
	port := 0
	switch n := name.(type) {
	case *unix.SockaddrInet4:
		port = n.Port
	case *unix.SockaddrInet6:
		port = n.Port
	}
	return fd, netip.AddrPortFrom(local.Addr(), uint16(port)), nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// setOptions sets up the socket and reports which offloads it has.
func (s *Socket) setOptions(c Config) (gso, gro bool, err error) {
	if err := s.setBuffers(s.fd); err != nil {
		return false, false, err
	}
	for _, fd := range []int{s.fd, s.scout} {
		if err := s.family.wholePackets(fd); err != nil {
			return false, false, fmt.Errorf("kudp: %w", os.NewSyscallError("MTU_DISCOVER", err))
		}
		if c.Mark != 0 {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, c.Mark)
		}
	}
	// A segment size of 0 for the socket leaves the size to each message.
	gso = !c.NoGSO && unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_SEGMENT, 0) == nil
	gro = !c.NoGRO && unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
	return gso, gro, nil
}

// setBuffers sets how much the kernel buffers for a socket.
func (s *Socket) setBuffers(fd int) error {
	for _, o := range []struct{ privileged, ordinary int }{
		{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF},
	} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.privileged, s.buffer) == nil {
			continue
		}
		// The kernel cuts this down to what the user may have.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.ordinary, s.buffer); err != nil {
			return fmt.Errorf("kudp: socket buffer of %d bytes: %w", s.buffer, err)
		}
	}
	return nil
}

// Caps says what the socket can do.
func (s *Socket) Caps() fabric.DatagramCaps { return s.caps }

// Arena returns the arena that the socket was given.
func (s *Socket) Arena() *mem.Arena { return s.arena }

// Local returns the address and port that peers send to.
func (s *Socket) Local() netip.AddrPort { return s.local }

// FD returns an epoll instance for poll(2) that watches the socket and those of
// groups that are joined later.
func (s *Socket) FD() int { return int(s.ready) }

// Frame takes a frame to build a datagram in, from its start on.
func (s *Socket) Frame() (mem.Addr, bool) { return s.pool.Get() }

// Unframe gives back a frame that was not sent.
func (s *Socket) Unframe(a mem.Addr) { s.pool.Put(a) }

// Stats counts what the socket did, and what the kernel dropped for want of
// room, where it counts an aggregate of datagrams that GRO keeps together as one.
func (s *Socket) Stats() fabric.DatagramStats {
	st := s.stats
	st.RxMalformed += s.rx.malformed
	st.RxDropped += uint64(getMemInfo(s.fd)[memInfoDrops])
	for _, g := range s.groups {
		st.RxDropped += uint64(getMemInfo(g.fd)[memInfoDrops])
	}
	return st
}

// Resolve makes a destination known, a host or a multicast group. Errors wrap
// [ErrNoRoute], [ErrPathMTU] or what the kernel said.
func (s *Socket) Resolve(to netip.AddrPort) (fabric.Path, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	known, ok := s.byAddr[to]
	if ok && !s.states[known].strange {
		return known, nil
	}
	switch a := to.Addr(); {
	case !a.IsValid() || a.Is4() != s.local.Addr().Is4() || a.IsUnspecified() || to.Port() == 0:
		return 0, fmt.Errorf("kudp: destination %s: want an %s address and a port, as this end has: %s", to, s.family.name, s.local)
	case a.Is6() && a.IsLinkLocalUnicast():
		return 0, fmt.Errorf("kudp: destination %s: %w", to, ErrLinkLocal)
	}
	if to.Addr().IsMulticast() {
		if err := s.toGroups(); err != nil {
			return 0, err
		}
	}
	mtu, err := s.pathMTU(to)
	if err != nil {
		return 0, err
	}
	if need := s.caps.MaxPayload + s.family.headers; mtu < need {
		return 0, fmt.Errorf("kudp: %s takes packets of %d bytes, %d are wanted: %w; choose a smaller MTU", to.Addr(), mtu, need, ErrPathMTU)
	}
	if ok {
		s.states[known].strange = false
		return known, nil
	}
	return s.addPath(to, false), nil
}

// pathMTU returns how large an IP packet to a host may be, as far as this host is
// configured: the MTU of the route, or else that of its device. What the kernel has
// heard of the path by ICMP does not count, for any host can send that.
func (s *Socket) pathMTU(to netip.AddrPort) (int, error) {
	if err := unix.Connect(s.scout, sockaddr(to)); err != nil {
		if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL) {
			return 0, fmt.Errorf("kudp: %w from %s to %s (ip route get %s): %w", ErrNoRoute, s.local.Addr(), to.Addr(), to.Addr(), err)
		}
		return 0, fmt.Errorf("kudp: %s cannot be sent to: %w", to, err)
	}
	if to.Addr().IsMulticast() {
		return s.deviceMTU, nil
	}
	routes, err := s.kernel.RouteGetWithOptions(to.Addr().AsSlice(), &netlink.RouteGetOptions{SrcAddr: s.local.Addr().AsSlice(), FIBMatch: true})
	if err != nil || len(routes) == 0 {
		return 0, fmt.Errorf("kudp: route to %s: %w", to.Addr(), errors.Join(ErrNoRoute, err))
	}
	r := routes[0]
	if r.MTU != 0 || r.Type == unix.RTN_LOCAL { // what is for this host meets no device
		return min(cmp.Or(r.MTU, maxPacket), maxPacket), nil
	}
	link, err := s.kernel.LinkByIndex(r.LinkIndex)
	if err != nil {
		return 0, fmt.Errorf("kudp: device of the route to %s: %w", to.Addr(), err)
	}
	return min(link.Attrs().MTU, maxPacket), nil
}

// Close closes the socket. Datagrams that were queued and not sent are lost,
// and buffers that were received are invalid from now on.
func (s *Socket) Close() error {
	var errs []error
	for len(s.groups) > 0 {
		errs = append(errs, s.Leave(s.groups[0].addr))
	}
	errs = append(errs, s.ready.Close())
	for _, fd := range []*int{&s.fd, &s.scout} {
		if *fd >= 0 {
			errs = append(errs, os.NewSyscallError("close", unix.Close(*fd)))
			*fd = -1
		}
	}
	if s.kernel != nil {
		s.kernel.Close()
		s.kernel = nil
	}
	s.rx.release(s.arena)
	if s.ownPool {
		s.pool.Release(s.arena)
		s.ownPool = false
	}
	return errors.Join(errs...)
}
