package route

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// bench is two hosts on a cable, with a table on the first.
type bench struct {
	*Table
	a, b *testbed.Host
	t    *testing.T
}

func open(t *testing.T, c Config) *bench { return openOn(t, c, testbed.Config{}) }

func openOn(t *testing.T, c Config, bed testbed.Config) *bench {
	t.Helper()
	tb := hosttest.New(t, bed)
	b := &bench{a: tb.Hosts[0], b: tb.Hosts[1], t: t}
	proc := "ipv4"
	if bed.IPv6 {
		proc = "ipv6"
	}
	// A host that does not answer is given up after 20 ms instead of 3 s.
	b.inA(func() error {
		dir := "/proc/sys/net/" + proc + "/neigh/" + b.a.Dev + "/"
		return errors.Join(
			os.WriteFile(dir+"retrans_time_ms", []byte("20"), 0),
			os.WriteFile(dir+"mcast_solicit", []byte("1"), 0))
	})
	c.Link = b.a.Dev
	b.inA(func() (err error) {
		b.Table, err = Open(c)
		return err
	})
	testenv.Closing(t, b.Table)
	return b
}

func (b *bench) inA(fn func() error) { b.in(b.a, fn) }

func (b *bench) in(h *testbed.Host, fn func() error) {
	b.t.Helper()
	if err := h.Do(fn); err != nil {
		b.t.Fatal(err)
	}
}

// ip runs the ip command in a host.
func (b *bench) ip(h *testbed.Host, args ...string) {
	b.t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		b.t.Skip("needs ip: apt-get install iproute2")
	}
	if out, err := hosttest.Output(h, "ip", args...); err != nil {
		b.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// until waits for the table to come round to cond; the kernel tells it when
// it likes.
func (b *bench) until(what string, dst netip.Addr, cond func(inet.Hop, bool) bool) {
	b.t.Helper()
	for {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		if cond(b.Current(dst)) {
			return
		}
		b.t.Logf("waiting: %s", what)
		<-changed
	}
}

func TestResolve_neighbour(t *testing.T) {
	b := open(t, Config{})
	hop, err := b.Resolve(b.b.Addr)
	want := inet.Hop{MAC: inet.MAC(b.b.MAC), Source: b.a.Addr, MTU: 9000}
	if err != nil || hop != want {
		t.Fatalf("%+v, %v; want %+v", hop, err, want)
	}
	if now, ok := b.Current(b.b.Addr); !ok || now != want {
		t.Errorf("Current is %+v, %v", now, ok)
	}
	if _, ok := b.Current(netip.MustParseAddr("10.87.0.77")); ok {
		t.Error("Current knows a host that was never resolved")
	}
	l := b.Link()
	if l.Name != b.a.Dev || l.MAC != inet.MAC(b.a.MAC) || l.MTU != 9000 || l.Addr != b.a.Addr || !l.Up {
		t.Errorf("Link is %+v", l)
	}
}

// What a host answers to the question for its address, that nobody is at the discard port, does
// not keep the next host from being asked.
func TestResolve_oneAfterTheOther(t *testing.T) {
	b := openOn(t, Config{Tries: 1}, testbed.Config{Hosts: 4})
	for i := 2; i <= 4; i++ {
		dst := netip.AddrFrom4([4]byte{10, 87, 0, byte(i)})
		if _, err := b.Resolve(dst); err != nil {
			t.Errorf("host %d: %v", i, err)
		}
	}
}

func TestResolve_gateway(t *testing.T) {
	b := open(t, Config{})
	b.ip(b.a, "route", "add", "10.99.0.0/16", "via", b.b.Addr.String(), "mtu", "1400")
	hop, err := b.Resolve(netip.MustParseAddr("10.99.3.4"))
	want := inet.Hop{MAC: inet.MAC(b.b.MAC), Source: b.a.Addr, MTU: 1400, Via: b.b.Addr}
	if err != nil || hop != want {
		t.Errorf("%+v, %v; want %+v", hop, err, want)
	}
}

func TestResolve_errors(t *testing.T) {
	b := open(t, Config{Tries: 2})
	b.ip(b.a, "route", "add", "blackhole", "10.98.0.0/16")
	b.ip(b.a, "route", "add", "10.97.0.0/16", "via", "10.87.0.66")
	b.ip(b.a, "route", "add", "10.96.0.0/16", "dev", "lo")
	for _, c := range []struct {
		dst  string
		want error
		text string
	}{
		{"10.1.2.3", ErrNoRoute, "ip route add 10.1.2.3/32 dev xw0"},
		{"10.98.0.1", ErrNoRoute, "no route"},
		{"10.96.0.1", ErrNoRoute, "no route"},
		{"fd99::1", ErrNoRoute, "ip route add fd99::1/128 dev xw0"},
		{"fe80::1", ErrNoRoute, "link-local IPv6 addresses are not supported"},
		{"224.0.0.9", ErrNoRoute, "no route"},
		{"10.87.0.255", ErrNoRoute, "not a unicast route"},
		{"10.87.0.77", ErrNoNeighbour, "it does not answer ARP"},
		{"10.97.0.1", ErrNoNeighbour, "the router 10.87.0.66 does not answer ARP"},
		{b.a.Addr.String(), ErrLocal, "use shared memory"},
		{"127.0.0.1", ErrLocal, "use shared memory"},
	} {
		_, err := b.Resolve(netip.MustParseAddr(c.dst))
		if _, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.dst, err, c.want, c.text)
		}
		if _, ok := b.Current(netip.MustParseAddr(c.dst)); ok {
			t.Errorf("%s has a next hop now", c.dst)
		}
	}
	if n := len(b.dests); n != 0 {
		t.Errorf("%d destinations are followed though none was resolved", n)
	}
}

