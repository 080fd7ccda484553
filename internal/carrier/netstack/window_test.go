package netstack

import (
	"fmt"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// rawPeer is host B of a pair without a stack: it sends segments by hand.
type rawPeer struct {
	*pair
	from, to netip.AddrPort
	seq, ack uint32 // of the next segment to send
	edge     uint32 // the sequence number at which the window that A offers ends
	scale    uint8
}

// greet connects a raw peer to a listener of A's.
func greet(p *pair, to netip.AddrPort) *rawPeer {
	r := &rawPeer{pair: p, from: netip.AddrPortFrom(addrB, 5000), to: to, seq: 1000}
	r.send(header.TCPFlagSyn, nil, []byte{header.TCPOptionWS, 3, 7, header.TCPOptionNOP})
	r.seq++
	syn := r.recv()
	r.scale = uint8(header.ParseSynOptions(syn.Options(), true).WS)
	r.ack = syn.SequenceNumber() + 1
	r.edge = r.seq + uint32(syn.WindowSize())
	r.send(header.TCPFlagAck, nil, nil)
	return r
}

// send puts a segment on the cable.
func (r *rawPeer) send(flags header.TCPFlags, payload, options []byte) {
	tcpLen := header.TCPMinimumSize + len(options)
	b := make([]byte, inet.EthernetLen+inet.IPv4Len+tcpLen+len(payload))
	inet.PutEthernet(b, macA, macB, inet.EtherIPv4)
	ip := header.IPv4(b[inet.EthernetLen:])
	from, to := tcpip.AddrFrom4(r.from.Addr().As4()), tcpip.AddrFrom4(r.to.Addr().As4())
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(len(ip)), TTL: 64, Protocol: uint8(header.TCPProtocolNumber), SrcAddr: from, DstAddr: to})
	ip.SetChecksum(^ip.CalculateChecksum())
	seg := header.TCP(ip[inet.IPv4Len:])
	copy(seg[tcpLen:], payload)
	copy(seg[header.TCPMinimumSize:], options)
	seg.Encode(&header.TCPFields{
		SrcPort: r.from.Port(), DstPort: r.to.Port(), SeqNum: r.seq, AckNum: r.ack,
		DataOffset: uint8(tcpLen), Flags: flags, WindowSize: 65535,
	})
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, from, to, uint16(len(seg)))
	seg.SetChecksum(^seg.CalculateChecksum(checksum.Checksum(payload, sum)))
	r.put(b)
}

// put puts a frame on the cable.
func (p *pair) put(frame []byte) {
	port := p.ports[1]
	at, _ := port.pool.Get()
	n := copy(port.arena.At(at, mem.FrameSize), frame)
	port.Send([]fabric.Desc{{Addr: at, Len: uint32(n)}})
	port.Flush()
}

// get lets A work until it has sent a packet.
func (p *pair) get() header.IPv4 {
	port := p.ports[1]
	for len(port.rx) == 0 {
		p.ready = p.a.Poll(mono.Real{}.Now(), p.ready[:0])
		p.a.Flush()
	}
	d := port.rx[0]
	port.rx = port.rx[1:]
	frame := append([]byte(nil), port.arena.At(d.Addr, int(d.Len))...)
	port.pool.Put(d.Addr)
	return frame[inet.EthernetLen:]
}

// recv returns the next segment that A sends. Its checksum must be right.
func (r *rawPeer) recv() header.TCP {
	r.t.Helper()
	ip := r.get()
	seg := header.TCP(ip.Payload())
	if data := seg.Payload(); !seg.IsChecksumValid(ip.SourceAddress(), ip.DestinationAddress(), checksum.Checksum(data, 0), uint16(len(data))) {
		r.t.Fatalf("a segment with a wrong checksum: %x", []byte(seg)[:seg.DataOffset()])
	}
	return seg
}

