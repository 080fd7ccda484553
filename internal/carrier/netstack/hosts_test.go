package netstack

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// doubted is a resolver that counts in how many doubts it was asked again.
type doubted struct {
	inet.Fixed
	times int
}

func (d *doubted) Doubt(netip.Addr) netip.Addr { d.times++; return netip.Addr{} }

// The address that a neighbour's own frames show is tried when nothing comes from the one that
// the kernel has, and the kernel's again when nothing comes from that either.
func TestHosts_wrongNeighbour(t *testing.T) {
	const ms = mono.Millisecond
	addr, router := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.9")
	truth, lie, other := inet.MAC{2, 0, 0, 0, 0, 1}, inet.MAC{2, 6, 6, 6, 6, 6}, inet.MAC{2, 0, 0, 0, 0, 3}
	for _, tt := range []struct {
		name   string
		via    netip.Addr
		kernel inet.MAC // what the kernel has
		then   func(h *hosts, at *host)
		want   inet.MAC
		doubts int
	}{
		{"answers", netip.Addr{}, truth, func(h *hosts, at *host) {
			for i := range mono.Time(9) {
				h.sends(addr, at, true, i.Add(100*ms*mono.Duration(i)))
				h.heard(addr, truth, i.Add(100*ms*mono.Duration(i)+1))
			}
		}, truth, 0},
		{"acknowledged last, and long idle", netip.Addr{}, truth, func(h *hosts, at *host) {
			h.heard(addr, truth, 1)
			h.sends(addr, at, false, 2)
			h.sends(addr, at, true, mono.Time(0).Add(1000*ms))
		}, truth, 0},
		{"silent", netip.Addr{}, truth, func(h *hosts, at *host) {
			for i := range mono.Duration(30) { // 200, 600, 1400, 3000 ms
				h.sends(addr, at, true, mono.Time(1).Add(100*ms*i))
			}
		}, truth, 3},
		{"a lie before", netip.Addr{}, lie, func(h *hosts, at *host) {
			h.sends(addr, at, true, 1)
			h.heard(addr, truth, 2) // a reset by another card of the host
			h.sends(addr, at, true, mono.Time(1).Add(200*ms))
		}, truth, 1},
		{"a lie later", netip.Addr{}, truth, func(h *hosts, at *host) {
			h.sends(addr, at, true, 1)
			h.heard(addr, truth, 2)
			at.learn(inet.Hop{MAC: lie, MTU: 1500})
			h.sends(addr, at, true, 3)
			h.sends(addr, at, true, mono.Time(3).Add(200*ms))
		}, truth, 1},
		{"a lie, and the truth again", netip.Addr{}, lie, func(h *hosts, at *host) {
			h.heard(addr, other, 1)
			h.sends(addr, at, true, mono.Time(1).Add(200*ms)) // to other
			at.learn(inet.Hop{MAC: other, MTU: 1500})
			at.learn(inet.Hop{MAC: truth, MTU: 1500}) // it has moved
		}, truth, 1},
		{"it only acknowledges", netip.Addr{}, lie, func(h *hosts, at *host) {
			h.heard(addr, truth, 1)
			h.sends(addr, at, false, mono.Time(1).Add(199*ms))
			if at.mac != lie {
				t.Error("doubted too soon")
			}
			h.sends(addr, at, false, mono.Time(1).Add(200*ms))
		}, truth, 1},
		{"a stranger's frames", netip.Addr{}, truth, func(h *hosts, at *host) {
			h.heard(addr, lie, 1)
			h.sends(addr, at, true, mono.Time(1).Add(200*ms)) // to the stranger
			h.sends(addr, at, true, mono.Time(1).Add(600*ms))
			h.heard(addr, truth, mono.Time(1).Add(601*ms))
			h.sends(addr, at, true, mono.Time(1).Add(5000*ms))
		}, truth, 2},
		{"it has moved, and tells so", netip.Addr{}, lie, func(h *hosts, at *host) {
			h.heard(addr, other, 1)
			h.sends(addr, at, true, mono.Time(1).Add(200*ms))
			h.heard(addr, truth, mono.Time(1).Add(201*ms))
		}, truth, 1},
		{"behind a router", router, truth, func(h *hosts, at *host) {
			for i := range mono.Duration(9) {
				h.sends(addr, at, true, mono.Time(1).Add(100*ms*i))
				h.heard(addr, other, mono.Time(1).Add(100*ms*i+1))
			}
		}, truth, 0},
		{"groups are no station", netip.Addr{}, truth, func(h *hosts, at *host) {
			h.heard(addr, inet.MAC{1}, 1)
			h.sends(addr, at, true, mono.Time(1).Add(200*ms))
		}, truth, 1},
		{"not known", netip.Addr{}, truth, func(h *hosts, _ *host) { h.heard(router, other, 1) }, truth, 0},
	} {
		d := &doubted{Fixed: inet.Fixed{addr: {MAC: tt.kernel, MTU: 1500, Via: tt.via}}}
		var h hosts
		h.init(d, nil)
		if _, err := h.resolve(addr); err != nil {
			t.Fatal(err)
		}
		at := h.get(addr)
		tt.then(&h, at)
		if at.mac != tt.want || d.times != tt.doubts {
			t.Errorf("%s: sends to %v after %d doubts, want %v after %d", tt.name, at.mac, d.times, tt.want, tt.doubts)
		}
	}
}