func TestResolve_linkDown(t *testing.T) {
	b := open(t, Config{})
	b.ip(b.a, "link", "set", b.a.Dev, "down")
	for b.Link().Up { // it is announced to the table, not asked for
	}
	_, err := b.Resolve(b.b.Addr)
	if !errors.Is(err, ErrLinkDown) || !strings.Contains(err.Error(), "ip link set xw0 up") {
		t.Errorf("%v, want %v", err, ErrLinkDown)
	}
}

func TestFollow_linkDownAndUp(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*testbed.Host{b.a, b.b} { // our end, then the carrier
		before := b.Generation()
		b.ip(h, "link", "set", h.Dev, "down")
		b.until("link down", b.b.Addr, func(_ inet.Hop, ok bool) bool { return !ok })
		if b.Generation() == before {
			t.Error("generation did not change with the link")
		}
		b.ip(h, "link", "set", h.Dev, "up")
		b.until("link up", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == inet.MAC(b.b.MAC) })
	}
}

func TestFollow_neighbourMoves(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	before := b.Generation()
	moved := inet.MAC{2, 0, 0, 0, 0, 99}
	b.ip(b.a, "neigh", "replace", b.b.Addr.String(), "lladdr", moved.String(), "dev", b.a.Dev)
	b.until("new address", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == moved })
	if b.Generation() == before {
		t.Error("generation did not change with the neighbour")
	}
}

// TestFollow_neighbourChangesAddress lets the host announce its new address
// itself, which takes ARP.
func TestFollow_neighbourChangesAddress(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	moved := inet.MAC{2, 0, 0, 0, 0, 98}
	b.ip(b.b, "link", "set", b.b.Dev, "address", moved.String())
	b.ip(b.a, "neigh", "del", b.b.Addr.String(), "dev", b.a.Dev)
	b.until("new address", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == moved })
}

// TestFollow_neighbourIsForgotten: the kernel forgets neighbours to make room;
// traffic goes on meanwhile.
func TestFollow_neighbourIsForgotten(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	// As the announcement of the kernel's garbage collection says it.
	b.hear(netlink.Neigh{LinkIndex: b.index, IP: net.IP(b.b.Addr.AsSlice()), State: unix.NUD_STALE}, true)
	if hop, ok := b.Current(b.b.Addr); !ok || hop.MAC != inet.MAC(b.b.MAC) {
		t.Errorf("next hop is %v, %v", hop, ok)
	}
}

func TestFollow_neighbourDies(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	b.ip(b.b, "link", "set", b.b.Dev, "arp", "off")
	b.ip(b.a, "neigh", "del", b.b.Addr.String(), "dev", b.a.Dev)
	b.until("no answer", b.b.Addr, func(_ inet.Hop, ok bool) bool { return !ok })
	b.ip(b.b, "link", "set", b.b.Dev, "arp", "on") // it is asked again and again
	b.until("answer", b.b.Addr, func(_ inet.Hop, ok bool) bool { return ok })
}

func TestFollow_mtu(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	b.ip(b.a, "link", "set", b.a.Dev, "mtu", "1500")
	b.until("MTU of the link", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MTU == 1500 })
	b.ip(b.a, "route", "add", b.b.Addr.String()+"/32", "dev", b.a.Dev, "mtu", "1300")
	b.until("MTU of the route", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MTU == 1300 })
}

