package inet

import (
	"encoding/binary"
	"fmt"
)

// MAC is an Ethernet address.
type MAC [6]byte

func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Group reports whether m names several stations (multicast or broadcast).
func (m MAC) Group() bool { return m[0]&1 != 0 }

// Ethernet is a view of an Ethernet II header without VLAN tag. Check Valid
// once; the accessors cannot fail afterwards.
type Ethernet []byte

// Offsets of the fields of an Ethernet header and its length in bytes.
const (
	ethDst  = 0
	ethSrc  = 6
	ethType = 12

	EthernetLen = 14
)

// The Ethernet types of IPv4 and IPv6.
const (
	EtherIPv4 = 0x0800
	EtherIPv6 = 0x86dd
)

// Valid reports whether all of the header is there.
func (h Ethernet) Valid() bool { return len(h) >= EthernetLen }

// Dst returns the address of the station the frame is meant for.
func (h Ethernet) Dst() MAC { return MAC(h[ethDst:]) }

// Src returns the address of the station that sent the frame.
func (h Ethernet) Src() MAC { return MAC(h[ethSrc:]) }

// Type returns the type of the payload.
func (h Ethernet) Type() uint16 { return binary.BigEndian.Uint16(h[ethType:]) }

// PutEthernet writes an Ethernet header to the first 14 bytes of b.
func PutEthernet(b []byte, dst, src MAC, typ uint16) {
	copy(b[ethDst:], dst[:])
	copy(b[ethSrc:], src[:])
	binary.BigEndian.PutUint16(b[ethType:], typ)
}
