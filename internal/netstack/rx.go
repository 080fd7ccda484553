package netstack

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/inet"
)

// receive hands the frames that have arrived to gVisor and returns how many.
func (s *Stack) receive() int {
	n := s.port.Recv(s.rx[:])
	frames := 0
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
		frames++
	}
	return frames
}

// deliver copies a frame of size bytes and gives it back: gVisor keeps
// segments for as long as nobody reads them.
func (s *Stack) deliver(bufs []fabric.Desc, size int) {
	total, ok := s.check(s.bytes[bufs[0].Addr:][:bufs[0].Len], size)
	if !ok {
		s.malformed++
		s.putAll(bufs)
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
	s.putAll(bufs)
	if s.attached == nil {
		v.Release()
		return
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	s.attached.DeliverNetworkPacket(ipv4.ProtocolNumber, p)
	p.DecRef()
}

// check reports whether a frame of size bytes that begins with h holds a TCP
// segment to us, and how long its IP packet is. gVisor checks the rest.
func (s *Stack) check(h []byte, size int) (total int, ok bool) {
	if len(h) < inet.EthernetLen+ipHeaderLen+tcpHeaderLen || inet.Ethernet(h).Type() != inet.EtherIPv4 || h[0]&1 != 0 {
		return 0, false
	}
	ip := inet.IPv4(h[inet.EthernetLen:])
	if !ip.Valid() || ip.Fragmented() || ip.Protocol() != protoTCP || ip.Dst() != s.local4 {
		return 0, false
	}
	total = ip.TotalLen()
	if total > size-inet.EthernetLen || total < ip.HeaderLen()+tcpHeaderLen {
		return 0, false
	}
	if tcp := ip[ip.HeaderLen():]; len(tcp) >= tcpHeaderLen && header.TCPFlags(tcp[tcpFlagsAt])&header.TCPFlagSyn != 0 {
		s.greetings.note(binary.BigEndian.Uint32(ip[ipSrcAt:]), tcp)
	}
	return total, true
}

const (
	protoTCP   = 6
	ipSrcAt    = 12
	ipDstAt    = 16
	tcpFlagsAt = 13
)

func (s *Stack) putAll(bufs []fabric.Desc) {
	for i := range bufs {
		s.pool.Put(bufs[i].Addr)
	}
}