func TestFollow_route(t *testing.T) {
	b := open(t, Config{})
	far := netip.MustParseAddr("10.99.0.1")
	b.ip(b.a, "route", "add", "10.99.0.0/16", "via", b.b.Addr.String())
	if _, err := b.Resolve(far); err != nil {
		t.Fatal(err)
	}
	b.ip(b.a, "route", "del", "10.99.0.0/16")
	b.until("no route", far, func(_ inet.Hop, ok bool) bool { return !ok })
	b.ip(b.b, "addr", "add", "10.87.0.50/24", "dev", b.b.Dev)
	b.ip(b.a, "route", "add", "10.99.0.0/16", "via", "10.87.0.50")
	b.until("new route", far, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == inet.MAC(b.b.MAC) })
}

func TestResolve_waitsForHostToAppear(t *testing.T) {
	b := open(t, Config{Tries: 1 << 30})
	late := netip.MustParseAddr("10.87.0.60")
	done := make(chan error)
	go func() {
		_, err := b.Resolve(late)
		done <- err
	}()
	b.until("first failure", late, func(inet.Hop, bool) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.neighbours[late].failures > 0
	})
	b.ip(b.b, "addr", "add", late.String()+"/24", "dev", b.b.Dev)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestClose_endsResolve(t *testing.T) {
	b := open(t, Config{Tries: 1 << 30})
	missing := netip.MustParseAddr("10.87.0.61")
	done := make(chan error)
	go func() {
		_, err := b.Resolve(missing)
		done <- err
	}()
	b.until("first failure", missing, func(inet.Hop, bool) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.neighbours[missing].failures > 0
	})
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, errClosed) {
		t.Errorf("Resolve returns %v", err)
	}
	if _, err := b.Resolve(missing); !errors.Is(err, errClosed) {
		t.Errorf("Resolve returns %v after Close", err)
	}
}

func TestOpen_errors(t *testing.T) {
	for link, want := range map[string]string{
		"nosuchdevice0": `device "nosuchdevice0"`,
		"lo":            "no Ethernet address",
	} {
		_, err := Open(Config{Link: link})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", link, err)
		}
	}
}

func TestAllocs_current(t *testing.T) {
	b := open(t, Config{})
	if _, err := b.Resolve(b.b.Addr); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { b.Current(b.b.Addr); b.Generation() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestResolve_IPv6 looks for neighbours, behind a router too, and follows what becomes
// of them.
func TestResolve_IPv6(t *testing.T) {
	b := openOn(t, Config{Tries: 2}, testbed.Config{IPv6: true})
	if l := b.Link(); l.Addr.IsValid() || l.Addr6 != b.a.Addr {
		t.Errorf("the device has %v and %v, want %v", l.Addr, l.Addr6, b.a.Addr)
	}
	want := inet.Hop{MAC: inet.MAC(b.b.MAC), Source: b.a.Addr, MTU: 9000}
	if hop, err := b.Resolve(b.b.Addr); err != nil || hop != want {
		t.Errorf("%+v, %v; want %+v", hop, err, want)
	}
	b.ip(b.a, "route", "add", "fd99::/64", "via", b.b.Addr.String(), "mtu", "1400")
	want.MTU, want.Via = 1400, b.b.Addr
	if hop, err := b.Resolve(netip.MustParseAddr("fd99::5")); err != nil || hop != want {
		t.Errorf("behind a router: %+v, %v; want %+v", hop, err, want)
	}
	nobody := netip.PrefixFrom(b.a.Addr, 64).Masked().Addr().Next().Next().Next().Next().Next()
	if _, err := b.Resolve(nobody); !errors.Is(err, ErrNoNeighbour) || !strings.Contains(err.Error(), "neighbour solicitations") {
		t.Errorf("nobody: %v", err)
	}
	if _, err := b.Resolve(b.a.Addr); !errors.Is(err, ErrLocal) {
		t.Errorf("the own address: %v", err)
	}
	moved := inet.MAC{2, 0, 0, 0, 0, 99}
	b.ip(b.a, "neigh", "replace", b.b.Addr.String(), "lladdr", moved.String(), "dev", b.a.Dev)
	b.until("new address", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == moved })
	group := netip.MustParseAddr("ff02::1:2")
	if err := errors.Join(b.Join(group), b.Leave(group)); err != nil {
		t.Error(err)
	}
}
