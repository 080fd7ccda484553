package bench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/verbs/device"
)

// Local is what the two ends of a test need not agree on. Its zero value is
// an end that is not pinned, on the device that leads to the other end.
type Local struct {
	// Device is the network interface to use. Default: the one that the
	// control connection goes through.
	Device string
	// Cores are the cores of the server and of the client end. Default: none,
	// the scheduler decides.
	Cores []int
	// Enter runs a function on a thread of its own, inside the network
	// namespace of the end. Default: a new thread in the present namespace.
	Enter func(fn func() error) error
	// Capture names a pcapng file to write, with what passes this end.
	// Default: none.
	Capture string
	// Hosts run a function inside further network namespaces of the server
	// end, each with a Device of the same name. Default: none. A test with
	// several peers over AF_XDP needs a device for each.
	Hosts []func(fn func() error) error
}

// enter runs fn on the thread of an end: locked, pinned, in its namespace.
func (l Local) enter(rank int, fn func() error) error {
	pinned := func() error {
		if rank < len(l.Cores) {
			if err := PinThread(l.Cores[rank]); err != nil {
				return err
			}
		}
		return fn()
	}
	if l.Enter != nil {
		return l.Enter(pinned)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		done <- pinned()
	}()
	return <-done
}

// End is one end of a test: what its Bench is opened on.
type End struct {
	Spec   Spec
	Server bool
	Pair   *Pair
	Device net.Interface
	Addr   netip.Addr // of Device: IPv6 if the control connection is, else IPv4
	Clock  mono.Real

	Capture string                     // pcapng file to write, or ""
	hosts   []func(func() error) error // see Local.Hosts
	notes   []string                   // see Session.Notes
}

// newEnd finds out what device the end uses.
func newEnd(conn net.Conn, p *Pair, l Local) (*End, error) {
	e := &End{Server: p.rank == 0, Pair: p, Capture: l.Capture, hosts: l.Hosts}
	if l.Device != "" {
		dev, addr, err := FindDevice(l.Device, overIPv6(conn))
		e.Device, e.Addr = dev, addr
		return e, err
	}
	tcp, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("control connection from %v, which is no TCP address", conn.LocalAddr())
	}
	e.Addr = tcp.AddrPort().Addr().Unmap()
	dev, err := deviceOf(e.Addr)
	if err != nil {
		return nil, err
	}
	e.Device = *dev
	return e, nil
}

// FindDevice returns a network interface of this network namespace and its
// address, of IPv4 or IPv6. Its error wraps ErrUsage, and lists the interfaces, when there is
// no such one.
func FindDevice(name string, ipv6 bool) (net.Interface, netip.Addr, error) {
	all, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, netip.Addr{}, err
	}
	var names []string
	for _, dev := range all {
		if dev.Name == name {
			addr, err := device.Address(name, ipv6)
			return dev, addr, err
		}
		names = append(names, dev.Name)
	}
	return net.Interface{}, netip.Addr{}, usagef("there is no device %s: there are %s (`xinfo` tells what they can do)", name, strings.Join(names, ", "))
}

// overIPv6 reports whether the control connection is, and so the test.
func overIPv6(conn net.Conn) bool {
	tcp, ok := conn.LocalAddr().(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr().Unmap().Is6()
}

// deviceOf returns the device whose first address of the family is addr.
func deviceOf(addr netip.Addr) (*net.Interface, error) {
	devs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, dev := range devs {
		if mine, err := device.Address(dev.Name, addr.Is6()); err == nil && mine == addr {
			return &dev, nil
		}
	}
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		return nil, fmt.Errorf("control connection from %v: %w", addr, inet.ErrLinkLocal)
	}
	return nil, fmt.Errorf("no device has the first address %v of its family: name it with --device", addr)
}

// checkMTU reports whether the device can carry what the test wants.
func (e *End) checkMTU() error {
	have := min(e.Device.MTU, maxMTU)
	switch s := &e.Spec; {
	case s.MTU > have:
		return usagef("MTU %d is more than device %s has (%d): set it with `ip link set %s mtu %d`, or ask for less", s.MTU, e.Device.Name, have, e.Device.Name, s.MTU)
	case s.MTU != have && s.inKernel():
		return usagef("kernel sockets use the MTU of device %s, which is %d and not %d: leave --mtu away, or set it with `ip link set %s mtu %d`", e.Device.Name, have, s.MTU, e.Device.Name, s.MTU)
	}
	return nil
}

// errOver ends a timed loop because the other end has given up: this one waits
// for what will not come.
var errOver = errors.New("the other end has given up")

// spin counts the turns of a loop that waits. Every thousandth turn it is
// worth looking at the control connection and the clock.
type spin uint32

func (s *spin) idle() bool { *s++; return *s&1023 == 0 }

// trips times the round trips of a burst, after those to warm up; trip makes the
// i-th of all.
func (e *End) trips(b Burst, rec *Recorder, trip func(i int) error) error {
	before := e.Clock.Now()
	for i := range b.Warmup + b.Iters {
		if err := trip(i); err != nil {
			return err
		}
		now := e.Clock.Now()
		if i >= b.Warmup {
			rec.Add(now.Sub(before))
		}
		before = now
	}
	return nil
}

// clocked returns how long it takes to move the messages of a burst, after those to
// warm up.
func (e *End) clocked(b Burst, move func(n int) error) (mono.Duration, error) {
	if err := move(b.Warmup); err != nil {
		return 0, err
	}
	start := e.Clock.Now()
	err := move(b.Iters)
	return e.Clock.Now().Sub(start), err
}

// stream records how long that takes, where all of them arrive.
func (e *End) stream(b Burst, rec *Recorder, move func(n int) error) error {
	elapsed, err := e.clocked(b, move)
	rec.Stream(b.Iters, elapsed)
	return err
}
