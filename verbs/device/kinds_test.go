package device_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// upper is a kind of devices over a network card, or without one.
type upper struct {
	name  string
	make  func(h *testbed.Host, peer netip.Addr, below netlink.Link) netlink.Link
	slave bool   // the device below becomes a part of it
	want  string // the carrier, or what the error for it says
	note  string // what xdp.Note says
}

func attrs(below netlink.Link) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = "up0"
	if below != nil {
		a.ParentIndex = below.Attrs().Index
	}
	return a
}

func vlan(id int, protocol netlink.VlanProtocol) func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
	return func(_ *testbed.Host, _ netip.Addr, below netlink.Link) netlink.Link {
		return &netlink.Vlan{LinkAttrs: attrs(below), VlanId: id, VlanProtocol: protocol}
	}
}

func bond(mode netlink.BondMode) func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
	return func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
		b := netlink.NewLinkBond(attrs(nil))
		b.Mode, b.Miimon = mode, 100
		return b
	}
}

var uppers = []upper{
	{"vlan", vlan(100, netlink.VLAN_PROTOCOL_8021Q), false, "xdp/generic/copy", "up0 is VLAN 100 of xw0"},
	{"vlanOfAProvider", vlan(100, netlink.VLAN_PROTOCOL_8021AD), false, "xdp/generic/copy", "up0 is a VLAN, so AF_XDP is in generic mode: only tags of 802.1Q"},
	{"bond", bond(netlink.BOND_MODE_ACTIVE_BACKUP), true, "xdp/generic/copy", "up0 is a bond, so"},
	{"bondInTurns", bond(netlink.BOND_MODE_BALANCE_RR), true, "xdp/generic/copy", "up0 is a bond, so"},
	{"bridge", func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
		return &netlink.Bridge{LinkAttrs: attrs(nil)}
	}, true, "xdp/generic/copy", "up0 is a bridge, so"},
	{"macvlan", func(_ *testbed.Host, _ netip.Addr, below netlink.Link) netlink.Link {
		return &netlink.Macvlan{LinkAttrs: attrs(below), Mode: netlink.MACVLAN_MODE_BRIDGE}
	}, false, "xdp/generic/copy", "up0 is a macvlan, so"},
	{"ipvlan", func(_ *testbed.Host, _ netip.Addr, below netlink.Link) netlink.Link {
		return &netlink.IPVlan{LinkAttrs: attrs(below), Mode: netlink.IPVLAN_MODE_L2}
	}, false, "xdp/generic/copy", "up0 is an ipvlan, so"},
	{"ipvlanL3", func(_ *testbed.Host, _ netip.Addr, below netlink.Link) netlink.Link {
		return &netlink.IPVlan{LinkAttrs: attrs(below), Mode: netlink.IPVLAN_MODE_L3}
	}, false, "not supported (an ipvlan in mode l3", "up0 is an ipvlan in mode l3"},
	{"vxlan", func(h *testbed.Host, peer netip.Addr, below netlink.Link) netlink.Link {
		return &netlink.Vxlan{LinkAttrs: attrs(nil), VxlanId: 7, Group: peer.AsSlice(), SrcAddr: h.Addr.AsSlice(), VtepDevIndex: below.Attrs().Index, Port: 4789}
	}, false, "xdp/generic/copy", "up0 is a VXLAN tunnel, so"},
	{"dummy", func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
		return &netlink.Dummy{LinkAttrs: attrs(nil)}
	}, false, "not supported (a dummy: ", "up0 is a dummy"},
	{"ifb", func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
		return &netlink.Ifb{LinkAttrs: attrs(nil)}
	}, false, "not supported (an IFB: ", "up0 is an IFB"},
	{"tun", func(*testbed.Host, netip.Addr, netlink.Link) netlink.Link {
		return &netlink.Tuntap{LinkAttrs: attrs(nil), Mode: netlink.TUNTAP_MODE_TUN}
	}, false, "has no Ethernet address", "up0 is no Ethernet device"},
}

// TestDevice_kinds opens AF_XDP on devices that are no network cards: either reliable
// datagrams get through, or the error says why not.
func TestDevice_kinds(t *testing.T) {
	testenv.NeedRoot(t)
	for _, u := range uppers {
		t.Run(u.name, func(t *testing.T) {
			tb := hosttest.New(t, testbed.Config{})
			for i, h := range tb.Hosts {
				err := h.Do(func() error { return u.add(h, i, tb.Hosts[1-i].Addr) })
				if errors.Is(err, unix.EOPNOTSUPP) {
					t.Skip("this kernel has no such devices")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var note string
			_ = tb.Hosts[0].Do(func() (err error) { note, err = xdp.Note("up0"); return err })
			if !strings.HasPrefix(note, u.note) {
				t.Errorf("note %q, want %q", note, u.note)
			}
			u.try(t, tb)
		})
	}
}

// add makes the device on a host, which is in the network namespace of the thread.
func (u upper) add(h *testbed.Host, i int, peer netip.Addr) error {
	below, err := netlink.LinkByName(h.Dev)
	if err != nil {
		return err
	}
	l := u.make(h, peer, below)
	if err := netlink.LinkAdd(l); err != nil {
		return err
	}
	if l, err = netlink.LinkByName("up0"); err != nil {
		return err
	}
	if u.slave {
		addrs, err := netlink.AddrList(below, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, a := range addrs {
			err = errors.Join(err, netlink.AddrDel(below, &a))
		}
		err = errors.Join(err, netlink.LinkSetDown(below), netlink.LinkSetMaster(below, l), netlink.LinkSetUp(below))
		if err != nil {
			return err
		}
	}
	addr, err := netlink.ParseAddr(fmt.Sprintf("10.99.0.%d/24", i+1))
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(l, addr), netlink.LinkSetUp(l))
}

// try exchanges messages over the devices.
func (u upper) try(t *testing.T, tb *testbed.Testbed) {
	var ends [2]*host
	for i, h := range tb.Hosts {
		over := *h
		over.Dev = "up0"
		e, err := openHost(&over, device.Spec{Fabric: "xdp", Bulk: device.BulkFrames})
		if err != nil {
			if strings.HasPrefix(u.want, "xdp/") || !strings.Contains(err.Error(), u.want) {
				t.Errorf("%v; want %s", err, u.want)
			}
			return
		}
		t.Cleanup(func() { e.ctx.Close() })
		if carrier := e.ctx.Attr().Carrier; carrier != u.want {
			t.Fatalf("over %s, want %s", carrier, u.want)
		}
		ends[i] = e
	}
	for i := range ends {
		if err := ends[i].connect(ends[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	testSizes(t, ends[0], ends[1])
	testExchange(t, ends[0], ends[1], 100, 1)
}
