package inet

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Recv fills b with the datagrams that have arrived for the endpoint. Frames
// that are not well-formed datagrams to it are counted and given back. What
// does not fit b is handed out by the next call, so call again before parking
// when the result was not 0.
func (e *Datagram) Recv(b *fabric.Batch) int {
	b.Reset()
	more := true // the port may have frames that it was not asked for yet
	for len(b.Pkts) < cap(b.Pkts) {
		if e.rxNext == e.rxEnd {
			if !more {
				break
			}
			e.rxNext, e.rxEnd = 0, e.port.Recv(e.rx[:])
			more = e.rxEnd > rxStage-fabric.MaxBufs
			if e.rxEnd == 0 {
				break
			}
			e.fetch(&e.rx[0])
		}
		if len(b.Descs) < cap(b.Descs) && e.recvFast(b, &e.rx[e.rxNext]) {
			e.rxNext++
			continue
		}
		n, size := e.nextFrame()
		if len(b.Descs)+n > cap(b.Descs) {
			if len(b.Descs) == 0 {
				panic("inet: batch has too few buffers for one datagram: make it with fabric.MaxBufs per packet")
			}
			break
		}
		if !e.accept(b, e.rx[e.rxNext:e.rxNext+n], size) {
			break
		}
		e.rxNext += n
	}
	return len(b.Pkts)
}

// fetch asks for the second cache line of a frame while the first, which holds
// the headers, is on its way as well: another core wrote both, and one after
// the other they cost more than all checks.
func (e *Datagram) fetch(d *fabric.Desc) {
	e.warm += e.bytes[d.Addr+mem.Addr(min(d.Len-1, 64))]
}

// nextFrame returns the number of buffers and bytes of the next waiting frame.
func (e *Datagram) nextFrame() (bufs, size int) {
	waiting := e.rx[e.rxNext:e.rxEnd]
	for i := range waiting {
		size += int(waiting[i].Len)
		if waiting[i].Flags&fabric.More == 0 {
			return i + 1, size
		}
	}
	return len(waiting), size
}

// Release gives back all buffers of b and empties it. Datagrams of an aggregate that share a buffer are side by side.
func (e *Datagram) Release(b *fabric.Batch) {
	last := mem.Addr(1) // no frame's
	for i := range b.Descs {
		if base := mem.FrameBase(b.Descs[i].Addr); base != last {
			e.pool.Put(base)
			last = base
		}
	}
	b.Reset()
}

// accept appends the datagrams in frame, which is size bytes long, to b, or
// counts what is wrong with it and gives it back. false: b has no room for all of them.
func (e *Datagram) accept(b *fabric.Batch, frame []fabric.Desc, size int) bool {
	h := e.bytes[frame[0].Addr:][:frame[0].Len]
	in, fault := e.check(h, size)
	in.queue = fabric.QueueOf(frame[0].Flags)
	if fault == intact && in.segment > 0 && !in.fits(b, len(frame)) {
		if len(b.Pkts) > 0 {
			return false
		}
		fault = malformed // a batch never takes so many datagrams, and no sender of ours makes them
	}
	if fault == intact {
		frame = e.trim(frame, in.start, in.payload)
		if in.segment > 0 {
			e.joined.cut(b, frame, &in)
			return true
		}
		if in.sum != 0 && !e.addPayload(in.sum, frame).Good() {
			fault = badChecksum
		}
	}
	switch fault {
	case intact:
		appendPacket(b, frame, &in)
		e.stats.RxPackets++
		e.stats.RxBytes += uint64(in.payload)
		return true
	case malformed:
		e.stats.RxMalformed++
	case badChecksum:
		e.stats.RxChecksum++
	}
	fabric.PutAll(e.pool, frame)
	return true
}

