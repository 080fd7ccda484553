package inet_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/gso"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/conform"
)

// aggregates is a pair of which a has a packet socket, that leads to the test.
type aggregates struct {
	*pair
	v6   bool
	fd   int
	to   fabric.Path
	sent []string // payloads
}

func newAggregates(t *testing.T, v6 bool, c conform.PipeConfig) *aggregates {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	p := &aggregates{pair: &pair{}, v6: v6, fd: fds[1]}
	a, b := addrA, addrB
	if v6 {
		a, b = netip.MustParseAddrPort("[fd00::1]:4791"), netip.MustParseAddrPort("[fd00::2]:4792")
	}
	hops := inet.Fixed{a.Addr(): {MAC: macA, MTU: 9000}, b.Addr(): {MAC: macB, MTU: 9000}}
	if p.portA, p.portB, err = conform.NewPipe(c); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		end  **inet.Datagram
		port fabric.Port
		at   netip.AddrPort
		mac  inet.MAC
	}{{&p.a, p.portA, a, macA}, {&p.b, p.portB, b, macB}} {
		if *e.end, err = inet.New(inet.Config{Port: e.port, Resolver: hops, Local: e.at, MAC: e.mac, MTU: 1500}); err != nil {
			t.Fatal(err)
		}
	}
	p.a.SetSocket(gso.To(fds[0]))
	p.b.SetLocal(true)
	if p.to, err = p.a.Resolve(b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.a.Close(), p.b.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// run makes a batch of datagrams of the given lengths, as an association has them.
func (p *aggregates) run(sizes ...int) *fabric.Batch {
	b := fabric.NewBatch(len(sizes), 2)
	at := p.a.Caps().Headroom
	for i, n := range sizes {
		payload := pattern(n)
		payload[0] = byte(i)
		p.sent = append(p.sent, string(payload))
		pkt := fabric.Packet{First: int32(len(b.Descs)), Len: int32(n), To: p.to, Sealed: true, Kept: true}
		for first := true; first || len(payload) > 0; first = false {
			f, _ := p.a.Frame()
			f += mem.Addr(at)
			part := min(len(payload), mem.FrameSize-at)
			copy(p.a.Arena().At(f, part), payload[:part])
			payload = payload[part:]
			b.Descs = append(b.Descs, fabric.Desc{Addr: f, Len: uint32(part), Flags: fabric.More})
			pkt.Bufs++
		}
		b.Descs[len(b.Descs)-1].Flags = 0
		b.Pkts = append(b.Pkts, pkt)
	}
	return b
}

// packet returns what a has given to the socket: how it is to be cut, and the packet; nil: nothing.
func (p *aggregates) packet() (how, frame []byte) {
	var b [1 << 17]byte
	n, err := unix.Read(p.fd, b[:])
	if err != nil {
		return nil, nil
	}
	return b[:10], b[10:n]
}

// cut makes packets of an aggregate, as the kernel does (net/ipv4/udp_offload.c).
func cut(t *testing.T, how, frame []byte) (frames [][]byte) {
	t.Helper()
	order := binary.NativeEndian
	size, from, at := int(order.Uint16(how[4:])), int(order.Uint16(how[6:])), int(order.Uint16(how[8:]))
	if how[0] != 1 || how[1] != 5 || at != 6 {
		t.Fatalf("the packet is to be cut as %x says", how)
	}
	head, payload := frame[:from+8], frame[from+8:]
	for i, part := range slices.Collect(slices.Chunk(payload, size)) {
		f := append(slices.Clone(head), part...)
		udp, ip := f[from:], f[14:]
		pseudo := inet.Sum(0)
		if from == 14+20 {
			binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
			binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(i))
			ip[10], ip[11] = 0, 0
			inet.Sum(0).Add(ip[:20]).PutChecksum(ip[10:])
			pseudo = pseudo.Add(ip[12:20])
		} else {
			binary.BigEndian.PutUint16(ip[4:], uint16(len(udp)))
			pseudo = pseudo.Add(ip[8:40])
		}
		binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
		udp[6], udp[7] = 0, 0
		pseudo.AddWord(inet.ProtoUDP).AddWord(uint16(len(udp))).Add(udp).PutChecksumUDP(udp[6:])
		frames = append(frames, f)
	}
	return frames
}

