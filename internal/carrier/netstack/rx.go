package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// receive hands the frames that have arrived to gVisor.
func (s *Stack) receive() {
	n := s.port.Recv(s.rx[:])
	var r run
	for i := 0; i < n; {
		first, size := i, 0
		for {
			d := &s.rx[i]
			i++
			size += int(d.Len)
			if d.Flags&fabric.More == 0 || i == n {
				break
			}
		}
		bufs := s.rx[first:i]
		ip, headerLen, ok := s.check(bufs, size)
		if !ok {
			s.malformed++
			s.deliver(r, s.rx[r.first:first])
			fabric.PutAll(s.pool, bufs)
			r = run{}
			continue
		}
		if !r.extend(&s.family, ip, size-inet.EthernetLen) {
			s.deliver(r, s.rx[r.first:first])
			r = s.family.begin(ip, headerLen, first, size-inet.EthernetLen)
		}
	}
	s.deliver(r, s.rx[r.first:n])
	s.inline.handle()
	if n > 0 {
		s.out.tell()
	}
}

// intact reports whether the checksums of the IP packet in the frame of bufs are right. gVisor is told
// that they are (link.Capabilities): it takes longer. What comes from the same machine may have that of TCP without
// its payload, for its sender left the rest to a device that does not compute any: no wire was in between. (Of frames that
// a wire has damaged, on a card without zero-copy, two in 65536 pass instead of one.)
func (s *Stack) intact(bufs []fabric.Desc, ip []byte, headerLen int) bool {
	rest := s.family.total(ip) - headerLen
	sum := s.family.pseudo(ip, rest)
	if s.local && sum.Is(ip[headerLen+tcpChecksumAt:]) {
		return s.headIntact(ip)
	}
	odd := false
	for i, skip := 0, inet.EthernetLen+headerLen; i < len(bufs) && rest > 0; i++ {
		b := s.bytes[bufs[i].Addr:][skip:bufs[i].Len]
		b = b[:min(len(b), rest)]
		skip, rest = 0, rest-len(b)
		part := inet.Sum(0).Add(b)
		if odd {
			part = part.Swap()
		}
		sum = sum.Merge(part)
		odd = odd != (len(b)&1 != 0)
	}
	return sum.Good() && s.headIntact(ip)
}

// headIntact reports whether the checksum of an IP header is right.
func (s *Stack) headIntact(ip []byte) bool {
	return s.family.protocol == header.IPv6ProtocolNumber || inet.IPv4(ip).ChecksumGood()
}

// deliver copies the frames of a run, which are in bufs, and gives them back: gVisor keeps segments for
// as long as they are not read.
func (s *Stack) deliver(r run, bufs []fabric.Desc) {
	if r.total == 0 {
		return
	}
	v := buffer.NewView(r.total)
	skip := inet.EthernetLen
	for i := range bufs {
		b := s.bytes[bufs[i].Addr:][:bufs[i].Len]
		b = b[min(skip, len(b)):]
		b = b[:min(len(b), r.total-v.Size())] // without what pads an only frame
		_, _ = v.Write(b)                     // there is room
		if skip = 0; bufs[i].Flags&fabric.More == 0 {
			skip = inet.EthernetLen + len(r.head)
		}
	}
	fabric.PutAll(s.pool, bufs)
	if s.attached == nil {
		v.Release()
		return
	}
	if r.frames > 1 {
		ip := v.AsSlice()[:s.family.headerLen] // gVisor does not have the view yet
		s.family.cut(ip, r.total-len(ip), 0)
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	s.attached.DeliverNetworkPacket(s.family.protocol, p)
	p.DecRef()
}

// check reports whether a frame of size bytes holds a TCP segment to us, which is intact. It returns
// the IP packet, as far as that is in the first buffer, and the length of its header. gVisor checks the rest.
func (s *Stack) check(bufs []fabric.Desc, size int) (ip []byte, headerLen int, ok bool) {
	h := s.bytes[bufs[0].Addr:][:bufs[0].Len]
	if len(h) < inet.EthernetLen+s.family.headerLen+tcpHeaderLen || inet.Ethernet(h).Type() != s.family.ether || h[0]&1 != 0 {
		return nil, 0, false
	}
	var from netip.Addr
	ip = h[inet.EthernetLen:]
	if s.family.protocol == header.IPv6ProtocolNumber {
		h := inet.IPv6(ip)
		if !h.Valid() || h.Next() != protoTCP || netip.AddrFrom16(h.Dst()) != s.config.Local {
			return nil, 0, false
		}
		from, headerLen = netip.AddrFrom16(h.Src()), inet.IPv6Len
	} else {
		h := inet.IPv4(ip)
		if !h.Valid() || h.Fragmented() || h.Protocol() != protoTCP || netip.AddrFrom4(h.Dst()) != s.config.Local {
			return nil, 0, false
		}
		from, headerLen = netip.AddrFrom4(h.Src()), h.HeaderLen()
	}
	least := headerLen + tcpHeaderLen
	if total := s.family.total(ip); total > size-inet.EthernetLen || total < least || len(ip) < least || !s.intact(bufs, ip, headerLen) {
		return nil, 0, false
	}
	s.hosts.heard(from, inet.Ethernet(h).Src(), s.now)
	if tcp := ip[headerLen:]; header.TCPFlags(tcp[tcpFlagsAt])&header.TCPFlagSyn != 0 {
		s.syns.note(from, tcp)
	}
	return ip, headerLen, true
}

const (
	protoTCP   = 6
	tcpSeqAt   = 4
	tcpAckAt   = 8
	tcpFlagsAt = 13
)
