package inet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/gso"
)

// Headroom is what a Datagram needs in front of the first buffer of a
// datagram: the headers, rounded up so that the payload starts at a cache line.
// headroomTagged is that of one over IPv6 on a port that adds a tag to them.
const (
	Headroom       = 64
	headroomTagged = 2 * Headroom
)

const (
	defaultTTL = 64 // RFC 1700
	minMTU     = 68 // RFC 791
	rxStage    = 8 * fabric.MaxBufs
	txStage    = 8 * fabric.MaxBufs
)

// Config describes an endpoint. Port, Resolver, Local and MAC must be given.
type Config struct {
	// Port carries the frames. The endpoint closes it.
	Port fabric.Port
	// Resolver finds next hops. The endpoint does not close it: endpoints of
	// one device share one.
	Resolver Resolver
	// Local is the address and port that peers send to: IPv4 or IPv6, and all
	// peers are of the same family. The port must not be 0: only the caller
	// can tell which ones are free.
	Local netip.AddrPort
	// MAC is the Ethernet address of the device.
	MAC MAC
	// MTU is the largest IP packet in bytes to send; default, and at most,
	// the port's. All peers must accept it.
	MTU int
	// FirstPort is the first of SourceOwners ports whose endpoints may send from other
	// source ports: see source.go. All peers must agree, or not have it. Default: none.
	FirstPort uint16
	// Ifindex is the device of Port, in the network namespace of the thread that opens the endpoint: several datagrams to one
	// peer may leave it as one packet (aggregate.go). Default 0: they go in frames.
	Ifindex int
}

// ErrPathMTU is wrapped when a destination cannot be reached with whole
// packets of the endpoint's size.
var ErrPathMTU = errors.New("MTU of the path is too small")

// ErrLinkLocal is wrapped when an IPv6 address is of one link only (fe80::/10). Such
// an address means nothing without the name of the device, which differs from host
// to host, so peers cannot tell it to each other.
var ErrLinkLocal = errors.New("link-local IPv6 addresses are not supported: give the devices addresses of a network (ip addr add fd00::1/64 dev DEVICE)")

// Datagram is a UDP port in user space: a [fabric.Datagram] over a
// [fabric.Port].
//
// Owner: engine.
type Datagram struct {
	port  fabric.Port
	pool  *mem.Pool
	bytes []byte // the arena

	v6        bool      // addresses are IPv6, and so are all packets; else IPv4
	headerLen int       // of a packet that we send
	localAddr uint32    // IPv4, as it lies in a header, read in little-endian order
	local6    [2]uint64 // likewise IPv6
	localPort uint16
	sources   sources
	joined    aggregates
	id        uint16 // of the last packet sent
	caps      fabric.DatagramCaps

	// Frames that the port has delivered and Recv has not handed out yet:
	// rx[rxNext:rxEnd].
	rxNext, rxEnd int
	rx            [rxStage]fabric.Desc
	tx            [txStage]fabric.Desc // what one call to the port's Send gets

	stats fabric.DatagramStats
	warm  byte // keeps fetch from being optimised away

	resolver   Resolver
	generation uint64 // of the resolver when the paths were last read
	paths      []path
	free       []fabric.Path // numbers not in use
	byAddr     map[fabric.Remote]fabric.Path
	addr       addresses // of every path, but for its destination
	groups     groups
}

// path is a destination. Its address is in the template.
type path struct {
	template
	pieces     fabric.Pieces  // whether aggregates arrive
	maxPayload int32          // bytes; -1 while there is no next hop
	strange    bool           // made by Back, and not proven yet to lead to a peer
	unknown    bool           // the resolver was not heard of it yet
	kernels    bool           // the resolver's Ethernet address is tried, though the peer has shown another
	station    fabric.Station // that the peer has shown, or 0
}

var _ fabric.Datagram = (*Datagram)(nil)

