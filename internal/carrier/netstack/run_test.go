package netstack

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// recorder is a stack of gVisor's that notes the packets that it gets.
type recorder struct{ packets [][]byte }

func (r *recorder) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	v := p.ToView()
	r.packets = append(r.packets, v.ToSlice())
	v.Release()
}

func (r *recorder) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// part is a frame from A to B: n bytes of a stream from the sequence number seq on, with what edit makes
// of its IP packet before the checksums are right, and damage when they are.
type part struct {
	seq, n       int
	options      []byte
	pad          int
	edit, damage func(ip, tcp []byte)
}

// content is the byte of the streams at a sequence number.
func content(seq uint32) byte { return byte(seq*7 + seq>>8) }

func (d *part) frame(v6 bool) []byte {
	tcpLen := tcpHeaderLen + len(d.options)
	ipLen, ether := inet.IPv4Len, uint16(inet.EtherIPv4)
	if v6 {
		ipLen, ether = inet.IPv6Len, inet.EtherIPv6
	}
	b := make([]byte, inet.EthernetLen+ipLen+tcpLen+d.n+d.pad)
	inet.PutEthernet(b, macB, macA, ether)
	ip := b[inet.EthernetLen:]
	tcp := header.TCP(ip[ipLen:][:tcpLen+d.n])
	tcp.Encode(&header.TCPFields{SrcPort: 1000, DstPort: 2000, SeqNum: uint32(d.seq), AckNum: 5, DataOffset: uint8(tcpLen), Flags: header.TCPFlagAck, WindowSize: 99})
	copy(tcp[tcpHeaderLen:], d.options)
	for i := range d.n {
		tcp[tcpLen+i] = content(uint32(d.seq + i))
	}
	if v6 {
		header.IPv6(ip).Encode(&header.IPv6Fields{PayloadLength: uint16(len(tcp)), TransportProtocol: protoTCP, HopLimit: 64,
			SrcAddr: tcpip.AddrFrom16(addrA6.As16()), DstAddr: tcpip.AddrFrom16(addrB6.As16())})
	} else {
		header.IPv4(ip).Encode(&header.IPv4Fields{TotalLength: uint16(ipLen + len(tcp)), ID: uint16(d.seq), TTL: 64, Protocol: protoTCP,
			SrcAddr: tcpip.AddrFrom4(addrA.As4()), DstAddr: tcpip.AddrFrom4(addrB.As4())})
	}
	if d.edit != nil {
		d.edit(ip, tcp)
	}
	reseal(b, v6)
	if d.damage != nil {
		d.damage(ip, tcp)
	}
	return b
}

// reseal makes the checksums of a frame right, if its headers say where they are.
func reseal(b []byte, v6 bool) {
	f := familyOf(addrB)
	ip := b[inet.EthernetLen:]
	headerLen := f.headerLen
	if v6 {
		f = familyOf(addrB6)
		headerLen = f.headerLen
	} else if h := inet.IPv4(ip); h.Valid() {
		headerLen = h.HeaderLen()
		header.IPv4(ip).SetChecksum(0)
		header.IPv4(ip).SetChecksum(^header.IPv4(ip).CalculateChecksum())
	}
	if total := f.total(ip); total <= len(ip) && total >= headerLen+tcpHeaderLen {
		tcp := ip[headerLen:total]
		copy(tcp[tcpChecksumAt:], []byte{0, 0})
		f.pseudo(ip, len(tcp)).Add(tcp).PutChecksum(tcp[tcpChecksumAt:])
	}
}

// arriveIn puts a frame into the receive queue of a port, in buffers of size bytes.
func (p *wirePort) arriveIn(frame []byte, size int) {
	for len(frame) > 0 {
		d := fabric.Desc{Addr: p.take(frame[:min(size, len(frame))]), Len: uint32(min(size, len(frame)))}
		if frame = frame[d.Len:]; len(frame) > 0 {
			d.Flags = fabric.More
		}
		p.rx = append(p.rx, d)
	}
}

