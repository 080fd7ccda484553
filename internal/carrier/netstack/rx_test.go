package netstack

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// segment makes the frame of a SYN from addr to port 80 of B, changed by edit.
func segment(from [4]byte, edit ...func([]byte)) []byte {
	b := make([]byte, 60)
	inet.PutEthernet(b, macB, macA, inet.EtherIPv4)
	inet.PutIPv4(b[14:], inet.IPv4Fields{TotalLen: 40, TTL: 64, Protocol: protoTCP, Src: from, Dst: addrB.As4()})
	tcp := b[34:54]
	binary.BigEndian.PutUint16(tcp, 1234)
	binary.BigEndian.PutUint16(tcp[2:], 80)
	tcp[12], tcp[13] = 5<<4, 2
	sum := inet.Sum(0).Add(b[26:34]).AddWord(protoTCP).AddWord(20).Add(tcp)
	sum.PutChecksum(tcp[16:])
	for _, e := range edit {
		e(b)
	}
	return b
}

func set(at int, bytes ...byte) func([]byte) { return func(b []byte) { copy(b[at:], bytes) } }

// arrive puts a frame into the receive queue of a port.
func (p *wirePort) arrive(frame []byte) {
	p.rx = append(p.rx, fabric.Desc{Addr: p.take(frame), Len: uint32(len(frame))})
}

func (p *wirePort) take(frame []byte) mem.Addr {
	at, ok := p.pool.Get()
	if !ok {
		panic("wire: pool is empty")
	}
	copy(p.arena.At(at, mem.FrameSize), frame)
	return at
}

func TestReceive_dropsWhatIsNotForUs(t *testing.T) {
	p := newPair(t, 1500, nil)
	peer := addrA.As4()
	for _, c := range []struct {
		name  string
		frame []byte
		good  bool
	}{
		{"a SYN", segment(peer), true},
		{"ARP", segment(peer, set(12, 8, 6)), false},
		{"IPv6", segment(peer, set(14, 0x65)), false},
		{"UDP", segment(peer, set(23, 17)), false},
		{"a fragment", segment(peer, set(20, 0x20, 0)), false},
		{"another address", segment(peer, set(33, 9)), false},
		{"broadcast", segment(peer, set(0, 255)), false},
		{"longer than the frame", segment(peer, set(16, 0, 61)), false},
		{"shorter than its headers", segment(peer, set(16, 0, 39)), false},
		{"header length beyond the packet", segment(peer, set(14, 0x4f)), false},
		{"cut off", segment(peer)[:53], false},
		{"empty", segment(peer)[:1], false},
	} {
		before := p.b.malformed
		p.ports[1].arrive(c.frame)
		p.b.Poll(mono.Real{}.Now(), nil)
		if got := p.b.malformed == before; got != c.good {
			t.Errorf("%s: taken is %v", c.name, got)
		}
	}
}

// What we have for a host that the kernel cannot reach is dropped, and nothing
// is remembered of it.
func TestReceive_fromAnUnreachableHost(t *testing.T) {
	p := newPair(t, 1500, nil)
	p.ports[1].arrive(segment([4]byte{10, 9, 9, 9}))
	p.until(func() bool { return p.b.unreachable > 0 })
	if len(p.b.hosts.byAddr) != 0 || p.b.hosts.asking != 0 {
		t.Errorf("%d hosts known, %d asked for", len(p.b.hosts.byAddr), p.b.hosts.asking)
	}
	a, b := p.connect()
	p.transfer(a, b, 1000)
}

func TestAllocs_idleAndForeignFrames(t *testing.T) {
	p := newPair(t, 1500, nil)
	p.connect()
	p.until(func() bool { return p.b.out.held.packet == nil && !p.b.mail.packets.Load() })
	frame := segment(addrA.As4(), set(23, 17))
	if n := testing.AllocsPerRun(200, func() {
		p.ports[1].arrive(frame)
		p.ready = p.b.Poll(mono.Real{}.Now(), p.ready[:0])
		p.b.Flush()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReceive hands frames of all kinds to a stack that listens and has a
// connection: it must neither fail nor keep a buffer.
func FuzzReceive(f *testing.F) {
	peer := addrA.As4()
	f.Add(segment(peer), 60)
	f.Add(segment(peer, set(46, 0xf0)), 10)
	f.Add(segment(peer, set(46, 6<<4), set(54, 2, 0)), 55)
	f.Add(segment(peer, set(47, 0x12)), 34)
	f.Fuzz(func(t *testing.T, frame []byte, cut int) {
		if len(frame) == 0 || len(frame) > mem.FrameSize {
			return
		}
		p := newPairOf(t, 1500, 64, func(c *Config) { c.Linger = 1 })
		if _, err := p.b.Listen(netip.AddrPortFrom(addrB, 80), 4); err != nil {
			t.Fatal(err)
		}
		port := p.ports[1]
		if cut > 0 && cut < len(frame) { // in two buffers
			port.rx = append(port.rx, fabric.Desc{Addr: port.take(frame[:cut]), Len: uint32(cut), Flags: fabric.More})
			frame = frame[cut:]
		}
		port.arrive(frame)
		for range 3 {
			p.ready = p.b.Poll(mono.Real{}.Now(), p.ready[:0])
			p.b.Flush()
		}
	})
}