// TestWindow_fullToTheEdge fills the window as Linux does, with whole segments
// and one that ends where the window does, while nobody reads. What the peer
// acknowledges from there on counts all the same: nothing else would ever make
// room for it, where both sides send before they read.
func TestWindow_fullToTheEdge(t *testing.T) {
	for _, mss := range []uint32{536, 1000, 1310, 1365, 1448, 1460} {
		t.Run(fmt.Sprint(mss), func(t *testing.T) {
			p := newPair(t, 1500, nil)
			l, err := p.a.Listen(netip.AddrPort{}, 16)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			r := greet(p, netip.AddrPortFrom(addrA, l.Local().Port()))
			start, taken := r.seq, r.seq
			for taken == r.seq && r.edge != r.seq {
				n := min(mss, r.edge-r.seq)
				r.send(header.TCPFlagAck, make([]byte, n), nil)
				r.seq += n
				got := r.recv()
				taken = got.AckNumber()
				if edge := taken + uint32(got.WindowSize())<<r.scale; int32(edge-r.edge) > 0 {
					r.edge = edge
				}
			}
			s := l.Accept().(*Stream)
			defer s.Close(true)
			r.takes(s, 100_000)
			// Whoever reads makes room for what was not taken.
			for buf := make([]byte, 1<<16); start != taken; {
				n, _ := s.Recv(buf)
				start += uint32(n)
			}
			again := make([]byte, r.seq-taken)
			r.seq = taken
			r.send(header.TCPFlagAck, again, nil)
			for r.recv().AckNumber() != taken+uint32(len(again)) {
			}
		})
	}
}

// takes lets A send n bytes, more than it may without an acknowledgement, and
// acknowledges what arrives: nothing must come again and again.
func (r *rawPeer) takes(s *Stream, n int) {
	r.t.Helper()
	if took := s.Send([][]byte{make([]byte, n)}); took != n {
		r.t.Fatalf("%d bytes of %d are taken", took, n)
	}
	s.stack.Flush()
	all := r.ack + uint32(n)
	for again := 0; r.ack != all; {
		got := r.recv()
		end := got.SequenceNumber() + uint32(len(got.Payload()))
		switch {
		case int32(end-r.ack) > 0:
			r.ack, again = end, 0
		case len(got.Payload()) > 0:
			if again++; again == 6 { // a few are a busy machine's
				r.t.Fatalf("what was acknowledged is sent again and again, and %d bytes are missing", all-r.ack)
			}
		default:
			continue
		}
		r.send(header.TCPFlagAck, nil, nil)
	}
}

// TestWindow_isOfTCP makes gVisor send something else: it answers a timestamp
// option that has no room for one.
func TestWindow_isOfTCP(t *testing.T) {
	p := newPair(t, 1500, nil)
	option := []byte{0x44, 4, 1, 0}
	b := make([]byte, inet.EthernetLen+inet.IPv4Len+len(option)+header.TCPMinimumSize)
	inet.PutEthernet(b, macA, macB, inet.EtherIPv4)
	ip := header.IPv4(b[inet.EthernetLen:])
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(ip)), TTL: 64, Protocol: uint8(header.TCPProtocolNumber),
		SrcAddr: tcpip.AddrFrom4(addrB.As4()), DstAddr: tcpip.AddrFrom4(addrA.As4()),
	})
	ip.SetHeaderLength(uint8(inet.IPv4Len + len(option)))
	copy(ip[inet.IPv4Len:], option)
	ip.SetChecksum(0)
	ip.SetChecksum(^ip.CalculateChecksum())
	seg := ip.Payload()
	p.a.family.pseudo(ip, len(seg)).Add(seg).PutChecksum(seg[tcpChecksumAt:])
	p.put(b)
	if got := p.get(); got.TransportProtocol() != header.ICMPv4ProtocolNumber {
		t.Errorf("answered by protocol %d", got.TransportProtocol())
	}
}

// The window grows with what is read in a round trip, up to what the configuration allows.
func TestWindow_grows(t *testing.T) {
	const most = 3 << 20
	p := newPair(t, 9000, func(c *Config) { c.RecvBuffer = most })
	a, b := p.connect()
	size := func() int64 { return b.ep.SocketOptions().GetReceiveBufferSize() }
	before := size()
	p.transfer(a, b, 4<<20)
	for range 100 { // how much depends on the time that a round trip takes
		if size() > before {
			break
		}
		p.transfer(a, b, 1<<20)
	}
	if after := size(); after <= before || after > most {
		t.Errorf("the receive buffer had %d bytes and has %d", before, after)
	}
}
