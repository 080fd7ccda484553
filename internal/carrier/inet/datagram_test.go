package inet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/conform"
)

var (
	macA, macB = inet.MAC{2, 0, 0, 0, 0, 10}, inet.MAC{2, 0, 0, 0, 0, 11}
	addrA      = netip.MustParseAddrPort("10.77.0.1:4791")
	addrB      = netip.MustParseAddrPort("10.77.0.2:4792")
)

// network is a resolver whose answers a test changes.
type network struct {
	inet.Fixed
	generation uint64
}

func (n *network) Generation() uint64 { return n.generation }

func newNetwork() *network {
	return &network{Fixed: inet.Fixed{
		addrA.Addr(): {MAC: macA, MTU: 9000},
		addrB.Addr(): {MAC: macB, MTU: 9000},
	}}
}

// pair is two endpoints on a pipe, and the ports below them.
type pair struct {
	a, b         *inet.Datagram
	portA, portB *conform.Pipe
	net          *network
}

func newPair(t testing.TB, c conform.PipeConfig) *pair {
	t.Helper()
	p := &pair{net: newNetwork()}
	var err error
	if p.portA, p.portB, err = conform.NewPipe(c); err != nil {
		t.Fatal(err)
	}
	if p.a, err = inet.New(inet.Config{Port: p.portA, Resolver: p.net, Local: addrA, MAC: macA}); err != nil {
		t.Fatal(err)
	}
	if p.b, err = inet.New(inet.Config{Port: p.portB, Resolver: p.net, Local: addrB, MAC: macB}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.a.Close(), p.b.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// send sends payload from a to b in one buffer.
func (p *pair) send(t testing.TB, payload []byte, sealed bool) {
	t.Helper()
	to, err := p.a.Resolve(addrB)
	if err != nil {
		t.Fatal(err)
	}
	frame, ok := p.a.Frame()
	if !ok {
		t.Fatal("no frame")
	}
	frame += inet.Headroom
	copy(p.a.Arena().At(frame, len(payload)), payload)
	p.a.Send(&fabric.Batch{
		Pkts:  []fabric.Packet{{Bufs: 1, Len: int32(len(payload)), To: to, Sealed: sealed}},
		Descs: []fabric.Desc{{Addr: frame, Len: uint32(len(payload))}},
	})
	p.a.Flush()
}

// receive returns the payloads that have arrived at b.
func (p *pair) receive() []string { return p.receiveIn(8) }

// receiveIn is receive with batches of so many datagrams.
func (p *pair) receiveIn(pkts int) []string {
	var got []string
	b := fabric.NewBatch(pkts, fabric.MaxBufs)
	for p.b.Recv(b) > 0 {
		for _, pkt := range b.Pkts {
			var s []byte
			for _, d := range b.Descs[pkt.First : pkt.First+pkt.Bufs] {
				s = append(s, p.b.Arena().At(d.Addr, int(d.Len))...)
			}
			got = append(got, string(s))
		}
		p.b.Release(b)
	}
	return got
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// datagram returns a good frame from A to B, built without the code under test.
func datagram(payload []byte) []byte {
	f := make([]byte, inet.HeaderLen, inet.HeaderLen+len(payload))
	inet.PutEthernet(f, macB, macA, inet.EtherIPv4)
	ip := f[inet.EthernetLen:]
	inet.PutIPv4(ip, inet.IPv4Fields{
		TotalLen: 28 + len(payload), TTL: 64, Protocol: inet.ProtoUDP,
		Src: addrA.Addr().As4(), Dst: addrB.Addr().As4(),
	})
	inet.PutUDP(ip[inet.IPv4Len:], addrA.Port(), addrB.Port(), 8+len(payload))
	f = append(f, payload...)
	pseudo := append([]byte{0, inet.ProtoUDP, 0, 0}, f[26:34]...)
	binary.BigEndian.PutUint16(pseudo[2:], uint16(8+len(payload)))
	inet.Sum(0).Add(pseudo).Add(f[34:]).PutChecksumUDP(f[40:])
	return f
}

// fixIP makes the IPv4 header checksum right again.
func fixIP(f []byte) {
	ip := f[14 : 14+int(f[14]&15)*4]
	ip[10], ip[11] = 0, 0
	inet.Sum(0).Add(ip).PutChecksum(ip[10:])
}

func TestRecv_validation(t *testing.T) {
	hello := []byte("hello")
	set16 := func(at int, v uint16) func([]byte) []byte {
		return func(f []byte) []byte {
			binary.BigEndian.PutUint16(f[at:], v)
			if at >= 14 && at < 34 && at != 24 {
				fixIP(f)
			}
			return f
		}
	}
	for _, c := range []struct {
		name                string
		change              func(f []byte) []byte
		want                string
		malformed, checksum uint64
	}{
		{name: "good", change: func(f []byte) []byte { return f }, want: "hello"},
		{name: "padded to 60 bytes", change: func(f []byte) []byte { return append(f, make([]byte, 60-len(f))...) }, want: "hello"},
		{name: "no UDP checksum", change: set16(40, 0), want: "hello"},
		{name: "another unicast MAC", change: func(f []byte) []byte { f[5] ^= 0xff; return f }, want: "hello"},
		{name: "TTL 1", change: func(f []byte) []byte { f[22] = 1; fixIP(f); return f }, want: "hello"},
		{name: "UDP length below IP length", change: func(f []byte) []byte {
			f = append(f, "tail"...)
			binary.BigEndian.PutUint16(f[16:], 28+9)
			fixIP(f)
			return f
		}, want: "hello"},
		{name: "IP options", change: withOptions, want: "hello"},
		{name: "runt", change: func(f []byte) []byte { return f[:41] }, malformed: 1},
		{name: "one byte", change: func(f []byte) []byte { return f[:1] }, malformed: 1},
		{name: "ARP", change: set16(12, 0x0806), malformed: 1},
		{name: "IPv6", change: set16(12, 0x86dd), malformed: 1},
		{name: "VLAN", change: set16(12, 0x8100), malformed: 1},
		{name: "broadcast", change: func(f []byte) []byte { copy(f, "\xff\xff\xff\xff\xff\xff"); return f }, malformed: 1},
		{name: "multicast", change: func(f []byte) []byte { f[0] |= 1; return f }, malformed: 1},
		{name: "version 5", change: func(f []byte) []byte { f[14] = 0x55; fixIP(f); return f }, malformed: 1},
		{name: "header of 16 bytes", change: func(f []byte) []byte { f[14] = 0x44; fixIP(f); return f }, malformed: 1},
		{name: "header longer than packet", change: func(f []byte) []byte { f[14] = 0x4f; return f }, malformed: 1},
		{name: "total length beyond frame", change: set16(16, 34), malformed: 1},
		{name: "total length below header", change: set16(16, 19), malformed: 1},
		{name: "total length without UDP header", change: set16(16, 27), malformed: 1},
		{name: "first fragment", change: set16(20, 0x2000), malformed: 1},
		{name: "last fragment", change: set16(20, 0x0001), malformed: 1},
		{name: "reserved flag", change: set16(20, 0x8000), want: "hello"}, // RFC 3514
		{name: "TCP", change: func(f []byte) []byte { f[23] = 6; fixIP(f); return f }, malformed: 1},
		{name: "another address", change: func(f []byte) []byte { f[33]++; fixIP(f); return f }, malformed: 1},
		{name: "another port", change: set16(36, 4793), malformed: 1},
		{name: "UDP length 7", change: set16(38, 7), malformed: 1},
		{name: "UDP length beyond packet", change: set16(38, 14), malformed: 1},
		{name: "IP checksum", change: func(f []byte) []byte { f[24] ^= 1; return f }, checksum: 1},
		{name: "UDP checksum", change: func(f []byte) []byte { f[40] ^= 1; return f }, checksum: 1},
		{name: "payload bit", change: func(f []byte) []byte { f[44] ^= 4; return f }, checksum: 1},
		{name: "source address", change: func(f []byte) []byte { f[29]++; fixIP(f); return f }, checksum: 1},
		{name: "source port", change: func(f []byte) []byte { f[35]++; return f }, checksum: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, conform.PipeConfig{})
			p.portB.Inject(c.change(datagram(hello)))
			got := strings.Join(p.receive(), ",")
			s := p.b.Stats()
			if got != c.want || s.RxMalformed != c.malformed || s.RxChecksum != c.checksum {
				t.Errorf("received %q, malformed %d, checksum %d; want %q, %d, %d", got, s.RxMalformed, s.RxChecksum, c.want, c.malformed, c.checksum)
			}
			if free := p.portB.Pool().Free(); free != p.portB.Pool().Cap() {
				t.Errorf("%d frames are missing", p.portB.Pool().Cap()-free)
			}
		})
	}
}

func withOptions(f []byte) []byte {
	f = append(f[:34:34], append([]byte{1, 1, 1, 0, 1, 1, 1, 0}, f[34:]...)...)
	f[14] = 0x47
	binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14))
	fixIP(f)
	return f
}

