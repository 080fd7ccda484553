// Package route asks the kernel where packets for a destination go: the route,
// the neighbour, the MTU and the state of the link, all by netlink. It
// follows their changes while it runs. There is no ARP and no
// neighbour discovery of our own: the kernel is made to resolve a neighbour by
// sending it a datagram.
package route

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// Config describes a table. Link must be given.
type Config struct {
	// Link is the name of the device that all packets go through.
	Link string
	// Tries is how often a neighbour that does not answer is asked, each time
	// for as long as the kernel asks (3 seconds by default); default 3.
	Tries int
}

// Link is what a device is like.
type Link struct {
	Name  string
	Index int
	MAC   inet.MAC
	MTU   int        // largest IP packet in bytes
	Addr  netip.Addr // first IPv4 address; the zero Addr when there is none
	Addr6 netip.Addr // likewise IPv6, of those that last and are not of the link only
	Up    bool       // it is switched on and has a carrier
}

// Table is an [inet.Resolver] for the destinations behind one device. Its
// methods may be called by any goroutine.
type Table struct {
	config     Config
	kernel     *netlink.Handle
	events     *nl.NetlinkSocket
	prober     int // UDP socket
	prober6    int // likewise for IPv6, or -1 on a kernel without
	index      int // of the link
	followed   chan struct{}
	entering   sync.WaitGroup // goroutines of Follow
	generation atomic.Uint64

	// routing is held while a route is asked for and entered, so that
	// a later call also enters later; and while a group is joined.
	routing sync.Mutex
	groups  map[netip.Addr]int // how often each was joined

	mu         sync.Mutex // guards what follows, and is held for moments only
	changed    chan struct{}
	link       Link
	neighbours map[netip.Addr]neighbour
	dests      map[netip.Addr]*dest
}

var errClosed = errors.New("route: table was closed")

var _ inet.Resolver = (*Table)(nil)

// neighbour is what is known about a host on the link.
type neighbour struct {
	mac      inet.MAC
	valid    bool
	sure     bool   // the kernel has heard of it lately, or was told
	failures uint64 // how often the kernel has given up on it
}

// dest is a destination that was resolved.
type dest struct {
	way
	unroutable bool
	hop        inet.Hop
	ok         bool // hop can be used now
	full       bool // the kernel had no room to enter the neighbour when it was asked last
}

// Open makes a table for a device in the network namespace of the calling
// thread, where it stays for all users. The caller closes it. It starts one
// goroutine, which ends with Close.
func Open(c Config) (*Table, error) {
	c.Tries = cmp.Or(c.Tries, 3)
	t := &Table{
		config: c, prober: -1, prober6: -1, followed: make(chan struct{}), changed: make(chan struct{}),
		neighbours: map[netip.Addr]neighbour{}, dests: map[netip.Addr]*dest{}, groups: map[netip.Addr]int{},
	}
	if err := t.open(); err != nil {
		t.release()
		return nil, fmt.Errorf("route: %w", err)
	}
	go t.follow()
	return t, nil
}

func (t *Table) open() error {
	var err error
	// First the subscription, then the state: nothing falls between them.
	t.events, err = nl.Subscribe(unix.NETLINK_ROUTE,
		unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE,
		unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	if t.kernel, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	link, err := t.kernel.LinkByName(t.config.Link)
	if err != nil {
		return fmt.Errorf("device %q: %w; see ip link", t.config.Link, err)
	}
	t.index = link.Attrs().Index
	if err := t.reload(); err != nil {
		return err
	}
	if t.link.MAC == (inet.MAC{}) {
		return fmt.Errorf("device %q has no Ethernet address: choose an Ethernet device", t.config.Link)
	}
	return t.openProbers()
}

// openProbers opens the sockets that make the kernel resolve neighbours.
func (t *Table) openProbers() error {
	err := t.openProber(&t.prober, unix.AF_INET)
	if err == nil {
		err = t.openProber(&t.prober6, unix.AF_INET6)
	}
	if errors.Is(err, unix.EAFNOSUPPORT) { // no IPv6 here, and no address of it
		return nil
	}
	return err
}

func (t *Table) openProber(to *int, family int) (err error) {
	if *to, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("socket", err)
	}
	return os.NewSyscallError("SO_BINDTODEVICE", unix.BindToDevice(*to, t.config.Link))
}

// probe makes the kernel ask for the Ethernet address of the next hop to dst,
// by an empty datagram to the discard port (RFC 863). Whether it was sent does
// not matter: only the neighbour's answer does. But full says that the kernel has
// no room to enter a neighbour, which it reports only where errors were asked for (for IPv6 of none). t.mu is held.
func (t *Table) probe(dst netip.Addr) (full bool) {
	const discard = 9
	if dst.Is6() {
		_ = unix.Sendto(t.prober6, nil, 0, &unix.SockaddrInet6{Port: discard, Addr: dst.As16()})
		return false
	}
	_ = unix.SetsockoptInt(t.prober, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	err := unix.Sendto(t.prober, nil, 0, &unix.SockaddrInet4{Port: discard, Addr: dst.As4()})
	_ = unix.SetsockoptInt(t.prober, unix.IPPROTO_IP, unix.IP_RECVERR, 0) // what else would come stays away
	_, _ = unix.GetsockoptInt(t.prober, unix.SOL_SOCKET, unix.SO_ERROR)   // what came already would fail the next probe
	return errors.Is(err, unix.ENOBUFS)
}

// Close ends the subscription. Current answers as before, and Resolve fails.
func (t *Table) Close() error {
	t.events.Close()
	<-t.followed
	t.entering.Wait()
	t.routing.Lock()
	defer t.routing.Unlock()
	t.release()
	return nil
}

func (t *Table) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.events != nil {
		t.events.Close()
	}
	if t.kernel != nil {
		t.kernel.Close()
	}
	for _, fd := range []*int{&t.prober, &t.prober6} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// Link returns what the device is like now.
func (t *Table) Link() Link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.link
}

