package inet

import (
	"encoding/binary"
	"math/bits"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// recvFast6 is recvFast over IPv6: a datagram to us in one buffer, right behind the
// IPv6 header.
func (e *Datagram) recvFast6(b *fabric.Batch, d *fabric.Desc) bool {
	h := e.bytes[d.Addr:][:d.Len]
	if len(h) < HeaderLen6 || d.Flags&fabric.More != 0 {
		return false
	}
	front := binary.LittleEndian.Uint64(h[ethType:]) // type, version, class, flow label, payload length
	hi, lo := binary.LittleEndian.Uint64(h[ipAt+ip6Dst:]), binary.LittleEndian.Uint64(h[ipAt+ip6Dst+8:])
	udp := binary.LittleEndian.Uint64(h[udpAt6:]) // ports, length, checksum
	const (
		mask    = 0xf0ffff
		version = 0x60<<16 | EtherIPv6&0xff<<8 | EtherIPv6>>8
	)
	if front&mask != version || h[ipAt+ip6Next] != ProtoUDP || h[ethDst]&1 != 0 || hi != e.local6[0] || lo != e.local6[1] {
		return false
	}
	udpLen := int(bits.ReverseBytes16(uint16(udp >> 32)))
	if udpLen < UDPLen || uint16(front>>48) != uint16(udp>>32) || udpAt6+udpLen > len(h) {
		return false
	}
	if bits.ReverseBytes16(uint16(udp>>16)) != e.localPort || udp>>48 == 0 {
		return false
	}
	if !IPv6(h[ipAt:]).pseudo(udpLen).Merge(Sum(udp)).Add(h[HeaderLen6 : udpAt6+udpLen]).Good() {
		return false
	}
	from := fabric.Remote6(binary.BigEndian.Uint64(h[ipAt+ip6Src:]), binary.BigEndian.Uint64(h[ipAt+ip6Src+8:]), e.sources.owner(bits.ReverseBytes16(uint16(udp))))
	appendOne(b, d, HeaderLen6, udpLen-UDPLen, from, stationOf(h))
	e.stats.RxPackets++
	e.stats.RxBytes += uint64(udpLen - UDPLen)
	return true
}

// check6 is check over IPv6. Extension headers are refused, those of fragments
// among them: endpoints send none.
func (e *Datagram) check6(h []byte, size int) (a arrival, f fault) {
	if len(h) < HeaderLen6 || Ethernet(h).Type() != EtherIPv6 {
		return a, malformed
	}
	ip := IPv6(h[EthernetLen:])
	if !ip.Valid() || ip.Next() != ProtoUDP || ip.PayloadLen() > size-EthernetLen-IPv6Len {
		return a, malformed
	}
	dst := [2]uint64{binary.LittleEndian.Uint64(ip[ip6Dst:]), binary.LittleEndian.Uint64(ip[ip6Dst+8:])}
	if (h[ethDst]&1 != 0 || dst != e.local6) && !e.groups.has(h, dst) {
		return a, malformed
	}
	udp := UDP(ip[IPv6Len:])
	if !udp.Valid() || udp.Len() > ip.PayloadLen() || udp.DstPort() != e.localPort {
		return a, malformed
	}
	if !udp.HasChecksum() { // IPv6 has none of its own: RFC 8200, section 8.1
		return a, badChecksum
	}
	left := false
	if a.segment, left = e.joined.sumLeft(ip, udp); !left {
		a.sum = ip.pseudo(udp.Len()).Merge(Sum(binary.LittleEndian.Uint64(udp)))
	}
	a.start = HeaderLen6
	a.payload = udp.Len() - UDPLen
	a.station = stationOf(h)
	a.from = fabric.Remote6(binary.BigEndian.Uint64(ip[ip6Src:]), binary.BigEndian.Uint64(ip[ip6Src+8:]), e.sources.owner(udp.SrcPort()))
	return a, intact
}