// TestRecv_buffers receives frames that the port delivers in buffers of many
// shapes, with odd lengths and with padding behind.
func TestRecv_buffers(t *testing.T) {
	for _, chunks := range [][]int{{42, 1, 4000}, {43, 4000}, {60}, {61, 67}, {1001, 999}, {4096}, {3840}} {
		for _, n := range []int{0, 1, 17, 18, 19, 58, 300, 700} {
			if (n+inet.HeaderLen+40)/min(chunks[0], chunks[len(chunks)-1]) >= fabric.MaxBufs {
				continue
			}
			p := newPair(t, conform.PipeConfig{Chunks: chunks})
			payload := pattern(n)
			padded := append(datagram(payload), make([]byte, 40)...)
			p.portB.Inject(padded)
			p.portB.Inject(datagram(payload))
			got := p.receive()
			if len(got) != 2 || got[0] != string(payload) || got[1] != string(payload) {
				t.Errorf("buffers of %v bytes, payload of %d: received %d datagrams, stats %+v", chunks, n, len(got), p.b.Stats())
			}
		}
	}
}

func TestRecv_source(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	p.portB.Inject(datagram(nil))
	b := fabric.NewBatch(1, fabric.MaxBufs)
	if n := p.b.Recv(b); n != 1 || b.Pkts[0].From.AddrPort() != addrA {
		t.Errorf("received %d, from %v; want 1 from %v", n, b.Pkts[0].From.AddrPort(), addrA)
	}
	p.b.Release(b)
}