// New makes an endpoint. Its errors say which field of c is wrong. The
// endpoint owns c.Port from now on when err is nil.
func New(c Config) (*Datagram, error) {
	switch {
	case c.Port == nil:
		return nil, errors.New("inet: Config.Port is missing")
	case c.Resolver == nil:
		return nil, errors.New("inet: Config.Resolver is missing")
	case !c.Local.IsValid() || c.Local.Addr().IsUnspecified() || c.Local.Addr().IsMulticast() || c.Local.Port() == 0:
		return nil, fmt.Errorf("inet: local address %s: want an IPv4 address, or one of IPv6, of the device and a port", c.Local)
	case c.Local.Addr().Is6() && c.Local.Addr().IsLinkLocalUnicast():
		return nil, fmt.Errorf("inet: local address %s: %w", c.Local, ErrLinkLocal)
	case c.FirstPort > sourcesAt-SourceOwners:
		return nil, fmt.Errorf("inet: Config.FirstPort is %d: want %d at most", c.FirstPort, sourcesAt-SourceOwners)
	case c.MAC.Group():
		return nil, fmt.Errorf("inet: %s is no address of a device", c.MAC)
	}
	port := c.Port.Caps()
	mtu := port.MTU
	if c.MTU != 0 {
		mtu = c.MTU
	}
	local := netip.AddrPortFrom(c.Local.Addr().Unmap(), c.Local.Port())
	v6, least, headerLen := local.Addr().Is6(), minMTU, HeaderLen
	if v6 {
		least, headerLen = MinMTU6, HeaderLen6
	}
	if mtu < least || mtu > port.MTU {
		return nil, fmt.Errorf("inet: MTU %d: want %d to %d, the MTU of the device", mtu, least, port.MTU)
	}
	headroom := Headroom
	if headerLen+port.Headroom() > Headroom {
		headroom = headroomTagged
	}
	e := &Datagram{
		port:       c.Port,
		pool:       c.Port.Pool(),
		bytes:      c.Port.Arena().Bytes(),
		v6:         v6,
		headerLen:  headerLen,
		localPort:  local.Port(),
		sources:    sources{first: c.FirstPort, local: local.Port()},
		resolver:   c.Resolver,
		generation: c.Resolver.Generation(),
		byAddr:     map[fabric.Remote]fabric.Path{},
		groups:     newGroups(c.Resolver, local.Addr()),
		joined:     aggregates{socket: gso.Open(port, c.Ifindex), local: port.Device != "" && !port.ZeroCopy},
		addr:       addresses{srcMAC: c.MAC, src: local, ttl: defaultTTL},
	}
	e.joined.ep = e
	if words := wordsOf(local.Addr()); v6 {
		e.local6 = words
	} else {
		e.localAddr = uint32(words[0])
	}
	e.caps = fabric.DatagramCaps{
		Carrier:    port.Driver,
		MaxPayload: min(mtu, 65535) - (headerLen - EthernetLen),
		MaxBufs:    min(port.MaxBufs, fabric.MaxBufs),
		Headroom:   headroom,
		RxDepth:    port.RxDepth,
		Home:       port.Home,
	}
	if port.MaxBufs == 1 { // all of it has to fit one frame
		e.caps.MaxPayload = min(e.caps.MaxPayload, mem.FrameSize-headroom)
	}
	return e, nil
}

// Caps says what the endpoint can do.
func (e *Datagram) Caps() fabric.DatagramCaps {
	c := e.caps
	c.Detail, c.Aggregates = e.port.Caps().Detail(), e.joined.socket.Works() // they may know more by now
	return c
}

// Arena returns the port's arena.
func (e *Datagram) Arena() *mem.Arena { return e.port.Arena() }

// Local returns the address and port that peers send to.
func (e *Datagram) Local() netip.AddrPort { return e.addr.src }

// FD returns the port's descriptor for poll(2).
func (e *Datagram) FD() int { return e.port.FD() }

// Frame takes a frame to build a datagram in, from offset Caps().Headroom on.
func (e *Datagram) Frame() (mem.Addr, bool) { return e.pool.GetToSend() }

// Unframe gives back a frame that was not sent.
func (e *Datagram) Unframe(a mem.Addr) { e.pool.Put(a) }

