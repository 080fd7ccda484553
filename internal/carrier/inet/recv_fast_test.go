package inet

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// TestRecvFast_takesWhatCheckTakes: whatever recvFast accepts check accepts, with the
// same result; and it does accept a plain datagram.
func TestRecvFast_takesWhatCheckTakes(t *testing.T) {
	const at, size = 256, 100
	plain := make([]byte, size)
	PutEthernet(plain, MAC{2, 0, 0, 0, 0, 2}, MAC{2, 0, 0, 0, 0, 1}, EtherIPv4)
	PutIPv4(plain[ipAt:], IPv4Fields{TotalLen: size - EthernetLen, TTL: 64, Protocol: ProtoUDP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}})
	PutUDP(plain[udpAt:], 4791, 18700, size-EthernetLen-IPv4Len)
	e := &Datagram{bytes: make([]byte, mem.FrameSize), localAddr: uint32(wordsOf(netip.AddrFrom4([4]byte{10, 0, 0, 2}))[0]), localPort: 18700}
	rng := rand.New(rand.NewPCG(1, 2))
	taken, summed := 0, 0
	for n := range 200_000 {
		frame := append([]byte(nil), plain...)
		for range n % 4 {
			if k := rng.IntN(HeaderLen); rng.IntN(2) == 0 {
				frame[k] ^= 1 << rng.IntN(8)
			} else {
				frame[k] = byte(rng.Uint32())
			}
		}
		if rng.IntN(2) == 0 {
			binary.BigEndian.PutUint16(frame[ipAt+ipChecksum:], 0)
			Sum(0).Add(frame[ipAt : ipAt+IPv4Len]).PutChecksum(frame[ipAt+ipChecksum:])
		}
		if k := int(binary.BigEndian.Uint16(frame[udpAt+udpLength:])); rng.IntN(2) == 0 && k >= UDPLen && udpAt+k <= size {
			sum := IPv4(frame[ipAt:]).pseudo(k)
			binary.BigEndian.PutUint16(frame[udpAt+udpChecksum:], 0)
			sum.Add(frame[udpAt : udpAt+k]).PutChecksumUDP(frame[udpAt+udpChecksum:])
			summed++
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
		if want.sum != 0 && !want.sum.Add(frame[want.start:want.start+want.payload]).Good() {
			fault = badChecksum
		}
		if fault != intact || p.From != want.from || int(p.Len) != want.payload || d != (fabric.Desc{Addr: at + mem.Addr(want.start), Len: uint32(want.payload)}) {
			t.Fatalf("%+v in %+v; check says %+v, fault %d: %x", p, d, want, fault, frame)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d of the frames were taken, %d had a UDP checksum", taken, summed)
	}
}
