package xdp

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
)

func TestDevice_kindName(t *testing.T) {
	for want, d := range map[string]device{
		"VLAN": {name: "up0", card: "eth0", kind: kindOf("vlan")}, "IPsec interface": {name: "up0", card: "up0", kind: kindOf("xfrm")},
		"veth": {name: "up0", card: "up0", kind: kindOf("veth")}, "network card": {name: "up0", card: "up0"},
	} {
		if got := d.kindName(); got != want || (d.lower() == "eth0") != (want == "VLAN") {
			t.Errorf("%q on %q, want %q", got, d.lower(), want)
		}
	}
}

// The documentation has a row for every kind, with what is used.
func TestKinds_documented(t *testing.T) {
	text, err := os.ReadFile("../docs/NICS.md")
	if err != nil {
		t.Fatal(err)
	}
	used := map[use]string{useBest: "AF_XDP", useGeneric: "generic", useLower: "below", useKernel: "kernel UDP"}
	for _, k := range kinds() {
		found := false
		for line := range strings.Lines(string(text)) {
			found = found || strings.Contains(line, "`"+k.name+"`") && strings.HasPrefix(line, "|") && strings.Contains(line, used[k.use])
		}
		if !found {
			t.Errorf("docs/NICS.md has no row for `%s` that says %q", k.name, used[k.use])
		}
		if k.what == "" || k.why == "" || strings.HasSuffix(k.why, ".") {
			t.Errorf("%+v", k)
		}
	}
}

// A driver that has XDP does not make driver mode usable on a device above others.
func TestReport_modesOfKinds(t *testing.T) {
	for _, k := range kinds() {
		r, dev := &Report{Kernel: "6.1"}, &device{name: "up0", driver: "veth", kind: k}
		r.modes(dev)
		if got, want := len(r.Modes) == 2, k.use == useBest || k.use == useLower; got != want {
			t.Errorf("%s: modes %v", k.name, r.Modes)
		}
	}
}

func TestDevice_suits(t *testing.T) {
	ether := netlink.LinkAttrs{Name: "up0", EncapType: "ether"}
	for _, c := range []struct {
		link   netlink.Link
		driver string
		auto   bpf.Mode // that is tried
		refuse []bpf.Mode
		note   string
	}{
		{&netlink.Device{LinkAttrs: ether}, "ixgbe", bpf.Auto, nil, ""},
		{&netlink.Veth{LinkAttrs: ether}, "veth", bpf.Generic, nil, ""},
		{&netlink.Bond{LinkAttrs: ether}, "bonding", bpf.Generic, []bpf.Mode{bpf.Driver}, "up0 is a bond, so"},
		{&netlink.Bridge{LinkAttrs: ether}, "bridge", bpf.Generic, []bpf.Mode{bpf.Driver}, "up0 is a bridge, so"},
		{&netlink.Device{LinkAttrs: ether}, "hv_netvsc", bpf.Generic, []bpf.Mode{bpf.Driver}, "up0 is a network card of Hyper-V, so"},
		{&netlink.GenericLink{LinkAttrs: ether, LinkType: "team"}, "team", bpf.Generic, []bpf.Mode{bpf.Driver}, "up0 is a team, so"},
		{&netlink.GenericLink{LinkAttrs: ether, LinkType: "new"}, "", bpf.Auto, nil, ""},
		{&netlink.Tuntap{LinkAttrs: ether}, "tun", bpf.Auto, nil, ""},
		{&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "up0", EncapType: "none"}}, "tun", bpf.Auto, []bpf.Mode{bpf.Auto, bpf.Generic, bpf.Driver}, "up0 is no Ethernet device: "},
		{&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "up0", EncapType: "none"}}, "wireguard", bpf.Auto, []bpf.Mode{bpf.Auto, bpf.Generic, bpf.Driver}, "up0 is a WireGuard tunnel: "},
		{&netlink.Vrf{LinkAttrs: ether}, "vrf", bpf.Auto, []bpf.Mode{bpf.Auto, bpf.Generic, bpf.Driver}, "up0 is a VRF: "},
		{&netlink.IPVlan{LinkAttrs: ether, Mode: netlink.IPVLAN_MODE_L2}, "ipvlan", bpf.Generic, []bpf.Mode{bpf.Driver}, "up0 is an ipvlan, so"},
		{&netlink.IPVlan{LinkAttrs: ether, Mode: netlink.IPVLAN_MODE_L3S}, "ipvlan", bpf.Auto, []bpf.Mode{bpf.Auto, bpf.Generic, bpf.Driver}, "up0 is an ipvlan in mode l3: "},
	} {
		d := device{name: "up0", driver: c.driver, kind: kindOfLink(c.link, c.driver)}
		if got := d.preferred(bpf.Auto); got != c.auto {
			t.Errorf("%T, %s: tries %v, want %v", c.link, c.driver, got, c.auto)
		}
		if note := d.note(); !strings.HasPrefix(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%T, %s: %q, want %q", c.link, c.driver, note, c.note)
		}
		for _, m := range []bpf.Mode{bpf.Auto, bpf.Generic, bpf.Driver} {
			want := false
			for _, r := range c.refuse {
				want = want || r == m
			}
			if err := d.suits(m); errors.Is(err, ErrUnsupported) != want {
				t.Errorf("%T, %s, %v: %v", c.link, c.driver, m, err)
			}
		}
	}
}

// What keeps a VLAN from being used on the device below it.
func TestDevice_below(t *testing.T) {
	for why, v := range map[string]netlink.Vlan{
		"802.1ad":                   {VlanId: 5, VlanProtocol: netlink.VLAN_PROTOCOL_8021AD, LinkAttrs: netlink.LinkAttrs{NetNsID: -1}},
		"only a priority":           {VlanProtocol: netlink.VLAN_PROTOCOL_8021Q, LinkAttrs: netlink.LinkAttrs{NetNsID: -1}},
		"another network namespace": {VlanId: 5, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q},
	} {
		d := device{name: "up0", kind: kindOf("vlan")}
		if err := d.below(&v); err != nil || d.vlan != 0 || d.preferred(bpf.Auto) != bpf.Generic || !strings.Contains(d.note(), why) {
			t.Errorf("%s: %v, %q", why, err, d.note())
		}
	}
}
