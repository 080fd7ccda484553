package inet

import (
	"encoding/binary"
	"net/netip"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// A path has its Ethernet address from one of two: the kernel, which accepts it from any host that
// sends ARP, and the frames of the peer itself, once the layer above has found them to
// be authentic. The latter counts. When nothing comes back from the peer, the two are
// tried in turn, and the neighbour is asked for again.

// Back returns the path to the sender of a datagram, which came from the Ethernet address
// station. It sends no question: what is sent to a path that was made here goes to that
// station, with packets of any size that this host sends.
func (e *Datagram) Back(from fabric.Remote, station fabric.Station) (fabric.Path, bool) {
	p, known := e.byAddr[from]
	if known && !e.paths[p].strange {
		return p, true
	}
	to := from.AddrPort()
	mac := macOf(station)
	if a := to.Addr(); station == 0 || mac.Group() || a.Is6() != e.v6 || to.Port() == 0 || a.IsMulticast() || a.IsUnspecified() {
		return 0, false
	}
	hop := Hop{MAC: mac, MTU: e.caps.MaxPayload + e.headerLen - EthernetLen}
	if !known {
		p = e.addPath(to, hop)
		e.paths[p].strange = true
		return p, true
	}
	e.setHop(&e.paths[p], to, hop)
	return p, true
}

// Drop forgets a path that Back has made, unless it was resolved or trusted since. Its
// number is used again.
func (e *Datagram) Drop(p fabric.Path) {
	if to := &e.paths[p]; to.strange {
		delete(e.byAddr, fabric.RemoteOf(to.dst()))
		*to = path{maxPayload: -1}
		e.free = append(e.free, p)
	}
}

// Trust notes that a datagram from station is proven to be of the peer at the end of a
// path.
func (e *Datagram) Trust(p fabric.Path, station fabric.Station) {
	to := &e.paths[p]
	if to.dropped() || station == 0 || macOf(station).Group() {
		return
	}
	if station == to.station && !to.kernels && !to.strange {
		return // as before
	}
	if to.strange {
		to.strange, to.unknown = false, true
		e.resolver.Follow(to.dst().Addr())
	}
	to.station, to.kernels = station, false
	e.settle(to)
}

// Doubt notes that nothing comes back from the peer at the end of a path.
func (e *Datagram) Doubt(p fabric.Path) {
	to := &e.paths[p]
	dst := to.dst().Addr()
	if to.strange || dst.IsMulticast() {
		return
	}
	to.kernels = to.station != 0 && !to.kernels
	e.settle(to)
	if via := e.resolver.Doubt(dst); via.IsValid() {
		e.solicit(via)
	}
}

// settle gives a path the next hop that counts now.
func (e *Datagram) settle(p *path) {
	to := p.dst()
	hop, ok := e.resolver.Current(to.Addr())
	p.unknown = p.unknown && hop.MTU == 0
	own := p.station != 0 && !hop.Via.IsValid() // behind a router it is that one's
	switch {
	case p.unknown: // the resolver has yet to find out
		hop = Hop{MAC: macOf(p.station), MTU: e.caps.MaxPayload + e.headerLen - EthernetLen}
	case hop.MTU == 0 || !ok && !own:
		p.maxPayload = -1
		return
	case own && (!ok || !p.kernels):
		hop.MAC = macOf(p.station)
	}
	e.setHop(p, to, hop)
}

// dropped reports whether the number of p is free.
func (p *path) dropped() bool { return p.head == [HeaderLen]byte{} }

// stationOf returns the sender's Ethernet address of a frame as a number.
func stationOf(h []byte) fabric.Station {
	return fabric.Station(binary.LittleEndian.Uint64(h[ethSrc:]) & (1<<48 - 1))
}

func macOf(s fabric.Station) (m MAC) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(s))
	copy(m[:], b[:])
	return m
}

// Requests for Ethernet addresses.
const (
	etherARP     = 0x0806
	arpLen       = 28
	protoICMPv6  = 58
	solicitLen   = 32 // with the option
	hopLimitHere = 255
)

// solicit asks for the owner of an address on the link, from the port: the process may lack the rights to
// have the kernel do it. The answer goes to the kernel, like all that is not for us.
func (e *Datagram) solicit(who netip.Addr) {
	if e.port.TxFree() == 0 {
		return
	}
	f, ok := e.pool.GetToSend()
	if !ok {
		return
	}
	h := e.bytes[f:][:128]
	clear(h)
	n := 0
	if who.Is4() {
		n = putARP(h, e.addr.srcMAC, e.addr.src.Addr(), who)
	} else {
		n = putSolicitation(h, e.addr.srcMAC, e.addr.src.Addr(), who)
	}
	e.tx[0] = fabric.Desc{Addr: f, Len: uint32(n)}
	if e.port.Send(e.tx[:1]) == 0 {
		e.pool.Put(f)
	}
}

// putARP writes an ARP request (RFC 826) and returns its length.
func putARP(h []byte, mac MAC, self, who netip.Addr) int {
	PutEthernet(h, MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, etherARP)
	a := h[EthernetLen:]
	copy(a, []byte{0, 1, 8, 0, 6, 4, 0, 1})
	copy(a[8:], mac[:])
	copy(a[14:], self.AsSlice())
	copy(a[24:], who.AsSlice())
	return EthernetLen + arpLen
}

// putSolicitation writes a neighbour solicitation (RFC 4861, section 4.3) and returns
// its length.
func putSolicitation(h []byte, mac MAC, self, who netip.Addr) int {
	target := who.As16()
	group := netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 11: 0x01, 12: 0xff, 13: target[13], 14: target[14], 15: target[15]})
	PutEthernet(h, GroupMAC(group), mac, EtherIPv6)
	PutIPv6(h[ipAt:], IPv6Fields{
		PayloadLen: solicitLen, HopLimit: hopLimitHere, Next: protoICMPv6, Src: self.As16(), Dst: group.As16(),
	})
	s := h[ipAt+IPv6Len:][:solicitLen]
	s[0] = 135
	copy(s[8:], target[:])
	s[24], s[25] = 1, 1 // the sender's Ethernet address
	copy(s[26:], mac[:])
	Sum(0).Add(h[ipAt+ip6Src:][:32]).AddWord(solicitLen).AddWord(protoICMPv6).Add(s).PutChecksum(s[2:])
	return ipAt + IPv6Len + solicitLen
}