// TestAggregate sends several datagrams as one packet, and has it arrive as it is, as at the other end of a veth, in buffers of
// several lengths, or cut: the same datagrams come out.
func TestAggregate(t *testing.T) {
	runs := [][]int{
		{600, 600}, {600, 1}, {1400, 1400, 1400, 1400}, {1400, 1400, 1}, {1400, 1400, 1399}, {inet.AggregateLeast, inet.AggregateLeast},
		slices.Repeat([]int{1400}, 30), {1400, 1400, 1400, inet.FirstPiece - 1},
	}
	chunks := [][]int{nil, {1500}, {42 + 1400 + 1}, {42 + 1400 + inet.FirstPiece - 1}, {42 + 1400}, {43, 1400}, {42 + 5, 2000, 3000}, {300}, {700, 100}, {42 + 1400, 100, 3000}}
	for _, v6 := range []bool{false, true} {
		for _, whole := range []bool{true, false} {
			for _, chunk := range chunks {
				if v6 {
					chunk = slices.Clone(chunk)
					for i := range chunk {
						chunk[i] += 20
					}
				}
				p := newAggregates(t, v6, conform.PipeConfig{Chunks: chunk, Room: 256})
				for _, run := range runs {
					p.sent = nil
					p.a.Send(p.run(run...))
					p.a.Flush()
					how, frame := p.packet()
					if how == nil {
						t.Fatalf("%d: nothing was given to the socket", run)
					}
					if whole {
						p.portB.Inject(frame)
					} else {
						for _, f := range cut(t, how, frame) {
							p.portB.Inject(f)
						}
					}
					if got := p.receiveIn(64); !slices.Equal(got, p.sent) {
						t.Errorf("IPv6 %v, whole %v, in buffers of %d: of datagrams of %d bytes %d arrived, or others", v6, whole, chunk, run, len(got))
					}
				}
				s := p.b.Stats()
				if s.RxMalformed+s.RxChecksum > 0 || whole != (s.RxAggregates == uint64(len(runs))) {
					t.Errorf("received %+v", s)
				}
				if s := p.a.Stats(); s.TxAggregates != uint64(len(runs)) || s.TxErrors > 0 || p.portA.Stats().TxFrames > 0 {
					t.Errorf("sent %+v", s)
				}
			}
		}
	}
}

// TestAggregate_firstPiece has the begin of each datagram lie in one piece, wherever the buffers that it comes in end.
func TestAggregate_firstPiece(t *testing.T) {
	for first := 42; first < 42+1500; first += 7 {
		p := newAggregates(t, false, conform.PipeConfig{Chunks: []int{first, 3000}, Room: 256, Frames: 64})
		p.portB.Inject(aggregate(1400, pattern(4*1400-20)))
		b := fabric.NewBatch(8, fabric.MaxBufs)
		if p.b.Recv(b) != 4 {
			t.Fatalf("%d datagrams", len(b.Pkts))
		}
		for i, pkt := range b.Pkts {
			if n := b.Descs[pkt.First].Len; n < inet.FirstPiece {
				t.Errorf("the first buffer has %d bytes: datagram %d begins with %d", first, i, n)
			}
		}
		p.b.Release(b)
	}
}

// TestAggregate_not has what is no aggregate go in frames, and one that the socket does not take.
func TestAggregate_not(t *testing.T) {
	p := newAggregates(t, false, conform.PipeConfig{})
	for name, b := range map[string]*fabric.Batch{
		"the last one is longer":         p.run(600, 601),
		"a shorter one is between":       p.run(600, 599, 600),
		"short ones":                     p.run(inet.AggregateLeast-1, inet.AggregateLeast-1),
		"one":                            p.run(1400),
		"two short ones":                 p.run(600, 600, 1, 2),
		"one is sent again":              with(p.run(600, 600), func(q *fabric.Packet) { q.Again = true }),
		"one is not sent again if lost":  with(p.run(600, 600), func(q *fabric.Packet) { q.Kept = false }),
		"one has no checksum of its own": with(p.run(600, 600), func(q *fabric.Packet) { q.Sealed = false }),
		"one is from another port":       with(p.run(600, 600), func(q *fabric.Packet) { q.Source = 1 }),
	} {
		p.a.Send(b)
		p.a.Flush()
		if how, _ := p.packet(); how != nil {
			t.Errorf("%s: they left as one packet", name)
		}
	}
}

func with(b *fabric.Batch, change func(*fabric.Packet)) *fabric.Batch {
	change(&b.Pkts[1])
	return b
}

// TestAggregate_refused has the datagrams go in frames, at once, when the socket does not take them, and all that follow
// after some of that.
func TestAggregate_refused(t *testing.T) {
	p := newAggregates(t, false, conform.PipeConfig{})
	if err := unix.Shutdown(p.fd, unix.SHUT_RD); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if got := p.a.Caps().Aggregates; got != (i < 8) {
			t.Errorf("after %d packets that were refused more are tried: %v", i, got)
		}
		p.sent = nil
		p.a.Send(p.run(1400, 1400, 700))
		p.a.Flush()
		if got := p.receive(); !slices.Equal(got, p.sent) {
			t.Errorf("%d datagrams arrived", len(got))
		}
	}
}

