package kudp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// receive waits for n datagrams and returns their payloads.
func receive(s *Socket, n int) []string {
	var got []string
	b := fabric.NewBatch(16, 1)
	for len(got) < n {
		s.Recv(b)
		for _, d := range b.Descs {
			got = append(got, string(s.Arena().At(d.Addr, int(d.Len))))
		}
		s.Release(b)
	}
	return got
}

func TestOpen_errors(t *testing.T) {
	arena, err := mem.New(mem.Config{Size: 1 << 20, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	free := arena.Room()
	local := netip.MustParseAddrPort("127.0.0.1:0")
	for _, c := range []struct {
		name   string
		config Config
		want   error
		text   string
	}{
		{"no arena", Config{Local: local}, nil, "Arena is missing"},
		{"no address", Config{Arena: arena}, nil, "want an IPv4 address, or one of IPv6, of this host"},
		{"any address", Config{Arena: arena, Local: netip.MustParseAddrPort("0.0.0.0:0")}, nil, "want an IPv4 address, or one of IPv6, of this host"},
		{"link-local", Config{Arena: arena, Local: netip.MustParseAddrPort("[fe80::1]:0")}, ErrLinkLocal, "fe80::1"},
		{"small MTU for IPv6", Config{Arena: arena, Local: netip.MustParseAddrPort("[::1]:0"), MTU: 1279}, nil, "want 1280 to 65535"},
		{"somebody else's address", Config{Arena: arena, Local: netip.MustParseAddrPort("203.0.113.5:0")}, ErrNotLocal, "203.0.113.5"},
		{"large MTU", Config{Arena: arena, Local: local, MTU: 65536}, nil, "want 68 to 65535"},
		{"small MTU", Config{Arena: arena, Local: local, MTU: 60}, nil, "want 68 to 65535"},
		{"negative frames", Config{Arena: arena, Local: local, Frames: -1}, nil, "Config.Frames is -1"},
		{"negative slots", Config{Arena: arena, Local: local, RxSlots: -2}, nil, "Config.RxSlots is -2"},
		{"frames beyond the arena", Config{Arena: arena, Local: local, Frames: 1000}, mem.ErrNoMemory, "frame pool of 1000"},
		{"slots beyond the arena", Config{Arena: arena, Local: local, Frames: 16, RxSlots: 99}, mem.ErrNoMemory, "99 receive buffers"},
	} {
		_, err := Open(c.config)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if now := arena.Room(); now != free {
			t.Errorf("%s: keeps %d bytes of the arena", c.name, free-now)
		}
	}
}

func TestOpen_portInUse(t *testing.T) {
	first := open(t, Config{})
	_, err := Open(Config{Arena: first.Arena(), Local: first.Local()})
	if !errors.Is(err, ErrPortInUse) || !errors.Is(err, unix.EADDRINUSE) ||
		!strings.Contains(err.Error(), fmt.Sprintf("sport = %d", first.Local().Port())) {
		t.Errorf("error is %v", err)
	}
}

func TestBindError(t *testing.T) {
	local := netip.MustParseAddrPort("10.0.0.1:80")
	for errno, text := range map[unix.Errno]string{
		unix.EADDRINUSE:    "ss -ulpn 'sport = 80'",
		unix.EADDRNOTAVAIL: "ip addr",
		unix.EACCES:        "choose one from 1024 on",
		unix.EPERM:         "bind to 10.0.0.1:80",
	} {
		if err := bindError(local, errno); !errors.Is(err, errno) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestOpen_caps(t *testing.T) {
	for _, c := range []struct{ mtu, payload int }{{0, 65507}, {65535, 65507}, {9000, 8972}, {1500, 1472}} {
		s := open(t, Config{MTU: c.mtu})
		if caps := s.Caps(); caps.MaxPayload != c.payload || caps.MaxBufs != fabric.MaxBufs || caps.Headroom != 0 {
			t.Errorf("MTU %d: caps %+v", c.mtu, caps)
		}
		if !s.Local().IsValid() || s.Local().Port() == 0 {
			t.Errorf("local address is %v", s.Local())
		}
	}
	if few, many := open(t, Config{SocketBuffer: 100 << 10}).Caps().RxDepth, open(t, Config{MTU: 1500}).Caps().RxDepth; few >= many {
		t.Errorf("%d large datagrams fit a small buffer, %d small ones a large one", few, many)
	}
}

func TestResolve_errors(t *testing.T) {
	s := open(t, Config{MTU: 1500})
	for _, c := range []struct {
		to   string
		want error
		text string
	}{
		{"203.0.113.9:1", ErrNoRoute, "ip route get 203.0.113.9"}, // nowhere to go from 127.0.0.1
		{"127.0.0.1:0", nil, "want an IPv4 address and a port"},
		{"[::1]:1", nil, "want an IPv4 address and a port"},
		{"0.0.0.0:1", nil, "want an IPv4 address and a port"},
	} {
		_, err := s.Resolve(netip.MustParseAddrPort(c.to))
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

func TestResolve_pathMTU(t *testing.T) {
	hosts := newHosts(t)
	s := openOn(t, hosts[0], Config{})
	err := hosts[0].Do(func() error {
		link, err := netlink.LinkByName(hosts[0].Dev)
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: netlink.NewIPNet(net.IPv4(10, 87, 0, 2)), MTU: 1400})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(netip.MustParseAddrPort("10.87.0.3:1")); err != nil {
		t.Error(err)
	}
	_, err = s.Resolve(netip.MustParseAddrPort("10.87.0.2:1"))
	if !errors.Is(err, ErrPathMTU) || !strings.Contains(err.Error(), "packets of 1400 bytes, 9000 are wanted") {
		t.Errorf("error is %v", err)
	}
}

// TestRecv_aggregates takes the datagrams of one GRO aggregate apart, over several small
// batches that are released late and out of order.
func TestRecv_aggregates(t *testing.T) {
	tx, rx := open(t, Config{MTU: 1500}), open(t, Config{MTU: 1500, RxSlots: 2})
	to, err := tx.Resolve(rx.Local())
	if err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		b := fabric.NewBatch(11, 1)
		for i := range 11 {
			f, _ := tx.Frame()
			n := 100
			if i == 10 {
				n = 37 // the last of an aggregate may be shorter
			}
			for j := range tx.Arena().At(f, n) {
				tx.Arena().At(f, n)[j] = byte(round + i)
			}
			b.Pkts = append(b.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: int32(n), To: to})
			b.Descs = append(b.Descs, fabric.Desc{Addr: f, Len: uint32(n)})
		}
		tx.Send(b)
		tx.Flush()
		var held []*fabric.Batch
		for n := 0; n < 11; {
			h := fabric.NewBatch(3, 1)
			n += rx.Recv(h)
			held = append(held, h)
			for k, d := range h.Descs {
				i := n - len(h.Pkts) + k
				if want := min(100, 37+1000*(10-i)); int(d.Len) != want || rx.Arena().At(d.Addr, 1)[0] != byte(round+i) {
					t.Fatalf("datagram %d has %d bytes, begins with %d", i, d.Len, rx.Arena().At(d.Addr, 1)[0])
				}
				if h.Pkts[k].From.AddrPort() != tx.Local() {
					t.Fatalf("datagram %d is from %v", i, h.Pkts[k].From.AddrPort())
				}
			}
		}
		slices.Reverse(held)
		for _, h := range held {
			rx.Release(h)
		}
	}
	if rx.rx.free != 0 {
		t.Errorf("%d slots were not given back", rx.rx.free)
	}
}

func TestRecv_tooLarge(t *testing.T) {
	s := open(t, Config{MTU: 1500, NoGRO: true})
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(s.Local()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, n := range []int{5000, 5} {
		if _, err := c.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := receive(s, 1); len(got[0]) != 5 {
		t.Errorf("a datagram of %d bytes is delivered", len(got[0]))
	}
	if st := s.Stats(); st.RxMalformed != 1 || st.RxPackets != 1 {
		t.Errorf("stats %+v", st)
	}
}

func TestStats_countsWhatTheKernelDrops(t *testing.T) {
	tx, rx := open(t, Config{NoGSO: true}), open(t, Config{SocketBuffer: 4096})
	to, err := tx.Resolve(rx.Local())
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(50, 1)
	for range 4 {
		send(tx, b, to, 50, 1000)
	}
	got := uint64(0)
	for got+rx.Stats().RxDropped < 200 { // on a busy machine some are still on their way
		got += uint64(rx.Recv(b))
		rx.Release(b)
	}
	if st := rx.Stats(); st.RxDropped == 0 || st.RxDropped+got != 200 {
		t.Errorf("200 sent, %d received, %d counted as dropped", got, st.RxDropped)
	}
}

func TestClose_leavesNothing(t *testing.T) {
	arena, err := mem.New(mem.Config{Size: 16 << 20, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	before, files := arena.Room(), 0
	local := netip.MustParseAddrPort("127.0.0.1:0")
	for round := range 3 {
		s, err := Open(Config{Arena: arena, Local: local})
		if err != nil {
			t.Fatal(err)
		}
		local = s.Local() // the port is free again, too
		to, err := s.Resolve(local)
		if err != nil {
			t.Fatal(err)
		}
		send(s, fabric.NewBatch(3, 1), to, 3, 100)
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if round == 0 {
			files = testenv.OpenFiles(t) // with those that the runtime opens once
		}
	}
	if now := arena.Room(); now != before {
		t.Errorf("%d bytes of the arena are missing", before-now)
	}
	if now := testenv.OpenFiles(t); now != files {
		t.Errorf("%d files are open, there were %d", now, files)
	}
}