func pairOf(t testing.TB, v6 bool) (*pair, *recorder) {
	change := func(*Config) {}
	if v6 {
		change = over6
	}
	p, r := newPairOf(t, 1500, 128, change), &recorder{}
	p.b.attached = r
	return p, r
}

func flag(f header.TCPFlags) func(_, tcp []byte) {
	return func(_, tcp []byte) { header.TCP(tcp).SetFlags(uint8(f)) }
}

func field(at int, v byte) func(_, tcp []byte) { return func(_, tcp []byte) { tcp[at] = v } }

// What has arrived in a row for a connection gVisor gets as one segment, unless something but the place in the
// stream differs.
func TestReceive_joinsFramesOfAStream(t *testing.T) {
	const ack, push = header.TCPFlagAck, header.TCPFlagPsh
	stamp := func(v byte) []byte { return []byte{1, 1, 8, 10, 0, 0, 0, v, 0, 0, 0, 9} }
	only4 := map[bool]string{false: "", true: "-"}
	for _, c := range []struct {
		name  string
		parts []part
		want  []int // bytes of stream in each packet
		skip  map[bool]string
	}{
		{"none", nil, nil, nil},
		{"one", []part{{seq: 0, n: 100}}, []int{100}, nil},
		{"three", []part{{seq: 0, n: 1000}, {seq: 1000, n: 1001}, {seq: 2001, n: 3}}, []int{2004}, nil},
		{"over the end of the numbers", []part{{seq: 1<<32 - 10, n: 10}, {seq: 0, n: 10}}, []int{20}, nil},
		{"in another order", []part{{seq: 100, n: 100}, {seq: 0, n: 100}, {seq: 200, n: 100}}, []int{100, 100, 100}, nil},
		{"a gap", []part{{seq: 0, n: 100}, {seq: 101, n: 100}, {seq: 201, n: 5}}, []int{100, 105}, nil},
		{"twice", []part{{seq: 0, n: 100}, {seq: 0, n: 100}}, []int{100, 100}, nil},
		{"pushed", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: flag(ack | push)}, {seq: 20, n: 10}}, []int{30}, nil},
		{"the end", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: flag(ack | header.TCPFlagFin)}, {seq: 20, n: 10}}, []int{10, 10, 10}, nil},
		{"a reset", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: flag(ack | header.TCPFlagRst)}}, []int{10, 10}, nil},
		{"a SYN", []part{{seq: 0, n: 10, edit: flag(header.TCPFlagSyn)}, {seq: 10, n: 10}}, []int{10, 10}, nil},
		{"urgent", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: flag(ack | header.TCPFlagUrg)}}, []int{10, 10}, nil},
		{"without acknowledgement", []part{{seq: 0, n: 10, edit: flag(0)}, {seq: 10, n: 10, edit: flag(0)}}, []int{10, 10}, nil},
		{"congestion", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: flag(ack | 0x40)}}, []int{10, 10}, nil},
		{"nothing in it", []part{{seq: 0, n: 10}, {seq: 10}, {seq: 10, n: 10}}, []int{10, 0, 10}, nil},
		{"nothing in both", []part{{seq: 0}, {seq: 0}}, []int{0, 0}, nil},
		{"another sender", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: field(1, 7)}}, []int{10, 10}, nil},
		{"another receiver", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: field(3, 7)}}, []int{10, 10}, nil},
		{"another acknowledgement", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: field(11, 6)}}, []int{10, 10}, nil},
		{"another window", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: field(15, 6)}}, []int{10, 10}, nil},
		{"the same options", []part{{seq: 0, n: 10, options: stamp(1)}, {seq: 10, n: 10, options: stamp(1)}}, []int{20}, nil},
		{"other options", []part{{seq: 0, n: 10, options: stamp(1)}, {seq: 10, n: 10, options: stamp(2)}}, []int{10, 10}, nil},
		{"more options", []part{{seq: 0, n: 10}, {seq: 10, n: 10, options: []byte{1, 1, 1, 1}}}, []int{10, 10}, nil},
		{"fewer options", []part{{seq: 0, n: 10, options: []byte{1, 1, 1, 1}}, {seq: 10, n: 14}}, []int{10, 14}, nil},
		{"another host", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: func(ip, _ []byte) { ip[15]++ }}}, []int{10, 10}, nil},
		{"another time to live", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: func(ip, _ []byte) { ip[8] = 9 }}}, []int{10, 10}, nil},
		{"another class", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: func(ip, _ []byte) { ip[1] = 3 }}}, []int{10, 10}, nil},
		{"another number", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: func(ip, _ []byte) { ip[4] = 3 }}}, []int{20}, only4},
		{"may be cut", []part{{seq: 0, n: 10}, {seq: 10, n: 10, edit: func(ip, _ []byte) { ip[6] = 0x40 }}}, []int{10, 10}, only4},
		{"padded first", []part{{seq: 0, n: 10, pad: 6}, {seq: 10, n: 10}}, []int{10, 10}, nil},
		{"padded last", []part{{seq: 0, n: 10}, {seq: 10, n: 10, pad: 6}, {seq: 20, n: 10}}, []int{10, 10, 10}, nil},
		{"a wrong byte", []part{{seq: 0, n: 10}, {seq: 10, n: 10, damage: field(25, 99)}, {seq: 20, n: 10}, {seq: 30, n: 10}}, []int{10, 20}, nil},
		{"a wrong checksum", []part{{seq: 0, n: 10}, {seq: 10, n: 10, damage: field(16, 99)}}, []int{10}, nil},
		{"a wrong checksum of IP", []part{{seq: 0, n: 10}, {seq: 10, n: 10, damage: func(ip, _ []byte) { ip[10]++ }}}, []int{10}, only4},
		{"as long as may be", []part{{seq: 0, n: 30000}, {seq: 30000, n: 1<<16 - 1 - 30000 - 40}, {seq: 1<<16 - 1 - 40, n: 1}}, []int{1<<16 - 41, 1}, only4},
		{"no longer", []part{{seq: 0, n: 30000}, {seq: 30000, n: 1<<16 - 30000 - 40}, {seq: 1<<16 - 40, n: 7}}, []int{30000, 1<<16 - 30000 - 33}, only4},
	} {
		for _, v6 := range []bool{false, true} {
			if v6 && c.skip != nil {
				continue
			}
			for _, size := range []int{mem.FrameSize, 111} {
				p, got := pairOf(t, v6)
				for i := range c.parts {
					if size == 111 && c.parts[i].n > 1001 {
						size = 4095
					}
				}
				for i := range c.parts {
					p.ports[1].arriveIn(c.parts[i].frame(v6), size)
				}
				p.b.receive()
				var lens []int
				for _, ip := range got.packets {
					lens = append(lens, bytesOf(t, p.b, ip))
				}
				if !slices.Equal(lens, c.want) {
					t.Errorf("%s, IPv6 %v, buffers of %d bytes: %d are in a packet, want %d", c.name, v6, size, lens, c.want)
				}
			}
		}
	}
}

