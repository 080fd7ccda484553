package inet

import (
	"encoding/binary"
	"math/bits"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// recvFast is the fast path of accept for what nearly every frame is: a datagram to
// us in one buffer, without IP options or fragments. It looks at the headers eight
// bytes at a time. false means that accept has to look; then
// nothing was done.
func (e *Datagram) recvFast(b *fabric.Batch, d *fabric.Desc) bool {
	if e.v6 {
		return e.recvFast6(b, d)
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
	from := fabric.Remote4(binary.BigEndian.Uint32(h[ipAt+ipSrc:]), e.sources.owner(bits.ReverseBytes16(uint16(udp))))
	appendOne(b, d, HeaderLen, udpLen-UDPLen, from, stationOf(h))
	e.stats.RxPackets++
	e.stats.RxBytes += uint64(udpLen - UDPLen)
	return true
}

// appendOne is appendPacket for n bytes of payload that are in one buffer, from offset at on.
func appendOne(b *fabric.Batch, frame *fabric.Desc, at mem.Addr, n int, from fabric.Remote, station fabric.Station) {
	pkts, descs := len(b.Pkts), len(b.Descs)
	b.Pkts, b.Descs = b.Pkts[:pkts+1], b.Descs[:descs+1]
	p, d := &b.Pkts[pkts], &b.Descs[descs]
	d.Addr, d.Len, d.Flags = frame.Addr+at, uint32(n), 0
	p.First, p.Bufs, p.Len = int32(descs), 1, int32(n)
	p.To, p.From, p.Station, p.Queue, p.Sealed = 0, from, station, fabric.QueueOf(frame.Flags), false
}
