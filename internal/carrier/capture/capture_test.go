package capture

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/test/conform"
)

// file is a file in memory.
type file struct {
	bytes.Buffer
	room   int // bytes after which writing fails; 0 is no limit
	closed int
}

var errFull = errors.New("no space left")

func (f *file) Write(b []byte) (int, error) {
	if f.room > 0 && f.Len()+len(b) > f.room {
		return 0, errFull
	}
	return f.Buffer.Write(b)
}

func (f *file) Close() error { f.closed++; return nil }

// ticks is a clock that advances by 1 ns with each look.
type ticks struct{ now mono.Time }

func (c *ticks) Now() mono.Time { c.now++; return c.now }

// packet is one packet of a capture.
type packet struct {
	outbound bool
	at       time.Time
	frame    []byte
}

// read reads a capture back.
func read(t *testing.T, f *file) (iface pcapgo.NgInterface, packets []packet) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(f.Bytes()), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, opts, err := r.ReadPacketDataWithOptions()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if opts.Flags == nil || info.Length != len(data) {
			t.Fatalf("packet of %d bytes with info %+v and flags %v", len(data), info, opts.Flags)
		}
		packets = append(packets, packet{opts.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound, info.Timestamp, data})
	}
	if iface, err = r.Interface(0); err != nil {
		t.Fatal(err)
	}
	return iface, packets
}

// sink is a port that takes some buffers, and hands out others.
type sink struct {
	fabric.Port
	arena *mem.Arena
	takes int
	next  []fabric.Desc
	err   error
}

func (s *sink) Caps() fabric.PortCaps { return fabric.PortCaps{Driver: "test"} }
func (s *sink) Arena() *mem.Arena     { return s.arena }
func (s *sink) Recv(dst []fabric.Desc) int {
	return copy(dst, s.next)
}
func (s *sink) Send(src []fabric.Desc) int {
	n := min(s.takes, len(src))
	for _, d := range src[:n] {
		clear(s.arena.At(d.Addr, int(d.Len))) // sent: somebody else has the buffers now
	}
	return n
}
func (s *sink) Close() error { return s.err }

func TestPort_framesAsTheyAre(t *testing.T) {
	arena := mem.Over(make([]byte, 1<<16))
	for i, b := 0, arena.Bytes(); i < len(b); i++ {
		b[i] = byte(i>>8) ^ byte(i)
	}
	want := [][]byte{
		bytes.Clone(arena.At(100, 60)),
		append(bytes.Clone(arena.At(4096, 4096)), arena.At(9000, 33)...),
		bytes.Clone(arena.At(20000, 64)),
	}
	inner := &sink{arena: arena, takes: 3}
	inner.next = []fabric.Desc{{Addr: 20000, Len: 64}}
	f := &file{}
	p := NewPort(inner, f, Config{Clock: &ticks{}})
	var rx [fabric.MaxBufs]fabric.Desc
	if n := p.Recv(rx[:]); n != 1 || rx[0] != inner.next[0] {
		t.Errorf("received %d buffers", n)
	}
	inner.next = nil
	if n := p.Recv(rx[:]); n != 0 {
		t.Errorf("received %d buffers of nothing", n)
	}
	n := p.Send([]fabric.Desc{
		{Addr: 100, Len: 60},
		{Addr: 4096, Len: 4096, Flags: fabric.More}, {Addr: 9000, Len: 33},
		{Addr: 30000, Len: 60}, // no room for this one
	})
	if n != 3 {
		t.Errorf("sent %d buffers", n)
	}
	if err := p.Close(); err != nil || f.closed != 1 {
		t.Errorf("closed %d times: %v", f.closed, err)
	}
	iface, got := read(t, f)
	if iface.Name != "xwarp" || iface.Description != "test" || iface.LinkType != layers.LinkTypeEthernet {
		t.Errorf("interface %+v", iface)
	}
	want[0], want[1], want[2] = want[2], want[0], want[1]
	if len(got) != len(want) {
		t.Fatalf("%d packets captured, not %d", len(got), len(want))
	}
	for i, p := range got {
		if !bytes.Equal(p.frame, want[i]) || p.outbound != (i > 0) {
			t.Errorf("packet %d: %d bytes, outbound %v", i, len(p.frame), p.outbound)
		}
		if at := min(i, 1) + 1; p.at.UnixNano() != int64(at) {
			t.Errorf("packet %d is of %v, not %d ns", i, p.at, at)
		}
	}
}

func TestNewPort_timeOfDay(t *testing.T) {
	before := time.Now()
	f := &file{}
	arena := mem.Over(make([]byte, 4096))
	p := NewPort(&sink{arena: arena, takes: 1}, f, Config{Name: "here"})
	p.Send([]fabric.Desc{{Len: 60}})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	iface, got := read(t, f)
	// The clocks may be set while the test runs, but not by an hour.
	if d := got[0].at.Sub(before); d.Abs() > time.Hour || iface.Name != "here" {
		t.Errorf("packet is of %v, which is %v from now; interface %q", got[0].at, d, iface.Name)
	}
}

