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
		s.deliver(s.rx[first:i], size)
	}
	s.inline.handle()
	if n > 0 {
		s.out.tell()
	}
}

// deliver copies a frame of size bytes and gives it back: gVisor keeps
// segments for as long as they are not read.
func (s *Stack) deliver(bufs []fabric.Desc, size int) {
	total, ok := s.check(s.bytes[bufs[0].Addr:][:bufs[0].Len], size)
	if !ok {
		s.malformed++
		fabric.PutAll(s.pool, bufs)
		return
	}
	v := buffer.NewView(total)
	skip, rest := inet.EthernetLen, total
	for i := range bufs {
		b := s.bytes[bufs[i].Addr:][:bufs[i].Len][skip:]
		b = b[:min(len(b), rest)]
		_, _ = v.Write(b) // grows v if need be: never fails
		skip, rest = 0, rest-len(b)
	}
	fabric.PutAll(s.pool, bufs)
	if s.attached == nil {
		v.Release()
		return
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	s.attached.DeliverNetworkPacket(s.family.protocol, p)
	p.DecRef()
}

// check reports whether a frame of size bytes that begins with h holds a TCP
// segment to us, and how long its IP packet is. gVisor checks the rest.
func (s *Stack) check(h []byte, size int) (total int, ok bool) {
	if len(h) < inet.EthernetLen+s.family.headerLen+tcpHeaderLen || inet.Ethernet(h).Type() != s.family.ether || h[0]&1 != 0 {
		return 0, false
	}
	var from netip.Addr
	var headerLen int
	station := inet.Ethernet(h).Src()
	h = h[inet.EthernetLen:]
	if s.family.protocol == header.IPv6ProtocolNumber {
		ip := inet.IPv6(h)
		if !ip.Valid() || ip.Next() != protoTCP || netip.AddrFrom16(ip.Dst()) != s.config.Local {
			return 0, false
		}
		from, headerLen, total = netip.AddrFrom16(ip.Src()), inet.IPv6Len, inet.IPv6Len+ip.PayloadLen()
	} else {
		ip := inet.IPv4(h)
		if !ip.Valid() || ip.Fragmented() || ip.Protocol() != protoTCP || netip.AddrFrom4(ip.Dst()) != s.config.Local {
			return 0, false
		}
		from, headerLen, total = netip.AddrFrom4(ip.Src()), ip.HeaderLen(), ip.TotalLen()
	}
	if total > size-inet.EthernetLen || total < headerLen+tcpHeaderLen {
		return 0, false
	}
	s.hosts.heard(from, station, s.now)
	if tcp := h[headerLen:]; len(tcp) >= tcpHeaderLen && header.TCPFlags(tcp[tcpFlagsAt])&header.TCPFlagSyn != 0 {
		s.syns.note(from, tcp)
	}
	return total, true
}

const (
	protoTCP   = 6
	tcpFlagsAt = 13
)
