package fabric

import (
	"encoding/binary"
	"net/netip"
)

// Remote is the address and UDP port of a peer in a form that is compared and
// copied fast, holds no pointer and can be a map's key. The zero Remote is none.
type Remote struct {
	hi, lo uint64 // IPv6, or IPv4 mapped to it (RFC 4291, section 2.5.5.2)
	port   uint16
}

// mapped stands in front of an IPv4 address that is mapped to IPv6.
const mapped = 0xffff << 32

// RemoteOf packs an address and port. The zone of an address is lost: code that
// has the Remote knows the link.
func RemoteOf(a netip.AddrPort) Remote {
	b := a.Addr().As16()
	return Remote{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), a.Port()}
}

// Remote4 is RemoteOf an IPv4 address, as a number, and a port.
func Remote4(addr uint32, port uint16) Remote { return Remote{0, mapped | uint64(addr), port} }

// Remote6 is RemoteOf an IPv6 address, as two numbers, and a port.
func Remote6(hi, lo uint64, port uint16) Remote { return Remote{hi, lo, port} }

// AddrPort unpacks r. Of the zero Remote it is the zero AddrPort.
func (r Remote) AddrPort() netip.AddrPort {
	if r == (Remote{}) {
		return netip.AddrPort{}
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], r.hi)
	binary.BigEndian.PutUint64(b[8:], r.lo)
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), r.port)
}

// Port returns the port.
func (r Remote) Port() uint16 { return r.port }

// WithPort returns another port of the same host.
func (r Remote) WithPort(port uint16) Remote { return Remote{r.hi, r.lo, port} }

// Low returns the last four bytes of the address: all of one of IPv4.
func (r Remote) Low() uint32 { return uint32(r.lo) }

// Hash spreads addresses over all 64 bits, for a table that takes the upper ones.
func (r Remote) Hash() uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: Fibonacci hashing
	return ((r.hi*golden^r.lo)*golden ^ uint64(r.port)) * golden
}