func TestRecv_smallBatches(t *testing.T) {
	p := newPair(t, conform.PipeConfig{Chunks: []int{100}})
	for i := range 40 {
		p.portB.Inject(datagram(pattern(10 * i)))
	}
	b := fabric.NewBatch(3, 2*fabric.MaxBufs/3+1) // room for few buffers
	for i := 0; i < 40; {
		n := p.b.Recv(b)
		if n == 0 {
			t.Fatalf("only %d of 40 datagrams arrive", i)
		}
		for _, pkt := range b.Pkts {
			if int(pkt.Len) != 10*i {
				t.Fatalf("datagram %d has %d bytes", i, pkt.Len)
			}
			i++
		}
		p.b.Release(b)
	}
}

func TestRecv_batchTooSmallPanics(t *testing.T) {
	p := newPair(t, conform.PipeConfig{Chunks: []int{100}})
	p.portB.Inject(datagram(pattern(1000)))
	defer func() {
		if recover() == nil {
			t.Error("a batch that no datagram fits is accepted: it would never make progress")
		}
	}()
	p.b.Recv(fabric.NewBatch(1, 2))
}

func TestSend_frame(t *testing.T) {
	var wire []byte
	p := newPair(t, conform.PipeConfig{Wire: func(f []byte) []byte { wire = bytes.Clone(f); return f }})
	p.send(t, []byte("hello xwarp"), false)
	want := datagram([]byte("hello xwarp"))
	want[19] = 1 // the first packet has identification 1
	fixIP(want)
	if !bytes.Equal(wire, want) {
		t.Errorf("on the wire\n%x, want\n%x", wire, want)
	}
	if got := p.receive(); len(got) != 1 || got[0] != "hello xwarp" {
		t.Errorf("received %q", got)
	}
}

func TestSend_checksumRule(t *testing.T) {
	for _, c := range []struct {
		n      int
		sealed bool
	}{
		{0, true}, {64, true}, {3000, true}, {0, false}, {64, false}, {3001, false},
	} {
		var wire []byte
		p := newPair(t, conform.PipeConfig{Wire: func(f []byte) []byte { wire = bytes.Clone(f); return f }})
		p.send(t, pattern(c.n), c.sealed)
		if got := inet.UDP(wire[34:]).HasChecksum(); got == c.sealed {
			t.Errorf("%d bytes, sealed %v: checksum %v", c.n, c.sealed, got)
		}
		if got := p.receive(); len(got) != 1 || got[0] != string(pattern(c.n)) {
			t.Errorf("%d bytes, sealed %v: received %d", c.n, c.sealed, len(got))
		}
	}
}

