package inet

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

var (
	ip6A = netip.MustParseAddr("fd00::1")
	ip6B = netip.MustParseAddr("fd00::2")
)

// sum6 writes the UDP checksum of a frame over IPv6 that says so many bytes of UDP.
func sum6(frame []byte, udpLen int) {
	binary.BigEndian.PutUint16(frame[udpAt6+udpChecksum:], 0)
	IPv6(frame[ipAt:]).pseudo(udpLen).Add(frame[udpAt6 : udpAt6+udpLen]).PutChecksumUDP(frame[udpAt6+udpChecksum:])
}

// frame6 makes a datagram with a payload of n bytes from A to B.
func frame6(n int) []byte {
	b := make([]byte, HeaderLen6+n)
	PutEthernet(b, MAC{2, 0, 0, 0, 0, 2}, MAC{2, 0, 0, 0, 0, 1}, EtherIPv6)
	PutIPv6(b[ipAt:], IPv6Fields{PayloadLen: UDPLen + n, HopLimit: 64, Next: ProtoUDP, Src: ip6A.As16(), Dst: ip6B.As16()})
	PutUDP(b[udpAt6:], 4791, 18700, UDPLen+n)
	for i := range n {
		b[HeaderLen6+i] = byte(i)
	}
	sum6(b, UDPLen+n)
	return b
}

func receiver6() *Datagram {
	return &Datagram{bytes: make([]byte, mem.FrameSize), v6: true, headerLen: HeaderLen6, local6: wordsOf(ip6B), localPort: 18700, groups: newGroups(nil, ip6B)}
}