// Generation changes whenever an answer of Current may have changed.
func (t *Table) Generation() uint64 { return t.generation.Load() }

// Current returns the next hop of a destination that was resolved before or is
// followed, and false when there is none now; with an MTU of 0 unless only its Ethernet
// address is not known. It never waits for the kernel.
func (t *Table) Current(dst netip.Addr) (inet.Hop, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dests[dst]
	if d == nil {
		return inet.Hop{}, false
	}
	return d.hop, d.ok
}

// Follow enters a destination, as Resolve does, without waiting for the kernel or for
// its neighbour. A goroutine asks for the route.
func (t *Table) Follow(dst netip.Addr) {
	dst = dst.Unmap()
	t.mu.Lock()
	_, known := t.dests[dst]
	t.mu.Unlock()
	if known {
		return
	}
	t.entering.Go(func() {
		if d, _, err := t.enter(dst); err == nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			if !d.ok {
				t.probe(dst)
			}
		}
	})
}

// Doubt makes the kernel check whether the neighbour on the way to dst is still at its
// Ethernet address. That takes the kernel some seconds, and it begins with asking the
// Ethernet address that it has; so the neighbour is returned, for the caller to ask all.
func (t *Table) Doubt(dst netip.Addr) netip.Addr {
	dst = dst.Unmap()
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dests[dst]
	if d == nil || d.unroutable || !t.link.Up {
		return netip.Addr{}
	}
	t.probe(dst)
	return d.via
}

// Resolve finds the next hop to dst and follows it from then on. When the
// kernel does not know the neighbour, it waits for its answer; see
// Config.Tries. The error is an *[Error].
func (t *Table) Resolve(dst netip.Addr) (inet.Hop, error) {
	dst = dst.Unmap()
	d, isNew, err := t.enter(dst)
	if err != nil {
		return inet.Hop{}, err
	}
	hop, err := t.await(dst, d)
	if err != nil && isNew {
		t.mu.Lock()
		delete(t.dests, dst)
		t.mu.Unlock()
	}
	return hop, err
}

// enter asks for the route to dst and enters it.
func (t *Table) enter(dst netip.Addr) (d *dest, isNew bool, err error) {
	t.routing.Lock()
	defer t.routing.Unlock()
	select {
	case <-t.followed:
		return nil, false, errClosed
	default:
	}
	t.mu.Lock()
	d, up := t.dests[dst], t.link.Up
	t.mu.Unlock()
	if !up {
		return nil, false, &Error{Dst: dst, Link: t.config.Link, Reason: ErrLinkDown}
	}
	if d != nil && !d.unroutable { // its route is followed
		return d, false, nil
	}
	w, err := t.ask(dst)
	if err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d = t.dests[dst]; d == nil {
		d, isNew = &dest{}, true
		t.dests[dst] = d
	}
	d.way, d.unroutable = w, false
	t.settle(dst, d)
	return d, isNew, nil
}

// await waits until the neighbour on the way to d is known.
func (t *Table) await(dst netip.Addr, d *dest) (inet.Hop, error) {
	t.mu.Lock()
	hop, ok := d.hop, d.ok
	if ok && !t.neighbours[d.via].sure {
		t.probe(dst) // it will do; the kernel makes sure of it meanwhile
	}
	t.mu.Unlock()
	for try := 0; !ok; try++ {
		if try == t.config.Tries {
			return hop, t.noNeighbour(dst, d)
		}
		var err error
		if hop, ok, err = t.try(dst, d); err != nil {
			return hop, err
		}
	}
	return hop, nil
}

// noNeighbour says why the neighbour on the way to d is not known.
func (t *Table) noNeighbour(dst netip.Addr, d *dest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &Error{Dst: dst, Link: t.config.Link, Via: d.via, Reason: ErrNoNeighbour}
	if d.full {
		e.Reason = ErrTableFull
	}
	return e
}

// try makes the kernel ask the neighbour and waits for the outcome.
func (t *Table) try(dst netip.Addr, d *dest) (hop inet.Hop, ok bool, err error) {
	// The kernel gives up after 3 requests, 1 second each, and says so. This
	// is for when it is told to be more patient, or what it says got lost.
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	t.mu.Lock()
	failures := t.neighbours[d.via].failures
	d.full = t.probe(dst)
	t.mu.Unlock()
	for {
		t.mu.Lock()
		hop, ok = d.hop, d.ok
		changed, up, routable, failed := t.changed, t.link.Up, !d.unroutable, t.neighbours[d.via].failures != failures
		t.mu.Unlock()
		switch {
		case ok, up && routable && failed:
			return hop, ok, nil
		case !up:
			return hop, false, &Error{Dst: dst, Link: t.config.Link, Reason: ErrLinkDown}
		case !routable:
			return hop, false, &Error{Dst: dst, Link: t.config.Link, Reason: ErrNoRoute}
		}
		select {
		case <-changed:
		case <-timer.C:
			return hop, false, nil
		case <-t.followed:
			return hop, false, errClosed
		}
	}
}
