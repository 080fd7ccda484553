package inet

import (
	"encoding/binary"
	"math/bits"

	"github.com/xwarp/xwarp/internal/fabric"
)

// quick is the short way of accept for what nearly every frame is: a datagram to
// us in one buffer, without IP options or fragments. It looks at the headers eight
// bytes at a time. false means that accept has to look; then
// nothing was done.
func (e *Endpoint) quick(b *fabric.Batch, d *fabric.Desc) bool {
	if e.v6 {
		return e.quick6(b, d)
	}
	h := e.bytes[d.Addr:][:d.Len]
	if len(h) < HeaderLen || d.Flags&fabric.More != 0 {
		return false
	}
	front := binary.LittleEndian.Uint64(h[ethType:])          // type, version, TOS, total length, identification
	middle := binary.LittleEndian.Uint64(h[ipAt+ipFragment:]) // fragment, TTL, protocol, checksum, half of the source
	dst := binary.LittleEndian.Uint32(h[ipAt+ipDst:])
	udp := binary.LittleEndian.Uint64(h[udpAt:]) // ports, length, checksum
	const (
		version   = ipVersion4Len5<<16 | EtherIPv4&0xff<<8 | EtherIPv4>>8
		wholeMask = 0xff<<24 | ipMoreAndOff&0xff<<8 | ipMoreAndOff>>8
		whole     = ProtoUDP << 24
	)
	if front&(1<<24-1) != version || middle&wholeMask != whole || h[ethDst]&1 != 0 || dst != e.localAddr {
		return false
	}
	ipLen, udpLen := int(bits.ReverseBytes16(uint16(front>>32))), int(bits.ReverseBytes16(uint16(udp>>32)))
	if udpLen < UDPLen || ipLen != IPv4Len+udpLen || EthernetLen+ipLen > len(h) {
		return false
	}
	if bits.ReverseBytes16(uint16(udp>>16)) != e.localPort || !headerSum((*[IPv4Len]byte)(h[ipAt:])).Good() {
		return false
	}
	if udp>>48 != 0 && !IPv4(h[ipAt:]).pseudo(udpLen).Merge(Sum(udp)).Add(h[HeaderLen:udpAt+udpLen]).Good() {
		return false
	}
	in := arrival{start: HeaderLen, payload: udpLen - UDPLen}
	in.from = fabric.Remote4(binary.BigEndian.Uint32(h[ipAt+ipSrc:]), bits.ReverseBytes16(uint16(udp)))
	d.Addr, d.Len = d.Addr+HeaderLen, uint32(in.payload)
	appendPacket(b, e.rx[e.rxNext:e.rxNext+1], &in)
	e.stats.RxPackets++
	e.stats.RxBytes += uint64(udpLen - UDPLen)
	return true
}