// TestSend_neverSendsZeroChecksum finds the payload whose checksum is 0.
func TestSend_neverSendsZeroChecksum(t *testing.T) {
	var wire []byte
	p := newPair(t, conform.PipeConfig{Wire: func(f []byte) []byte { wire = bytes.Clone(f); return f }})
	p.send(t, []byte{0, 0}, false)
	payload := bytes.Clone(wire[40:42]) // adding the complement of the sum makes the sum 0xffff
	p.send(t, payload, false)
	if got := wire[40:42]; !bytes.Equal(got, []byte{0xff, 0xff}) {
		t.Errorf("checksum is %x, want ffff", got)
	}
	if got := p.receive(); len(got) != 2 {
		t.Errorf("received %d of 2", len(got))
	}
}

func TestSend_emptyBuffers(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	to, _ := p.a.Resolve(addrB)
	var b fabric.Batch
	for _, n := range []uint32{3, 0, 5, 0} {
		f, _ := p.a.Frame()
		copy(p.a.Arena().At(f+inet.Headroom, 5), "abcde")
		b.Descs = append(b.Descs, fabric.Desc{Addr: f + inet.Headroom, Len: n})
	}
	b.Pkts = []fabric.Packet{{Bufs: 4, Len: 8, To: to}}
	p.a.Send(&b)
	p.a.Flush()
	if got := p.receive(); len(got) != 1 || got[0] != "abcabcde" {
		t.Errorf("received %q", got)
	}
}

func TestSend_leavesBatchAlone(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	to, _ := p.a.Resolve(addrB)
	f, _ := p.a.Frame()
	d := fabric.Desc{Addr: f + inet.Headroom, Len: 1}
	b := fabric.Batch{Pkts: []fabric.Packet{{Bufs: 1, Len: 1, To: to}}, Descs: []fabric.Desc{d}}
	p.a.Send(&b)
	if b.Descs[0] != d {
		t.Errorf("Send changed the buffer from %v to %v", d, b.Descs[0])
	}
}

func TestSend_moreThanRoom(t *testing.T) {
	p := newPair(t, conform.PipeConfig{Depth: 20})
	to, _ := p.a.Resolve(addrB)
	if room := p.a.TxRoom(); room != 1 {
		t.Errorf("a send queue of 20 buffers has room for %d datagrams of 18", room)
	}
	b := fabric.NewBatch(200, 1)
	for i := range 200 { // more than one call to the port's Send, too
		f, ok := p.a.Frame()
		if !ok {
			t.Fatal("no frame")
		}
		b.Pkts = append(b.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: 1, To: to})
		b.Descs = append(b.Descs, fabric.Desc{Addr: f + inet.Headroom, Len: 1})
	}
	p.a.Send(b)
	p.a.Flush()
	if s := p.a.Stats(); s.TxPackets != 20 || s.TxErrors != 180 || s.TxBytes != 20 {
		t.Errorf("sent %d packets, %d bytes, %d errors; want 20, 20, 180", s.TxPackets, s.TxBytes, s.TxErrors)
	}
	if free := p.portA.Pool().Free(); free != p.portA.Pool().Cap() {
		t.Errorf("%d frames are missing", p.portA.Pool().Cap()-free)
	}
	p.receive()
}

func TestFlush_followsNeighbour(t *testing.T) {
	var dst inet.MAC
	p := newPair(t, conform.PipeConfig{Wire: func(f []byte) []byte { dst = inet.Ethernet(f).Dst(); return f }})
	p.send(t, nil, false)
	if dst != macB {
		t.Errorf("sent to %v, want %v", dst, macB)
	}
	moved := inet.MAC{2, 0, 0, 0, 1, 1}
	p.net.Fixed[addrB.Addr()] = inet.Hop{MAC: moved, MTU: 9000}
	p.net.generation++
	p.a.Flush()
	p.send(t, nil, false)
	if dst != moved {
		t.Errorf("sent to %v after it moved to %v", dst, moved)
	}
	p.receive()
}

