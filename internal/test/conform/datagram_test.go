package conform

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

func newArena(t testing.TB) *mem.Arena {
	t.Helper()
	a, err := mem.New(mem.Config{Size: 32 << 20, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, a)
	return a
}

// TestDatagram_inetPipe runs in memory, with frames received in one buffer and
// in many.
func TestDatagram_inetPipe(t *testing.T) {
	for _, c := range []PipeConfig{
		{},
		{MTU: 1500},
		{MTU: 65535, Frames: 2048, Depth: 1024},
		{MaxBufs: 1},
		{MTU: 1500, Frames: 2048, Chunks: []int{101}},
		{Frames: 2048, Chunks: []int{43, 1021, 4000}},
	} {
		t.Run(fmt.Sprintf("MTU=%d,bufs=%d,chunks=%v", c.MTU, c.MaxBufs, c.Chunks), func(t *testing.T) {
			Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) { return openPipes(t, c) })
		})
	}
}

func openPipes(t *testing.T, c PipeConfig) (a, b fabric.Datagram, step func()) {
	t.Helper()
	portA, portB, err := NewPipe(c)
	if err != nil {
		t.Fatal(err)
	}
	addrA, addrB := netip.MustParseAddrPort("10.0.0.1:4791"), netip.MustParseAddrPort("10.0.0.2:4791")
	macA, macB := inet.MAC{2, 0, 0, 0, 0, 1}, inet.MAC{2, 0, 0, 0, 0, 2}
	net := inet.Fixed{addrA.Addr(): {MAC: macA, MTU: 65535}, addrB.Addr(): {MAC: macB, MTU: 65535}}
	return newEndpoint(t, inet.Config{Port: portA, Resolver: net, Local: addrA, MAC: macA}),
		newEndpoint(t, inet.Config{Port: portB, Resolver: net, Local: addrB, MAC: macB}), nil
}

func newEndpoint(t *testing.T, c inet.Config) *inet.Datagram {
	t.Helper()
	e, err := inet.New(c)
	if err != nil {
		t.Fatal(errors.Join(err, c.Port.Close()))
	}
	testenv.Closing(t, e)
	return e
}

// openSocket opens a socket on an arena, which the cases of a suite share.
func openSocket(t *testing.T, a *mem.Arena, c kudp.Config) *kudp.Socket {
	t.Helper()
	c.Arena, c.Track = a, true
	s, err := kudp.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, s)
	return s
}

func TestDatagram_kudpLoopback(t *testing.T) {
	arenas := newArenas(t)
	for _, c := range []kudp.Config{
		{},
		{MTU: 9000, NoGSO: true, NoGRO: true},
		{MTU: 9000, NoGRO: true},
		{MTU: 1500},
		{MTU: 1500, RxSlots: 7, SocketBuffer: 64 << 10},
		{MTU: 1500, Local: netip.MustParseAddrPort("[::1]:0")},
		{MTU: 9000, NoGSO: true, NoGRO: true, Local: netip.MustParseAddrPort("[::1]:0")},
	} {
		if !c.Local.IsValid() {
			c.Local = netip.MustParseAddrPort("127.0.0.1:0")
		}
		t.Run(fmt.Sprintf("%v,MTU=%d,gso=%v,gro=%v,slots=%d", c.Local.Addr(), c.MTU, !c.NoGSO, !c.NoGRO, c.RxSlots), func(t *testing.T) {
			Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
				return openSocket(t, arenas[0], c), openSocket(t, arenas[1], c), runtime.Gosched
			})
		})
	}
}

// newTestbed makes two hosts on a cable.
func newTestbed(t *testing.T, mtu int) *testbed.Testbed {
	t.Helper()
	return hosttest.New(t, testbed.Config{MTU: mtu})
}

// on runs fn inside a host.
func on(t *testing.T, h *testbed.Host, fn func() error) {
	t.Helper()
	if err := h.Do(fn); err != nil {
		t.Fatal(err)
	}
}

func TestDatagram_kudpVeth(t *testing.T) {
	arenas := newArenas(t)
	for _, c := range []testbed.Config{{MTU: 1500}, {MTU: 9000}, {MTU: 1280, IPv6: true}, {MTU: 9000, IPv6: true}} {
		t.Run(fmt.Sprintf("MTU=%d,IPv6=%v", c.MTU, c.IPv6), func(t *testing.T) {
			tb := hosttest.New(t, c)
			Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
				var ends [2]*kudp.Socket
				for i, h := range tb.Hosts {
					on(t, h, func() error {
						ends[i] = openSocket(t, arenas[i], kudp.Config{Local: netip.AddrPortFrom(h.Addr, 4791)})
						return nil
					})
				}
				return ends[0], ends[1], runtime.Gosched
			})
		})
	}
}