// What could not be written is told when the port closes, and the rest of the
// port works on.
func TestPort_fullDisk(t *testing.T) {
	for _, c := range []struct {
		name   string
		room   int
		frames int
	}{{"while it runs", 1, 2 * buffered / 60}, {"in the end", 1, 3}} {
		f, broken := &file{room: c.room}, errors.New("broken cable")
		p := NewPort(&sink{arena: mem.Over(make([]byte, 4096)), takes: 1, err: broken}, f, Config{})
		for range c.frames {
			if p.Send([]fabric.Desc{{Len: 60}}) != 1 {
				t.Fatalf("%s: the port below was not used", c.name)
			}
		}
		if err := p.Close(); !errors.Is(err, errFull) || !errors.Is(err, broken) || f.closed != 1 {
			t.Errorf("%s: closed %d times: %v", c.name, f.closed, err)
		}
	}
}

func openDatagrams(t *testing.T) (a *Datagram, b fabric.Datagram, f *file) {
	t.Helper()
	var ends [2]fabric.Datagram
	for i := range ends {
		arena, err := mem.New(mem.Config{Size: 32 << 20, SmallPages: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { arena.Close() })
		if ends[i], err = kudp.Open(kudp.Config{Arena: arena, Local: netip.MustParseAddrPort("127.0.0.1:0"), Track: true}); err != nil {
			t.Fatal(err)
		}
	}
	f = &file{}
	return NewDatagram(ends[0], f, Config{}), ends[1], f
}

// A carrier keeps its contract under a capture.
func TestDatagram_conforms(t *testing.T) {
	conform.Datagram(t, func(t *testing.T) (fabric.Datagram, fabric.Datagram, func()) {
		a, b, _ := openDatagrams(t)
		t.Cleanup(func() {
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		})
		return a, b, nil
	})
}

// post sends one datagram of two buffers.
func post(t *testing.T, from fabric.Datagram, to netip.AddrPort, payload []byte) {
	t.Helper()
	path, err := from.Resolve(to)
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(1, 2)
	for i, part := range [][]byte{payload[:3], payload[3:]} {
		addr, ok := from.Frame()
		if !ok {
			t.Fatal("no frame")
		}
		copy(from.Arena().At(addr, len(part)), part)
		b.Descs = append(b.Descs, fabric.Desc{Addr: addr, Len: uint32(len(part)), Flags: uint32(1 - i)})
	}
	b.Pkts = append(b.Pkts, fabric.Packet{Bufs: 2, Len: int32(len(payload)), To: path})
	from.Send(b)
	from.Flush()
}

func TestDatagram_headers(t *testing.T) {
	a, b, f := openDatagrams(t)
	post(t, a, b.Local(), []byte("there"))
	post(t, b, a.Local(), []byte("and back"))
	rx := fabric.NewBatch(4, 4)
	for a.Recv(rx) == 0 {
		a.Flush()
	}
	a.Release(rx)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	iface, got := read(t, f)
	if iface.Description != "udp" || len(got) != 2 {
		t.Fatalf("%d packets on %+v", len(got), iface)
	}
	ends := [2]netip.AddrPort{a.Local(), b.Local()}
	for i, want := range []string{"there", "and back"} {
		p := gopacket.NewPacket(got[i].frame, layers.LayerTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Fatal(p.ErrorLayer().Error())
		}
		ip, udp := p.NetworkLayer().(*layers.IPv4), p.TransportLayer().(*layers.UDP)
		src, _ := netip.AddrFromSlice(ip.SrcIP)
		dst, _ := netip.AddrFromSlice(ip.DstIP)
		from, to := netip.AddrPortFrom(src, uint16(udp.SrcPort)), netip.AddrPortFrom(dst, uint16(udp.DstPort))
		if from != ends[i] || to != ends[1-i] || got[i].outbound != (i == 0) {
			t.Errorf("packet %d: from %v to %v, outbound %v", i, from, to, got[i].outbound)
		}
		if string(udp.Payload) != want || int(udp.Length) != 8+len(want) || int(ip.Length) != 28+len(want) {
			t.Errorf("packet %d: %q, lengths %d and %d", i, udp.Payload, ip.Length, udp.Length)
		}
	}
}

func TestHardware(t *testing.T) {
	for addr, want := range map[string]inet.MAC{
		"10.1.2.3":    {2, 0, 10, 1, 2, 3},
		"239.129.2.3": {1, 0, 0x5e, 1, 2, 3},
	} {
		if got := hardware(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v, not %v", addr, got, want)
		}
	}
}