func TestSend_unreachable(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	p.send(t, nil, false)
	hop := p.net.Fixed[addrB.Addr()]
	delete(p.net.Fixed, addrB.Addr())
	p.net.generation++
	p.a.Flush()
	p.send(t, nil, false)
	p.send(t, pattern(100), false)
	if s := p.a.Stats(); s.TxPackets != 1 || s.TxUnreachable != 2 {
		t.Errorf("sent %d, unreachable %d; want 1 and 2", s.TxPackets, s.TxUnreachable)
	}
	p.net.Fixed[addrB.Addr()] = hop
	p.net.generation++
	p.a.Flush()
	p.send(t, nil, false)
	if got := p.receive(); len(got) != 2 {
		t.Errorf("received %d of the 2 sent while there was a next hop", len(got))
	}
}

func TestSend_pathShrinks(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	p.send(t, pattern(3000), false)
	p.net.Fixed[addrB.Addr()] = inet.Hop{MAC: macB, MTU: 1500}
	p.net.generation++
	p.a.Flush()
	p.send(t, pattern(1472), false)
	p.send(t, pattern(1473), false)
	if s := p.a.Stats(); s.TxPackets != 2 || s.TxErrors != 1 {
		t.Errorf("sent %d, errors %d; want 2 and 1", s.TxPackets, s.TxErrors)
	}
	p.receive()
}

