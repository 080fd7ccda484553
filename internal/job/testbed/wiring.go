package testbed

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// plugCable joins two devices of hosts by one veth pair.
func (t *Testbed) plugCable(a, b *Host) error {
	nl, err := netlink.NewHandleAt(a.ns)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	defer nl.Close()
	return t.plug(nl, a.Dev, b, a.MAC)
}

// plug makes a veth pair with one end called name in the namespace of nl and
// the other one as device of h. Both are made where they belong: they never
// show in the namespace of the process.
func (t *Testbed) plug(nl *netlink.Handle, name string, h *Host, mac []byte) error {
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: name, MTU: t.MTU, HardwareAddr: mac, NumRxQueues: t.Queues, NumTxQueues: t.Queues})
	veth.PeerName = h.Dev
	veth.PeerNamespace = netlink.NsFd(h.ns)
	veth.PeerHardwareAddr = h.MAC
	if err := nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth pair %s to %s: %w", name, h.Name, err)
	}
	return nil
}

// plugPorts makes the namespace of a switch with a port for every host, all
// up. The caller closes both handles.
func (t *Testbed) plugPorts() (ns netns.NsHandle, nl *netlink.Handle, ports []netlink.Link, err error) {
	name := t.Name + "-sw"
	if ns, err = makeNetns(name); err != nil {
		return netns.None(), nil, nil, err
	}
	if nl, err = netlink.NewHandleAt(ns); err != nil {
		ns.Close()
		return netns.None(), nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, h := range t.Hosts {
		port, err := t.plugPort(nl, fmt.Sprintf("p%d", i), h)
		if err != nil {
			nl.Close()
			ns.Close()
			return netns.None(), nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		ports = append(ports, port)
	}
	return ns, nl, ports, nil
}

func (t *Testbed) plugPort(nl *netlink.Handle, name string, h *Host) (netlink.Link, error) {
	if err := t.plug(nl, name, h, nil); err != nil {
		return nil, err
	}
	port, err := nl.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", name, err)
	}
	if err := nl.LinkSetUp(port); err != nil {
		return nil, fmt.Errorf("port %s up: %w", name, err)
	}
	return port, nil
}

// plugBridge joins the hosts by a bridge.
func (t *Testbed) plugBridge() error {
	ns, nl, ports, err := t.plugPorts()
	if err != nil {
		return err
	}
	defer ns.Close()
	defer nl.Close()
	return t.addBridge(nl, ports)
}

// addBridge makes a bridge of ports.
func (t *Testbed) addBridge(nl *netlink.Handle, ports []netlink.Link) error {
	snooping := false // groups are flooded: membership takes effect at once
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", MTU: t.MTU}, MulticastSnooping: &snooping}
	if err := nl.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	for _, port := range ports {
		if err := nl.LinkSetMaster(port, bridge); err != nil {
			return fmt.Errorf("port %s on the bridge: %w", port.Attrs().Name, err)
		}
	}
	if err := nl.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("bridge up: %w", err)
	}
	return nil
}
