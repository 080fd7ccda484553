package route

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// TestReroute_forgedICMP: what an ICMP message says of the MTU makes the kernel believe
// it, and changes nothing for us: anybody can send one.
func TestReroute_forgedICMP(t *testing.T) {
	for _, c := range []struct {
		name string
		bed  testbed.Config
		mtu  int
	}{{"IPv4", testbed.Config{}, 600}, {"IPv6", testbed.Config{IPv6: true}, 1280}} {
		t.Run(c.name, func(t *testing.T) {
			b := openOn(t, Config{}, c.bed)
			hop, err := b.Resolve(b.b.Addr)
			if err != nil || hop.MTU != 9000 {
				t.Fatalf("%+v, %v", hop, err)
			}
			from, to := netip.AddrPortFrom(b.a.Addr, 18700), netip.AddrPortFrom(b.b.Addr, 18700)
			var socket *net.UDPConn // it is for a socket of ours that the kernel believes
			b.inA(func() (err error) {
				socket, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(from))
				return err
			})
			defer socket.Close()
			for believed := 0; believed != c.mtu; {
				if _, err := socket.WriteToUDPAddrPort(nil, to); err != nil {
					t.Fatal(err)
				}
				if err := hosttest.ForgeTooBig(b.b, from, to, c.mtu); err != nil {
					t.Fatal(err)
				}
				b.inA(func() error {
					routes, err := netlink.RouteGet(b.b.Addr.AsSlice())
					believed = routes[0].MTU
					return err
				})
			}
			if err := b.reroute(); err != nil {
				t.Fatal(err)
			}
			if now, ok := b.Current(b.b.Addr); !ok || now != hop {
				t.Errorf("next hop is %+v, %v after a forged message, was %+v", now, ok, hop)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b.inA(func() (err error) {
				b.Table, err = Open(Config{Link: b.a.Dev})
				return err
			})
			if now, err := b.Resolve(b.b.Addr); err != nil || now != hop {
				t.Errorf("who begins afterwards finds %+v, %v, want %+v", now, err, hop)
			}
		})
	}
}

// TestFollow_waitsForNothing: who is followed is known soon, and who does not answer is
// followed as well.
func TestFollow_waitsForNothing(t *testing.T) {
	b := open(t, Config{Tries: 1})
	nobody := netip.MustParseAddr("10.87.0.77")
	b.Follow(b.b.Addr)
	b.Follow(nobody)
	b.until("an address", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == inet.MAC(b.b.MAC) })
	b.until("a route", nobody, func(hop inet.Hop, ok bool) bool { return !ok && hop.MTU == 9000 })
	if via := b.Doubt(b.b.Addr); via != b.b.Addr {
		t.Errorf("%v is to be asked for, want %v", via, b.b.Addr)
	}
	b.ip(b.a, "link", "set", b.a.Dev, "down")
	b.until("link down", b.b.Addr, func(hop inet.Hop, ok bool) bool { return !ok && hop.MTU == 0 })
	if via := b.Doubt(b.b.Addr); via.IsValid() {
		t.Errorf("%v is to be asked for on a link that is down", via)
	}
}