// Stats counts what the endpoint did, with what its port lost.
func (e *Datagram) Stats() fabric.DatagramStats {
	s, port := e.stats, e.port.Stats()
	s.RxDropped += port.RxDropped
	s.RxStray += port.RxStray
	s.TxErrors += port.TxInvalid
	s.RxQueues = port.RxQueues
	return s
}

// Close leaves all groups, gives back what Recv had not handed out and closes
// the port. The resolver stays open.
func (e *Datagram) Close() error {
	left := e.groups.leaveAll()
	fabric.PutAll(e.pool, e.rx[e.rxNext:e.rxEnd])
	e.rxNext, e.rxEnd = 0, 0
	return errors.Join(left, e.joined.socket.Close(), e.port.Close())
}

// Resolve makes a destination known: a host, or a multicast group, whose
// datagrams go to all hosts on the link. The error is the resolver's, or wraps
// [ErrPathMTU].
func (e *Datagram) Resolve(to netip.AddrPort) (fabric.Path, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	known, ok := e.byAddr[fabric.RemoteOf(to)]
	if ok && !e.paths[known].strange {
		return known, nil
	}
	switch {
	case to.Addr().Is6() != e.v6 || to.Port() == 0:
		return 0, fmt.Errorf("inet: destination %s: want an %s address and a port, as this end has: %s", to, familyOf(e.v6), e.addr.src)
	case e.v6 && to.Addr().IsLinkLocalUnicast():
		return 0, fmt.Errorf("inet: destination %s: %w", to, ErrLinkLocal)
	case to.Addr().IsMulticast():
		return e.addPath(to, Hop{MAC: GroupMAC(to.Addr()), MTU: e.caps.MaxPayload + e.headerLen - EthernetLen}), nil
	}
	hop, err := e.resolver.Resolve(to.Addr())
	if err != nil {
		return 0, fmt.Errorf("inet: %w", err)
	}
	if need := e.caps.MaxPayload + e.headerLen - EthernetLen; hop.MTU < need {
		return 0, fmt.Errorf("inet: %s takes packets of %d bytes, %d are wanted: %w; choose a smaller MTU", to.Addr(), hop.MTU, need, ErrPathMTU)
	}
	if ok { // what a stranger has said of it does not count any more
		e.paths[known].strange = false
		e.setHop(&e.paths[known], to, hop)
		return known, nil
	}
	return e.addPath(to, hop), nil
}

func (e *Datagram) addPath(to netip.AddrPort, hop Hop) fabric.Path {
	var p fabric.Path
	if n := len(e.free); n > 0 {
		p, e.free = e.free[n-1], e.free[:n-1]
	} else {
		p = fabric.Path(len(e.paths))
		e.paths = append(e.paths, path{})
	}
	e.setHop(&e.paths[p], to, hop)
	e.byAddr[fabric.RemoteOf(to)] = p
	return p
}

// reload reads all next hops again, after the resolver said that some changed.
func (e *Datagram) reload(generation uint64) {
	e.generation = generation
	for i := range e.paths {
		p := &e.paths[i]
		if p.strange || p.dropped() || p.dst().Addr().IsMulticast() { // the link is all there is on the way
			continue
		}
		e.settle(p)
	}
}

func (e *Datagram) setHop(p *path, to netip.AddrPort, hop Hop) {
	a := e.addr
	a.dstMAC, a.dst = hop.MAC, to
	if to.Addr().IsMulticast() {
		a.ttl = groupTTL
	}
	p.template = newTemplate(a)
	p.maxPayload = int32(min(hop.MTU, 1<<16) - (e.headerLen - EthernetLen))
}

// Flush rings the port's doorbell and follows changes of next hops.
func (e *Datagram) Flush() {
	if g := e.resolver.Generation(); g != e.generation {
		e.reload(g)
	}
	e.port.Flush()
}

func familyOf(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}

// wordsOf returns an address as it lies in a header, read eight bytes at a time in
// little-endian order. Of IPv4 it is the lower half of the first word.
func wordsOf(a netip.Addr) (w [2]uint64) {
	if a.Is4() {
		b := a.As4()
		return [2]uint64{uint64(binary.LittleEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}