// appendPacket appends a datagram to b, which has room for it. It sets the
// fields one by one: what was written in parts a moment ago and is then copied
// as a whole stalls the processor.
func appendPacket(b *fabric.Batch, bufs []fabric.Desc, in *arrival) {
	n := len(b.Pkts)
	b.Pkts = b.Pkts[:n+1]
	p := &b.Pkts[n]
	p.First, p.Bufs, p.Len = int32(len(b.Descs)), int32(len(bufs)), int32(in.payload)
	p.To, p.From, p.Station, p.Queue, p.Sealed = 0, in.from, in.station, in.queue, false
	if len(bufs) == 1 {
		b.Descs = b.Descs[:p.First+1]
		d := &b.Descs[p.First]
		d.Addr, d.Len, d.Flags = bufs[0].Addr, bufs[0].Len, 0
		return
	}
	b.Descs = append(b.Descs, bufs...)
}

// fault is what is wrong with a frame.
type fault uint8

const (
	intact fault = iota
	malformed
	badChecksum
)

// arrival is what the headers of a frame say.
type arrival struct {
	start, payload int // where the UDP payload is in the frame, and its bytes
	segment        int // bytes of a datagram of an aggregate; 0: it is one datagram
	from           fabric.Remote
	station        fabric.Station
	queue          uint8
	sum            Sum // of everything but the payload; 0 when the sender left out the checksum
}

// check validates the headers in h, the first buffer of a frame that is size
// bytes long in all. Every test is on a field that the network controls.
func (e *Datagram) check(h []byte, size int) (a arrival, f fault) {
	if e.v6 {
		return e.check6(h, size)
	}
	if len(h) < HeaderLen || Ethernet(h).Type() != EtherIPv4 {
		return a, malformed
	}
	ip := IPv4(h[EthernetLen:])
	if !ip.Valid() || ip.TotalLen() > size-EthernetLen {
		return a, malformed
	}
	if !ip.ChecksumGood() {
		return a, badChecksum
	}
	if ip.Fragmented() || ip.Protocol() != ProtoUDP {
		return a, malformed
	}
	// Any unicast Ethernet address will do: the NIC has matched it with its
	// own, and in promiscuous mode the IP address tells what is for us.
	dst := binary.LittleEndian.Uint32(ip[ipDst:])
	if (h[ethDst]&1 != 0 || dst != e.localAddr) && !e.groups.has(h, [2]uint64{uint64(dst)}) {
		return a, malformed
	}
	headerLen := ip.HeaderLen()
	udp := UDP(ip[headerLen:])
	// A UDP length below that of the IP payload is legal; what follows is ignored.
	if !udp.Valid() || udp.Len() > ip.TotalLen()-headerLen || udp.DstPort() != e.localPort {
		return a, malformed
	}
	left := false
	if a.segment, left = e.joined.sumLeft(ip, udp); !left && udp.HasChecksum() {
		// Never 0: the protocol number is in it.
		a.sum = ip.pseudo(udp.Len()).Merge(Sum(binary.LittleEndian.Uint64(udp)))
	}
	a.start = EthernetLen + headerLen + UDPLen
	a.payload = udp.Len() - UDPLen
	a.from = fabric.Remote4(binary.BigEndian.Uint32(ip[ipSrc:]), e.sources.owner(udp.SrcPort()))
	a.station = stationOf(h)
	return a, intact
}

// trim cuts frame down to the n bytes from offset start on, gives back the
// buffers that hold none of them and returns the others. The first one stays
// in any case, so that an empty datagram has a buffer too.
func (e *Datagram) trim(frame []fabric.Desc, start, n int) []fabric.Desc {
	first := &frame[0]
	first.Addr += mem.Addr(start)
	first.Len = uint32(min(int(first.Len)-start, n))
	n -= int(first.Len)
	kept := 1
	for i := 1; i < len(frame); i++ {
		if n == 0 {
			e.pool.Put(frame[i].Addr)
			continue
		}
		frame[i].Len = uint32(min(int(frame[i].Len), n))
		n -= int(frame[i].Len)
		kept = i + 1
	}
	frame[kept-1].Flags = 0
	return frame[:kept]
}

// addPayload returns the sum of s and all buffers.
func (e *Datagram) addPayload(s Sum, bufs []fabric.Desc) Sum {
	odd := false
	for i := range bufs {
		d := &bufs[i]
		b := e.bytes[d.Addr:][:d.Len]
		if odd {
			s = s.Merge(Sum(0).Add(b).Swap())
		} else {
			s = s.Add(b)
		}
		odd = odd != (d.Len&1 != 0)
	}
	return s
}
