package inet

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/gso"
)

// An aggregate is a packet of several datagrams to one peer: each is as long as the first, but the last may be
// shorter. A device with segmentation offload makes packets of it, each with the headers; a veth passes it on as it is. Its checksum
// then still is what the device was to complete, and the identification of IPv4, or the flow label of IPv6, says how long a
// datagram is: both are free to use where nothing is fragmented (RFC 6864, section 4.1; RFC 6437, section 3).
const (
	aggregateLeast = 512                          // bytes of payload of a datagram, but the last
	aggregateMost  = 1<<16 - 1 - IPv4Len - UDPLen // bytes of payload of all
	aggregateFlat  = 16 << 10                     // up to so many bytes the kernel makes it of one piece of memory, which takes less time
)

// aggregates is the part of an endpoint that sends and receives them.
type aggregates struct {
	ep     *Datagram
	socket *gso.Socket // what they leave by; or nil
	local  bool        // a frame may not have left the machine, so that one may arrive
}

// takes reports whether the datagrams of b are to leave as one packet: all of them, for what is queued at a time and is more
// than that costs less in frames.
func (a *aggregates) takes(b *fabric.Batch) bool {
	if len(b.Pkts) < 2 || !a.socket.Works() {
		return false
	}
	first, last := &b.Pkts[0], len(b.Pkts)-1
	to := &a.ep.paths[first.To]
	if first.Len < aggregateLeast || first.Len > to.maxPayload || len(b.Descs) > gso.MaxPieces-2 || int(first.Len)*(last+1) > aggregateMost {
		return false
	}
	for i := range b.Pkts {
		p := &b.Pkts[i]
		whole := p.Len == first.Len || i == last && p.Len > 0 && p.Len < first.Len
		if !whole || p.To != first.To || p.Source != first.Source || !p.Sealed || !p.Kept || p.Again {
			return false
		}
	}
	if to.pieces.Alone() {
		to.pieces.Sent(last + 1)
		return false
	}
	return true
}

// send sends all datagrams of b as one packet, behind the frames that were before it. false: they have to go in frames.
func (a *aggregates) send(b *fabric.Batch) bool {
	e := a.ep
	first, n := &b.Pkts[0], len(b.Pkts)
	size := int(first.Len)*(n-1) + int(b.Pkts[n-1].Len)
	head := a.put(first, b.Descs[0].Addr, size)
	a.socket.Begin(gso.UDP, head, int(first.Len), e.headerLen-UDPLen, udpChecksum)
	a.socket.Flat(min(len(head)+size, aggregateFlat))
	for i := range b.Descs {
		if d := &b.Descs[i]; d.Len > 0 {
			a.socket.Add(e.bytes[d.Addr:][:d.Len])
		}
	}
	e.port.Flush()
	if !a.socket.Send() {
		return false
	}
	fabric.PutAll(e.pool, b.Descs)
	e.paths[first.To].pieces.Sent(n)
	e.stats.TxAggregates++
	e.stats.TxPackets += uint64(n)
	e.stats.TxBytes += uint64(size)
	return true
}

// put writes the headers of an aggregate that begins with p and has size bytes of payload in front of at, and returns
// them.
func (a *aggregates) put(p *fabric.Packet, at mem.Addr, size int) []byte {
	e := a.ep
	to := &e.paths[p.To]
	h := e.bytes[at-mem.Addr(e.headerLen) : at]
	udp := h[e.headerLen-UDPLen:]
	var sum Sum
	if e.v6 {
		to.put6((*[HeaderLen6]byte)(h), size)
		binary.BigEndian.PutUint32(h[ipAt:], 6<<28|uint32(p.Len))
		sum = IPv6(h[ipAt:]).pseudo(UDPLen + size)
	} else {
		to.put((*[HeaderLen]byte)(h), uint16(p.Len), size)
		sum = IPv4(h[ipAt:]).pseudo(UDPLen + size)
	}
	sum.PutSum(udp[udpChecksum:])
	if p.Source != 0 {
		e.sources.put(udp, p.Source, 0)
	}
	return h
}

// sumLeft reports whether the checksum in udp, behind the header ip, is the sum that a device was to complete: no wire was on the way then. segment
// is how many bytes of payload a datagram has, if they are the headers of an aggregate, or 0.
func (a *aggregates) sumLeft(ip []byte, udp UDP) (segment int, left bool) {
	if !a.local {
		return 0, false
	}
	sum := Sum(0)
	if a.ep.v6 {
		segment, sum = int(binary.BigEndian.Uint32(ip)&(1<<20-1)), IPv6(ip).pseudo(udp.Len())
	} else {
		segment, sum = int(binary.BigEndian.Uint16(ip[ipID:])), IPv4(ip).pseudo(udp.Len())
	}
	if !sum.Is(udp[udpChecksum:]) {
		return 0, false
	}
	if segment < aggregateLeast || segment >= udp.Len()-UDPLen {
		segment = 0
	}
	return segment, true
}

// fits reports whether b has room for the datagrams of an aggregate in so many buffers.
func (in *arrival) fits(b *fabric.Batch, bufs int) bool {
	n := (in.payload + in.segment - 1) / in.segment
	return len(b.Pkts)+n <= cap(b.Pkts) && len(b.Descs)+n+bufs <= cap(b.Descs)
}

// cut appends the datagrams of the aggregate in bufs to b, which has room for them.
func (a *aggregates) cut(b *fabric.Batch, bufs []fabric.Desc, in *arrival) {
	stats := &a.ep.stats
	start := len(b.Descs)
	for left := in.payload; left > 0; {
		n := min(in.segment, left)
		left -= n
		first := len(b.Descs)
		bufs = a.join(bufs, n, first > start && mem.FrameBase(b.Descs[first-1].Addr) == mem.FrameBase(bufs[0].Addr))
		for size := uint32(n); size > 0; {
			d := &bufs[0]
			part := min(size, d.Len)
			b.Descs = append(b.Descs, fabric.Desc{Addr: d.Addr, Len: part, Flags: fabric.More})
			size -= part
			d.Addr += mem.Addr(part)
			if d.Len -= part; d.Len == 0 {
				bufs = bufs[1:]
			}
		}
		b.Descs[len(b.Descs)-1].Flags = 0
		b.Pkts = append(b.Pkts, fabric.Packet{
			First: int32(first), Bufs: int32(len(b.Descs) - first), Len: int32(n), From: in.from, Station: in.station, Queue: in.queue,
		})
		stats.RxPackets++
	}
	stats.RxBytes += uint64(in.payload)
	stats.RxAggregates++
}

// firstPiece is how many bytes of a datagram lie in one piece, if it has so many: the headers of all protocols above.
const firstPiece = 128

// join moves the begin of a datagram of n bytes, which is at that of bufs, in front of the next buffer if it is shorter than
// firstPiece, and returns the buffers from there on. shared says that the datagram before lies in the first one, too.
func (a *aggregates) join(bufs []fabric.Desc, n int, shared bool) []fabric.Desc {
	d := &bufs[0]
	if int(d.Len) >= min(n, firstPiece) || len(bufs) == 1 {
		return bufs
	}
	next := &bufs[1]
	if next.Addr-mem.FrameBase(next.Addr) < mem.Addr(d.Len) {
		return bufs // no room: what wants it in one piece drops the datagram
	}
	next.Addr -= mem.Addr(d.Len)
	next.Len += d.Len
	copy(a.ep.bytes[next.Addr:][:d.Len], a.ep.bytes[d.Addr:][:d.Len])
	if !shared {
		a.ep.pool.Put(d.Addr)
	}
	return bufs[1:]
}
