package route

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// follow handles what the kernel announces until the table is closed.
func (t *Table) follow() {
	defer close(t.followed)
	for {
		msgs, from, err := t.events.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS): // announcements were lost
			// An error of reload changes nothing: the next announcement
			// comes by and asks again.
			_ = t.reload()
		case err != nil:
			return // closed
		case from.Pid == nl.PidKernel:
			t.handle(msgs)
		}
	}
}

func (t *Table) handle(msgs []syscall.NetlinkMessage) {
	reload := false
	for _, m := range msgs {
		switch m.Header.Type {
		case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
			n, err := netlink.NeighDeserialize(m.Data)
			if err == nil && n.LinkIndex == t.index && (n.Family == netlink.FAMILY_V4 || n.Family == netlink.FAMILY_V6) {
				t.hear(*n, m.Header.Type == unix.RTM_DELNEIGH)
			}
		case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			reload = true
		}
	}
	if reload {
		_ = t.reroute()
	}
}

// validStates are the states in which the Ethernet address of a neighbour is
// known (NUD_VALID of the kernel), sureStates those in which it is known to be
// right.
const (
	sureStates  = unix.NUD_REACHABLE | unix.NUD_PERMANENT | unix.NUD_NOARP
	validStates = sureStates | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE
)

// hear notes what the kernel says about a neighbour.
func (t *Table) hear(k netlink.Neigh, deleted bool) {
	ip, ok := netip.AddrFromSlice(k.IP)
	if !ok {
		return
	}
	ip = ip.Unmap()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.neighbours[ip]
	switch {
	case !deleted:
		n.valid = k.State&validStates != 0 && len(k.HardwareAddr) == len(n.mac)
		n.sure = n.valid && k.State&sureStates != 0
		if n.valid {
			n.mac = inet.MAC(k.HardwareAddr)
		} else if k.State&unix.NUD_FAILED != 0 {
			n.failures++
		}
	case n.valid:
		// The kernel drops neighbours without traffic when its table is full,
		// and it does not see our traffic: what it knew is still good.
		n.sure = false
	}
	t.neighbours[ip] = n
	used := false
	for dst, d := range t.dests {
		if d.via != ip {
			continue
		}
		t.settle(dst, d)
		if !used && (deleted || k.State&unix.NUD_FAILED != 0) {
			t.probe(dst) // at once, and again whenever the kernel gives up
		}
		used = true
	}
	if deleted && !used {
		delete(t.neighbours, ip)
	}
	t.announce()
}

// reload asks the kernel for everything.
func (t *Table) reload() error {
	if err := t.rehear(); err != nil {
		return err
	}
	return t.reroute()
}

// rehear forgets all neighbours and asks the kernel for them.
func (t *Table) rehear() error {
	list, err := t.askNeighbours()
	if err != nil {
		return err
	}
	t.mu.Lock()
	for ip, n := range t.neighbours {
		n.valid, n.sure = false, false
		t.neighbours[ip] = n
	}
	t.mu.Unlock()
	for _, n := range list {
		t.hear(n, false)
	}
	return nil
}

// reroute asks the kernel for the state of the link and for all routes.
func (t *Table) reroute() error {
	t.routing.Lock()
	defer t.routing.Unlock()
	link, err := t.askLink()
	if err != nil {
		return err
	}
	t.mu.Lock()
	flipped := t.link.Up != link.Up
	t.link = link
	dsts := make([]netip.Addr, 0, len(t.dests))
	for dst := range t.dests {
		dsts = append(dsts, dst)
	}
	t.mu.Unlock()
	if flipped {
		// Behind a link that was down there may be another network: what was
		// known of its hosts is worth nothing, and the kernel forgets it too.
		if err := t.rehear(); err != nil {
			return err
		}
	}
	for _, dst := range dsts {
		t.revise(dst)
	}
	t.mu.Lock()
	t.announce()
	t.mu.Unlock()
	return nil
}

// revise asks for the route to a destination again. t.routing is held.
func (t *Table) revise(dst netip.Addr) {
	w, err := t.ask(dst)
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dests[dst]
	if d == nil { // its Resolve has failed meanwhile
		return
	}
	d.unroutable = err != nil
	if err == nil {
		d.way = w
	}
	t.settle(dst, d)
	if t.link.Up && err == nil && !t.neighbours[d.via].valid {
		t.probe(dst)
	}
}

// settle works out the next hop of d, which is for dst. t.mu is held.
func (t *Table) settle(dst netip.Addr, d *dest) {
	n := t.neighbours[d.via]
	hop := inet.Hop{MAC: n.mac, Source: d.source, MTU: t.link.MTU}
	if d.mtu != 0 {
		hop.MTU = min(hop.MTU, d.mtu)
	}
	if d.via != dst {
		hop.Via = d.via
	}
	ok := n.valid && t.link.Up && !d.unroutable
	if !t.link.Up || d.unroutable {
		hop.MTU = 0
	}
	if hop != d.hop || ok != d.ok {
		d.hop, d.ok = hop, ok
		t.generation.Add(1)
	}
}

// announce wakes all waiters for a change. t.mu is held.
func (t *Table) announce() {
	close(t.changed)
	t.changed = make(chan struct{})
}