// TestAggregate_lost has a peer receive no aggregates: what was lost is sent again in frames, and after some of that all is.
func TestAggregate_lost(t *testing.T) {
	p := newAggregates(t, false, conform.PipeConfig{})
	lost := 0
	for ; lost < 100; lost++ {
		p.a.Send(p.run(1400, 1400))
		p.a.Flush()
		if how, _ := p.packet(); how == nil {
			break
		}
		for range 2 {
			again := p.run(1400)
			again.Pkts[0].Again = true
			p.a.Send(again)
			p.a.Flush()
		}
		p.receive()
	}
	if lost < 2 || lost == 100 {
		t.Errorf("%d aggregates were lost before the datagrams went in frames", lost)
	}
}

// TestAggregate_batches has aggregates arrive where the batch has no room for all their datagrams: one waits for the next batch,
// and one that no batch takes is refused.
func TestAggregate_batches(t *testing.T) {
	p := newAggregates(t, false, conform.PipeConfig{})
	for range 3 {
		p.a.Send(p.run(600, 600, 600, 600, 600))
		_, frame := p.packet()
		p.portB.Inject(frame)
	}
	if got := p.receiveIn(8); !slices.Equal(got, p.sent) {
		t.Errorf("%d datagrams arrived", len(got))
	}
	p.a.Send(p.run(slices.Repeat([]int{600}, 9)...))
	_, frame := p.packet()
	p.portB.Inject(frame)
	if got := p.receiveIn(8); len(got) > 0 || p.b.Stats().RxMalformed != 1 {
		t.Errorf("%d datagrams arrived, %+v", len(got), p.b.Stats())
	}
}

// aggregate returns a frame with payload in datagrams of size bytes, built without the code under test.
func aggregate(size int, payload []byte) []byte {
	f := datagram(payload)
	binary.BigEndian.PutUint16(f[18:], uint16(size))
	fixIP(f)
	pseudo := append([]byte{0, inet.ProtoUDP, 0, 0}, f[26:34]...)
	binary.BigEndian.PutUint16(pseudo[2:], uint16(8+len(payload)))
	inet.Sum(0).Add(pseudo).PutSum(f[40:])
	return f
}

// TestRecv_aggregates takes frames whose checksum is the one that a device was to complete where they may not have left the machine: as
// several datagrams if those are long enough, else as one.
func TestRecv_aggregates(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		wire  bool
		want  []int
	}{
		{"three", aggregate(600, pattern(1500)), false, []int{600, 600, 300}},
		{"two", aggregate(600, pattern(1200)), false, []int{600, 600}},
		{"from a wire", aggregate(600, pattern(1500)), true, nil},
		{"one", aggregate(600, pattern(600)), false, []int{600}},
		{"short ones", aggregate(inet.AggregateLeast-1, pattern(1500)), false, []int{1500}},
		{"of no length", aggregate(0, pattern(1500)), false, []int{1500}},
		{"whole", datagram(pattern(1500)), false, []int{1500}},
	} {
		p := newPair(t, conform.PipeConfig{})
		p.b.SetLocal(!c.wire)
		p.portB.Inject(c.frame)
		var got []int
		for _, payload := range p.receive() {
			got = append(got, len(payload))
		}
		if s := p.b.Stats(); !slices.Equal(got, c.want) || (s.RxChecksum == 1) != (c.want == nil) {
			t.Errorf("%s: datagrams of %d bytes, want %d; %+v", c.name, got, c.want, s)
		}
	}
}

// TestAggregate_allocs sends and receives without allocating.
func TestAggregate_allocs(t *testing.T) {
	p := newAggregates(t, false, conform.PipeConfig{})
	b, rx := fabric.NewBatch(4, 1), fabric.NewBatch(8, 8)
	frame := aggregate(600, pattern(1500))
	var to [4096]byte
	if n := testing.AllocsPerRun(100, func() {
		b.Reset()
		for range 4 {
			f, _ := p.a.Frame()
			b.Add(fabric.Packet{To: p.to, Sealed: true}, fabric.Desc{Addr: f + inet.Headroom, Len: 700})
			b.Pkts[len(b.Pkts)-1].Kept = true
		}
		p.a.Send(b)
		_, _ = unix.Read(p.fd, to[:])
		p.portB.Inject(frame)
		if p.b.Recv(rx) != 3 {
			t.Error("other datagrams arrived")
		}
		p.b.Release(rx)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if s := p.a.Stats(); s.TxAggregates == 0 || s.TxAggregates*4 != s.TxPackets {
		t.Errorf("sent %+v", s)
	}
}
