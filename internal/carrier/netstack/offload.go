package netstack

import (
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/carrier/gso"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// whole sends a packet that is more than a frame as it is, behind the frames that were before it. false: it has to be cut.
func (s *Stack) whole(p *stack.PacketBuffer, to inet.MAC) bool {
	o := s.out.offload
	ip, tcp := p.NetworkHeader().Slice(), p.TransportHeader().Slice()
	from := inet.EthernetLen + len(ip)
	n := from + len(tcp)
	if n > len(s.out.head) {
		return false
	}
	head := s.out.head[:n]
	inet.PutEthernet(head, to, s.mac, s.family.ether)
	copy(head[inet.EthernetLen:], ip)
	copy(head[from:], tcp)
	s.number(p, head[inet.EthernetLen:from], head[from:], 0, p.Data().Size()).PutSum(head[from+tcpChecksumAt:])
	kind := gso.TCP4
	if s.family.ether == inet.EtherIPv6 {
		kind = gso.TCP6
	}
	o.Begin(kind, head, int(p.GSOOptions.MSS), from, tcpChecksumAt)
	views, skip := p.AsViewList()
	skip += len(ip) + len(tcp)
	for v := views.Front(); v != nil; v = v.Next() {
		if b := bytesFrom(v, &skip); len(b) > 0 && !o.Add(b) {
			return false
		}
	}
	s.push()
	s.port.Flush()
	return o.Send()
}

// headMost is the most bytes of a packet's headers.
const headMost = inet.EthernetLen + inet.IPv6Len + header.TCPHeaderMaximumSize