// bytesOf returns how many bytes of a stream a packet holds, and checks its lengths, that of its IP header's checksum, and the
// bytes.
func bytesOf(t *testing.T, s *Stack, ip []byte) int {
	t.Helper()
	if s.family.total(ip) != len(ip) || s.family.ether == inet.EtherIPv4 && !inet.IPv4(ip).ChecksumGood() {
		t.Errorf("a packet of %d bytes has the header %x", len(ip), ip[:s.family.headerLen])
	}
	tcp := header.TCP(ip[s.family.headerLen:])
	for i, b := range tcp.Payload() {
		if want := content(tcp.SequenceNumber() + uint32(i)); b != want {
			t.Errorf("byte %d is %d, want %d", i, b, want)
			break
		}
	}
	return len(tcp.Payload())
}

// Joining changes nothing but which bytes come together: each of those of the stream stands behind the same
// headers, wherever it came from.
func FuzzReceive_joins(f *testing.F) {
	f.Add([]byte{0, 0, 100, 1, 0, 0, 100, 1, 0, 3, 100, 1}, 200, false)
	f.Add([]byte{0, 0, 100, 1, 0, 47, 100, 1, 0, 1, 0, 1, 24, 2, 9, 0}, 61, true)
	f.Fuzz(func(t *testing.T, script []byte, size int, v6 bool) {
		if size < 1 || size > mem.FrameSize || len(script) > 64 {
			return
		}
		var frames [][]byte
		for seq := 0; len(script) >= 4; script = script[4:] { // a byte of the packet, what to put there, length, and its factor
			d := part{seq: seq, n: int(script[2]) * int(script[3]&7)}
			b := d.frame(v6)
			if at := inet.EthernetLen + int(script[0]); at < len(b) && script[1] != 0 {
				b[at] ^= script[1]
				if script[3]&8 == 0 {
					reseal(b, v6)
				}
			}
			seq += d.n
			frames = append(frames, b)
		}
		if len(frames)*2000/size > 100 {
			return
		}
		each := func(together bool) (said []string) {
			p, got := pairOf(t, v6)
			for _, b := range frames {
				p.ports[1].arriveIn(b, size)
				if !together {
					p.b.receive()
				}
			}
			p.b.receive()
			for _, ip := range got.packets {
				headerLen := p.b.family.headerLen
				if !v6 {
					headerLen = inet.IPv4(ip).HeaderLen()
				}
				tcp := header.TCP(ip[headerLen:])
				if headerLen != p.b.family.headerLen || !plain(tcp) || tcp.DataOffset() < tcpHeaderLen || int(tcp.DataOffset()) >= len(tcp) {
					said = append(said, fmt.Sprintf("%x", ip))
					continue
				}
				seq := tcp.SequenceNumber()
				for i, b := range tcp.Payload() {
					said = append(said, fmt.Sprintf("%x %x %x %d %d", tcp[:4], tcp[8:13], tcp[14:16], seq+uint32(i), b))
				}
			}
			return said
		}
		if apart, together := each(false), each(true); !slices.Equal(apart, together) {
			t.Errorf("apart: %q\ntogether: %q", apart, together)
		}
	})
}