// TestRecvFast6_takesWhatCheckTakes: whatever recvFast6 accepts over IPv6 check accepts, with
// the same result; and it does accept a plain datagram.
func TestRecvFast6_takesWhatCheckTakes(t *testing.T) {
	const at, size = 256, HeaderLen6 + 38
	plain := frame6(size - HeaderLen6)
	e := receiver6()
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for n := range 200_000 {
		frame := append([]byte(nil), plain...)
		for range n % 4 {
			if k := rng.IntN(HeaderLen6); rng.IntN(2) == 0 {
				frame[k] ^= 1 << rng.IntN(8)
			} else {
				frame[k] = byte(rng.Uint32())
			}
		}
		if k := int(binary.BigEndian.Uint16(frame[udpAt6+udpLength:])); rng.IntN(2) == 0 && k >= UDPLen && udpAt6+k <= size {
			sum6(frame, k)
		}
		if n > 0 && rng.IntN(8) == 0 {
			frame = frame[:rng.IntN(size)]
		}
		copy(e.bytes[at:], frame)
		e.rx[0], e.rxNext, e.rxEnd = fabric.Desc{Addr: at, Len: uint32(len(frame))}, 0, 1
		b := fabric.NewBatch(1, fabric.MaxBufs)
		if !e.recvFast(b, &e.rx[0]) {
			if n == 0 || len(b.Pkts) != 0 {
				t.Fatalf("not taken, %d datagrams: %x", len(b.Pkts), frame)
			}
			continue
		}
		taken++
		want, fault := e.check(frame, len(frame))
		p, d := b.Pkts[0], b.Descs[0]
		if fault == intact && !want.sum.Add(frame[want.start:want.start+want.payload]).Good() {
			fault = badChecksum
		}
		if fault != intact || p.From != want.from || int(p.Len) != want.payload || d != (fabric.Desc{Addr: at + mem.Addr(want.start), Len: uint32(want.payload)}) {
			t.Fatalf("%+v in %+v; check says %+v, fault %d: %x", p, d, want, fault, frame)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d of the frames were taken", taken)
	}
}

// TestCheck6_refuses: what check says of single faults.
func TestCheck6_refuses(t *testing.T) {
	e := receiver6()
	e.groups.joined = []group{newGroup(netip.MustParseAddr("ff02::1:2"))}
	put := func(at int, v ...byte) func([]byte) { return func(b []byte) { copy(b[at:], v) } }
	toGroup := func(b []byte) {
		g := netip.MustParseAddr("ff02::1:2")
		mac, addr := GroupMAC(g), g.As16()
		copy(b, mac[:])
		copy(b[ipAt+ip6Dst:], addr[:])
		sum6(b, UDPLen+100)
	}
	for _, c := range []struct {
		name string
		edit func([]byte)
		want fault
	}{
		{"plain", func([]byte) {}, intact},
		{"no checksum", put(udpAt6+udpChecksum, 0, 0), badChecksum},
		{"IPv4's type", put(ethType, 8, 0), malformed},
		{"version 4", put(ipAt, 0x45), malformed},
		{"hop-by-hop options", put(ipAt+ip6Next, 0), malformed},
		{"a fragment", put(ipAt+ip6Next, 44), malformed},
		{"payload longer than the frame", put(ipAt+ip6PayloadLen, 0xff, 0xff), malformed},
		{"UDP longer than IP", put(udpAt6+udpLength, 0, 200), malformed},
		{"another address", put(ipAt+ip6Dst+15, 9), malformed},
		{"another port", put(udpAt6+udpDst, 0, 9), malformed},
		{"a group", toGroup, intact},
		{"a group by Ethernet only", func(b []byte) { toGroup(b); b[ipAt+ip6Dst+1] = 5 }, malformed},
		{"a group, from here", func(b []byte) { toGroup(b); b[ipAt+ip6Src+15] = 2 }, malformed},
	} {
		b := frame6(100)
		c.edit(b)
		a, got := e.check(b, len(b))
		if got != c.want || got == intact && (a.payload != 100 || a.from != fabric.RemoteOf(netip.AddrPortFrom(ip6A, 4791))) {
			t.Errorf("%s: fault %d, want %d; %+v", c.name, got, c.want, a)
		}
	}
}

// TestTemplate6_isWhatPutWrites: a template gives the header that the pure functions
// write, with the right checksum, for every length of payload.
func TestTemplate6_isWhatPutWrites(t *testing.T) {
	tmpl := newTemplate(addresses{
		srcMAC: MAC{2, 0, 0, 0, 0, 1}, dstMAC: MAC{2, 0, 0, 0, 0, 2}, ttl: 64,
		src: netip.AddrPortFrom(ip6A, 4791), dst: netip.AddrPortFrom(ip6B, 18700),
	})
	if tmpl.dst() != netip.AddrPortFrom(ip6B, 18700) {
		t.Errorf("the template is for %v", tmpl.dst())
	}
	for n := range 2000 {
		want := frame6(n)
		var h [HeaderLen6]byte
		tmpl.put6(&h, n).Add(want[HeaderLen6:]).PutChecksumUDP(h[udpAt6+udpChecksum:])
		if string(h[:]) != string(want[:HeaderLen6]) {
			t.Fatalf("%d bytes: %x, want %x", n, h, want[:HeaderLen6])
		}
	}
}

// FuzzCheck6: no bytes make the checks of a frame panic, and recvFast takes nothing that
// check refuses.
func FuzzCheck6(f *testing.F) {
	f.Add(frame6(38))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > mem.FrameSize-256 {
			return
		}
		e := receiver6()
		copy(e.bytes[256:], b)
		e.rx[0], e.rxEnd = fabric.Desc{Addr: 256, Len: uint32(len(b))}, 1
		a, fault := e.check(b, len(b))
		if fault == intact && !a.sum.Add(b[a.start:a.start+a.payload]).Good() {
			fault = badChecksum
		}
		if e.recvFast(fabric.NewBatch(1, fabric.MaxBufs), &e.rx[0]) && fault != intact {
			t.Fatalf("recvFast takes what has fault %d: %x", fault, b)
		}
	})
}
