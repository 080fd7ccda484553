package testbed

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/progress"
)

// Device is the name of the Ethernet device of every host, SecondDevice that of the
// second one where Config.Second asks for it.
const (
	Device       = "xw0"
	SecondDevice = "xw1"
)

// Host is one host of a testbed: a network namespace with loopback and one
// Ethernet device. Its fields are for reading, its methods may be called by
// any goroutine.
type Host struct {
	// Name is the name of the namespace, as in `ip netns exec Name tcpdump`.
	Name string
	// Dev is the name of the Ethernet device.
	Dev string
	// Addr is its address, of IPv4 or IPv6 as Config.IPv6 says, MAC its Ethernet
	// address.
	Addr netip.Addr
	MAC  net.HardwareAddr

	// Second is the host as it is seen through its second device, or nil: Dev, Addr and
	// MAC are of that, and so is what SetUp sets.
	Second *Host

	index   int
	network netip.Prefix // of Addr
	ns      netns.NsHandle
	// starter runs functions on one thread in the namespace that lives until
	// closed is.
	starter chan func()
	closed  chan struct{}
}

// Processor returns which of n processors is for process i of a host, if each of several hosts, at most n,
// has its share of these for itself, as if it were a machine: from 0 up.
func Processor(n, hosts, host, i int) int {
	first, end := n*host/hosts, n*(host+1)/hosts
	return first + i%(end-first)
}

func newHost(prefix string, i int, ipv6 bool) (*Host, error) {
	network := hostAddr(0, i, ipv6)
	h := &Host{
		Name: fmt.Sprintf("%s-h%d", prefix, i), Dev: Device,
		Addr: network.Addr(), MAC: hostMAC(0, i), index: i, network: network,
		starter: make(chan func()), closed: make(chan struct{}),
	}
	var err error
	if h.ns, err = makeNetns(h.Name); err != nil {
		return nil, err
	}
	ready := make(chan error, 2)
	go func() {
		ready <- h.Do(func() error {
			ready <- nil
			return h.serveStarts()
		})
	}()
	if err := <-ready; err != nil {
		h.ns.Close()
		return nil, err
	}
	return h, nil
}

// beside returns the host as it is seen through its second device.
func (h *Host) beside(ipv6 bool) *Host {
	b := *h
	b.network = hostAddr(1, h.index, ipv6)
	b.Dev, b.Addr, b.MAC = SecondDevice, b.network.Addr(), hostMAC(1, h.index)
	return &b
}

func (h *Host) serveStarts() error {
	progress.Restore()
	for {
		select {
		case start := <-h.starter:
			start()
		case <-h.closed:
			return nil
		}
	}
}

func (h *Host) close() {
	close(h.closed)
	h.ns.Close()
}

// Do runs fn on a thread of its own inside the host and returns its error.
// Sockets and files that fn opens stay in the host's namespace and may be used
// anywhere afterwards; goroutines that fn starts run outside. The thread ends
// with fn, so a process that fn starts with Pdeathsig dies with it: use
// Start.
func (h *Host) Do(fn func() error) error {
	return onNewThread(func() error {
		// A closed handle is -1, which the kernel refuses.
		if err := netns.Set(h.ns); err != nil {
			return fmt.Errorf("testbed: entering %s: %w", h.Name, err)
		}
		return fn()
	})
}

// DoIn is Host.Do inside the host with that Name, which may be one of another
// process.
func DoIn(name string, fn func() error) error {
	return onNewThread(func() error {
		ns, err := netns.GetFromName(name)
		if err != nil {
			return fmt.Errorf("testbed: host %s: %w", name, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("testbed: entering %s: %w", name, err)
		}
		return fn()
	})
}

// Start starts cmd inside the host, where it dies with the testbed at the latest. The thread that does it lives until the
// testbed is closed, so Pdeathsig means what one expects.
func (h *Host) Start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	select {
	case h.starter <- func() { done <- cmd.Start() }:
		return <-done
	case <-h.closed:
		return fmt.Errorf("testbed: %s was closed: cannot start %s", h.Name, cmd.Path)
	}
}

// configure gives the device its address and brings it up.
func (h *Host) configure(mtu int) error {
	nl, err := netlink.NewHandleAt(h.ns)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	defer nl.Close()
	link, err := nl.LinkByName(h.Dev)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", h.Name, h.Dev, err)
	}
	if err := nl.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("%s: MTU %d of %s: %w", h.Name, mtu, h.Dev, err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: h.Addr.AsSlice(), Mask: net.CIDRMask(h.network.Bits(), h.Addr.BitLen())}}
	if h.Addr.Is6() {
		if err := h.enableIPv6(); err != nil {
			return err
		}
		addr.Flags = unix.IFA_F_NODAD // no other host has it, and to find that out takes a second
	}
	if err := nl.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("%s: address %v of %s: %w", h.Name, h.Addr, h.Dev, err)
	}
	if err := nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("%s: %s up: %w", h.Name, h.Dev, err)
	}
	return nil
}

// SetUp sets the device up or down. Down, it takes the carrier from the other end
// of its cable, too.
func (h *Host) SetUp(up bool) error {
	return h.Do(func() error {
		link, err := netlink.LinkByName(h.Dev)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", h.Name, h.Dev, err)
		}
		if up {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
}

// enableIPv6 lets the device have addresses of IPv6: those that it is given, and none
// that it makes up or gets from routers.
func (h *Host) enableIPv6() error {
	return h.Do(func() error {
		for _, set := range []struct{ name, value string }{
			{"accept_ra", "0"}, {"router_solicitations", "0"}, {"accept_dad", "0"}, {"keep_addr_on_down", "1"}, {"disable_ipv6", "0"},
		} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+h.Dev+"/"+set.name, []byte(set.value), 0); err != nil {
				return fmt.Errorf("%s: IPv6 on %s: %w", h.Name, h.Dev, err)
			}
		}
		return nil
	})
}

// awaitLink waits until the kernel's link watcher has seen the carrier, so
// that programs that look at the operational state find the device up.
func (h *Host) awaitLink() error {
	const tries = 30_000 // counted, not timed: a process that cannot run has not waited
	nl, err := netlink.NewHandleAt(h.ns)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	defer nl.Close()
	for try := 1; ; try++ {
		link, err := nl.LinkByName(h.Dev)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", h.Name, h.Dev, err)
		}
		state := link.Attrs().OperState
		if state == netlink.OperUp {
			return nil
		}
		if try == tries {
			return fmt.Errorf("%s: %s is still %v", h.Name, h.Dev, state)
		}
		time.Sleep(time.Millisecond)
	}
}

// netnsPath returns where a namespace is mounted.
func netnsPath(name string) string { return filepath.Join(netnsDir, name) }

// makeNetns makes a named network namespace with loopback up and without
// IPv6, whose own chatter would disturb measurements.
func makeNetns(name string) (netns.NsHandle, error) {
	ns := netns.None()
	err := onNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making network namespace %s: %w", name, err)
		}
		for _, scope := range []string{"all", "default"} {
			// A kernel without IPv6 has no such file, and need not.
			_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/disable_ipv6", []byte("1"), 0)
		}
		if err := mountNetns(name); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("%s: lo: %w", name, err)
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return fmt.Errorf("%s: lo up: %w", name, err)
		}
		ns, err = netns.Get()
		return err
	})
	return ns, err
}