// FuzzReceive_checksums compares our judgement of checksums with gVisor's.
func FuzzReceive_checksums(f *testing.F) {
	f.Add(uint16(100), uint16(30), byte(1), 77)
	f.Add(uint16(1001), uint16(0), byte(0), 4096)
	f.Fuzz(func(t *testing.T, n, at uint16, x byte, size int) {
		if n > 4000 || size < 60 || size > mem.FrameSize {
			return
		}
		p, got := pairOf(t, false)
		d := part{n: int(n)}
		b := d.frame(false)
		ip := header.IPv4(b[inet.EthernetLen:])
		tcp := ip[inet.IPv4Len:]
		tcp[int(at)%len(tcp)] ^= x
		sum := inet.Sum(0)
		for i := 0; i < len(tcp); i += 2 {
			w := uint16(tcp[i]) << 8
			if i+1 < len(tcp) {
				w = binary.BigEndian.Uint16(tcp[i:])
			}
			sum = sum.AddWord(w)
		}
		good := p.b.family.pseudo(ip, len(tcp)).Merge(sum).Good()
		p.ports[1].arriveIn(b, size)
		p.b.Poll(mono.Real{}.Now(), nil)
		if (len(got.packets) == 1) != good {
			t.Errorf("%d packets, want one: %v", len(got.packets), good)
		}
	})
}