func TestResolve_errors(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	p.net.Fixed[netip.MustParseAddr("10.77.0.9")] = inet.Hop{MAC: macB, MTU: 1500}
	for _, c := range []struct {
		to   string
		want error
		text string
	}{
		{"10.77.0.3:1", inet.ErrUnknownHost, "10.77.0.3"},
		{"10.77.0.9:1", inet.ErrPathMTU, "packets of 1500 bytes, 9000 are wanted"},
		{"10.77.0.2:0", nil, "want an IPv4 address and a port"},
		{"[2001:db8::1]:1", nil, "want an IPv4 address and a port"},
	} {
		_, err := p.a.Resolve(netip.MustParseAddrPort(c.to))
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
	first, _ := p.a.Resolve(addrB)
	again, err := p.a.Resolve(netip.MustParseAddrPort("[::ffff:10.77.0.2]:4792"))
	if err != nil || again != first {
		t.Errorf("resolved again: %d, %v; want %d", again, err, first)
	}
}

func TestNew_errors(t *testing.T) {
	port, _, err := conform.NewPipe(conform.PipeConfig{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	good := inet.Config{Port: port, Resolver: inet.Fixed{}, Local: addrA, MAC: macA}
	for _, c := range []struct {
		name   string
		change func(*inet.Config)
		text   string
	}{
		{"no port", func(c *inet.Config) { c.Port = nil }, "Port is missing"},
		{"no resolver", func(c *inet.Config) { c.Resolver = nil }, "Resolver is missing"},
		{"no address", func(c *inet.Config) { c.Local = netip.AddrPort{} }, "want an IPv4 address"},
		{"any address", func(c *inet.Config) { c.Local = netip.MustParseAddrPort("0.0.0.0:1") }, "want an IPv4 address"},
		{"link-local", func(c *inet.Config) { c.Local = netip.MustParseAddrPort("[fe80::1]:1") }, "link-local"},
		{"a group", func(c *inet.Config) { c.Local = netip.MustParseAddrPort("[ff02::1]:1") }, "want an IPv4 address"},
		{"small MTU for IPv6", func(c *inet.Config) { c.Local, c.MTU = netip.MustParseAddrPort("[fd00::1]:1"), 1279 }, "want 1280 to 1500"},
		{"UDP port 0", func(c *inet.Config) { c.Local = netip.MustParseAddrPort("10.0.0.1:0") }, "and a port"},
		{"broadcast MAC", func(c *inet.Config) { c.MAC = inet.MAC{0xff} }, "no address of a device"},
		{"large MTU", func(c *inet.Config) { c.MTU = 9000 }, "want 68 to 1500"},
		{"small MTU", func(c *inet.Config) { c.MTU = 20 }, "want 68 to 1500"},
	} {
		config := good
		c.change(&config)
		if _, err := inet.New(config); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := inet.New(good); err != nil {
		t.Errorf("good: %v", err)
	}
}

func TestCaps(t *testing.T) {
	for _, c := range []struct {
		port       conform.PipeConfig
		mtu        int
		maxPayload int
	}{
		{conform.PipeConfig{MTU: 1500}, 0, 1472},
		{conform.PipeConfig{MTU: 9000}, 0, 8972},
		{conform.PipeConfig{MTU: 9000}, 1500, 1472},
		{conform.PipeConfig{MTU: 65536}, 0, 65507},
		{conform.PipeConfig{MTU: 9000, MaxBufs: 1}, 0, mem.FrameSize - inet.Headroom},
	} {
		port, _, err := conform.NewPipe(c.port)
		if err != nil {
			t.Fatal(err)
		}
		e, err := inet.New(inet.Config{Port: port, Resolver: inet.Fixed{}, Local: addrA, MAC: macA, MTU: c.mtu})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Caps(); got.MaxPayload != c.maxPayload || got.Headroom != inet.Headroom || got.MaxBufs != port.Caps().MaxBufs {
			t.Errorf("%+v, MTU %d: %+v, want a payload of %d", c.port, c.mtu, got, c.maxPayload)
		}
		if e.Local() != addrA {
			t.Errorf("Local is %v", e.Local())
		}
	}
}

func TestClose_givesBackWaitingFrames(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	for range 20 {
		p.portB.Inject(datagram(nil))
	}
	b := fabric.NewBatch(1, fabric.MaxBufs)
	p.b.Recv(b)
	p.b.Release(b)
	if err := p.b.Close(); err != nil { // the pipe reports missing frames
		t.Error(err)
	}
}

func TestAllocs_endpoint(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	to, _ := p.a.Resolve(addrB)
	tx, rx := fabric.NewBatch(16, 2), fabric.NewBatch(16, fabric.MaxBufs)
	if n := testing.AllocsPerRun(100, func() { exchange(p, to, tx, rx, 64) }); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
	if s := p.b.Stats(); s.RxPackets == 0 || s.RxPackets != p.a.Stats().TxPackets {
		t.Errorf("received %d of %d", s.RxPackets, p.a.Stats().TxPackets)
	}
}

// exchange sends 16 datagrams from a to b.
func exchange(p *pair, to fabric.Path, tx, rx *fabric.Batch, size int) {
	tx.Reset()
	for i := range 16 {
		f, _ := p.a.Frame()
		tx.Pkts = append(tx.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: int32(size), To: to})
		tx.Descs = append(tx.Descs, fabric.Desc{Addr: f + inet.Headroom, Len: uint32(size)})
	}
	p.a.Send(tx)
	p.a.Flush()
	p.b.Recv(rx)
	p.b.Release(rx)
}

func FuzzRecv(f *testing.F) {
	f.Add(datagram([]byte("hello")), uint16(100))
	f.Add(withOptions(datagram(pattern(50))), uint16(60))
	f.Add(make([]byte, 64), uint16(1))
	for _, chunk := range []uint16{1, 600, 3000} {
		f.Add(aggregate(600, pattern(1500)), chunk)
	}
	f.Add(toGroup(inet.GroupMAC(joined), joined)(datagram([]byte("hello"))), uint16(100))
	f.Fuzz(func(t *testing.T, frame []byte, chunk uint16) {
		size := 42 + int(chunk)%4000
		if len(frame) == 0 || len(frame) > size*fabric.MaxBufs {
			return
		}
		p := newPair(t, conform.PipeConfig{Frames: 64, Chunks: []int{size}})
		p.b.SetLocal(true)
		if err := p.b.Join(joined); err != nil {
			t.Fatal(err)
		}
		p.portB.Inject(frame)
		got, bytes := p.receive(), 0
		for _, payload := range got {
			bytes += len(payload)
		}
		s := p.b.Stats()
		if uint64(len(got)) != s.RxPackets || uint64(bytes) != s.RxBytes {
			t.Errorf("received %d, stats %+v", len(got), s)
		}
		if n := s.RxPackets + s.RxMalformed + s.RxChecksum; n != 1 && (s.RxAggregates != 1 || n < 2) {
			t.Errorf("one frame, stats %+v", s)
		}
		if bytes > max(0, len(frame)-inet.HeaderLen) {
			t.Errorf("%d bytes of payload in a frame of %d", bytes, len(frame))
		}
	})
}
