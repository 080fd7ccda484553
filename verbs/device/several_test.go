package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// slotsOf opens queues of both devices of a host for two processes, which share them or
// have their own, and returns the second slots, as who inherits them has them.
func slotsOf(t *testing.T, h *testbed.Host, queues string, mode bpf.Mode, firstFD int) string {
	t.Helper()
	type slots interface {
		Slot(number int) xdp.Slot
		Close() error
	}
	var on []slots
	steer := bpf.Config{PortBase: device.BasePort}
	err := h.Do(func() error {
		switch queues {
		case "shared":
			c := xdp.QueueConfig{Device: h.Dev, Slots: 2, Steer: steer, Mode: mode}
			other := c
			other.Device, other.RxDepth, other.TxDepth = h.Second.Dev, 256, 512
			all, err := xdp.OpenQueues([]xdp.QueueConfig{c, other})
			for _, q := range all {
				on = append(on, q)
			}
			return err
		case "own":
			c := xdp.QueueSetConfig{Device: h.Dev, Slots: 2, Steer: steer, Mode: mode}
			other := c
			other.Device, other.RxDepth, other.TxDepth = h.Second.Dev, 256, 512
			all, err := xdp.OpenQueueSets([]xdp.QueueSetConfig{c, other})
			for _, l := range all {
				on = append(on, l)
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, q := range slices.Backward(on) {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	var lines []string
	for _, q := range on {
		s := q.Slot(1)
		lines = append(lines, s.At(firstFD).Text())
		for _, fd := range s.FDs() {
			if err := unix.Dup3(fd, firstFD, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			firstFD++
		}
	}
	return strings.Join(lines, "\n")
}

// highFD is above all descriptors that a test uses otherwise.
const highFD = 500

// openOnTwo opens both ends on hosts with two devices each, connected; on queues that
// another process could have opened for them, if queues says which.
func openOnTwo(t *testing.T, bed testbed.Config, s device.Spec, queues string) (tb *testbed.Testbed, a, b *host) {
	t.Helper()
	bed.Second = true
	tb = hosttest.New(t, bed)
	var ends [2]*host
	mode := bpf.Generic
	if s.Fabric == "xdp:driver" {
		mode = bpf.Driver
	}
	for i := range ends {
		s.Slot = slotsOf(t, tb.Hosts[i], queues, mode, highFD+100*i)
		var err error
		if ends[i], err = openHost(tb.Hosts[i], s); err != nil {
			t.Fatal(err)
		}
		ends[i].at = tb.Hosts[i]
		t.Cleanup(func() { ends[i].ctx.Close() })
	}
	for i := range ends {
		if err := ends[i].connect(ends[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	return tb, ends[0], ends[1]
}

// sentOn returns how many bytes have left the host of an end by a device so far.
func (e *host) sentOn(i int) (n uint64) {
	h := []*testbed.Host{e.at, e.at.Second}[i]
	err := h.Do(func() error {
		link, err := netlink.LinkByName(h.Dev)
		if err == nil {
			n = link.Attrs().Statistics.TxBytes
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return n
}

// Two hosts with two devices each talk on while one of the devices is down, be it theirs
// or the other's, and come back to the first.
func TestSeveral_oneGoesDown(t *testing.T) {
	for _, c := range []struct {
		name   string
		bed    testbed.Config
		spec   device.Spec
		queues string
	}{
		{"udp", testbed.Config{}, device.Spec{Fabric: "udp"}, ""},
		{"udp/1500/IPv6", testbed.Config{MTU: 1500, IPv6: true}, device.Spec{Fabric: "udp", IPv6: true}, ""},
		{"generic", testbed.Config{}, device.Spec{Fabric: "xdp:generic"}, ""},
		{"driver/1500", testbed.Config{MTU: 1500}, device.Spec{Fabric: "xdp:driver"}, ""},
		{"generic/shared", testbed.Config{Queues: 2}, device.Spec{Fabric: "xdp:generic"}, "shared"},
		{"driver/1500/shared", testbed.Config{MTU: 1500}, device.Spec{Fabric: "xdp:driver"}, "shared"},
		{"generic/own", testbed.Config{Queues: 5}, device.Spec{Fabric: "xdp:generic"}, "own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb, a, b := openOnTwo(t, c.bed, c.spec, c.queues)
			testSizes(t, a, b)
			testWrite(t, a, b)
			backOn(t, a, b, 0)
			for i, down := range []*testbed.Host{tb.Hosts[0], tb.Hosts[1], tb.Hosts[0].Second, tb.Hosts[1]} {
				path, other := 0, 1
				if down.Dev == testbed.SecondDevice {
					path, other = 1, 0
				}
				done := make(chan error, 1)
				go func() { done <- down.SetUp(false) }()
				for isDown := false; !isDown; {
					testExchange(t, a, b, 100, uint64(i)) // it goes down somewhere in here
					select {
					case err := <-done:
						if err != nil {
							t.Fatal(err)
						}
						isDown = true
					default:
					}
				}
				before := [2]uint64{a.sentOn(other), b.sentOn(other)}
				testExchange(t, a, b, 100, 99)
				testWrite(t, a, b)
				if a.sentOn(other) == before[0] || b.sentOn(other) < before[1]+1<<20 {
					t.Errorf("with device %d of %s down, little was sent on the other one: %d and %d bytes", path, down.Name, a.sentOn(other)-before[0], b.sentOn(other)-before[1])
				}
				if err := down.SetUp(true); err != nil {
					t.Fatal(err)
				}
				backOn(t, a, b, 0)
			}
			if s, _ := a.ctx.Stats(); s.PathsLeft < 2 || s.PeersLost != 0 {
				t.Errorf("%d times a path was left, %d peers lost", s.PathsLeft, s.PeersLost)
			}
		})
	}
}

// backOn exchanges messages until nearly all that both send goes on one device.
func backOn(t *testing.T, a, b *host, path int) {
	t.Helper()
	for seed := uint64(1000); ; seed++ {
		before := [2][2]uint64{{a.sentOn(0), a.sentOn(1)}, {b.sentOn(0), b.sentOn(1)}}
		testExchange(t, a, b, 50, seed)
		all := true
		for i, e := range []*host{a, b} {
			all = all && e.sentOn(path)-before[i][path] > 20*(e.sentOn(1-path)-before[i][1-path])
		}
		if all {
			return
		}
	}
}

// An end that sleeps wakes for what comes in on either device.
func TestSeveral_waiters(t *testing.T) {
	const rounds = 100
	for _, on := range []string{"udp", "xdp:generic", "xdp:generic shared"} {
		t.Run(on, func(t *testing.T) {
			fabric, queues, _ := strings.Cut(on, " ")
			tb, a, b := openOnTwo(t, testbed.Config{}, device.Spec{Fabric: fabric, Poller: device.PollerConfig{NoSpin: true}}, queues)
			for range 16 {
				a.recv()
				b.recv()
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 2 * rounds {
					b.wait()
					b.send(make([]byte, 8))
				}
				for b.qp.Stats.Sends < 2*rounds { // until a has acknowledged all
					b.ctx.Engine().Step()
				}
			}()
			for i := range 2 * rounds {
				if i == rounds {
					if err := tb.Hosts[1].SetUp(false); err != nil {
						t.Fatal(err)
					}
				}
				a.send(make([]byte, 8))
				a.wait()
			}
			for stop := false; !stop; {
				a.ctx.Engine().Step()
				select {
				case <-done:
					stop = true
				default:
				}
			}
			if s, _ := a.ctx.Stats(); s.PathsLeft == 0 {
				t.Error("no path was left")
			}
		})
	}
}

func TestAllocs_several(t *testing.T) {
	for _, on := range []string{"udp", "xdp:generic", "xdp:generic shared"} {
		t.Run(on, func(t *testing.T) {
			fabric, queues, _ := strings.Cut(on, " ")
			_, a, b := openOnTwo(t, testbed.Config{}, device.Spec{Fabric: fabric}, queues)
			roundTripAllocs(t, a, b)
		})
	}
}

func TestSeveral_badUse(t *testing.T) {
	for _, c := range []struct {
		spec device.Spec
		want string
	}{
		{device.Spec{Device: "eth1,"}, "different names"},
		{device.Spec{Device: "eth1,eth1"}, "different names"},
		{device.Spec{Device: "a,b,c,d,e"}, "give up to 4"},
		{device.Spec{Device: "a,b", Fabric: "shm"}, "use udp or xdp"},
		{device.Spec{Device: "a,b", Fabric: "tcp"}, "use udp or xdp"},
		{device.Spec{Device: "a,b", Fabric: "xdp:asavie"}, "use udp or xdp"},
		{device.Spec{Device: "a,b", RC: true}, "a connection (RC) stays on one"},
		{device.Spec{Device: "a,b", Fabric: "xdp", Bulk: device.BulkKernel}, "leave Bulk away"},
		{device.Spec{Device: "a,b", Capture: "x"}, "leave Capture away"},
		{device.Spec{Device: "nosuch0,nosuch1"}, `no network device "nosuch0"`},
		{device.Spec{Device: "lo,nosuch1"}, `no network device "nosuch1"`},
	} {
		ctx, err := device.Open(c.spec)
		if err == nil {
			ctx.Close()
			t.Errorf("%+v was opened", c.spec)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want a word on %q", c.spec, err, c.want)
		}
	}
}

// Two devices on one network are refused: the kernel would take one of them for both.
func TestSeveral_oneNetwork(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{Second: true})
	h := tb.Hosts[0]
	err := h.Do(func() error {
		link, err := netlink.LinkByName(h.Second.Dev)
		if err != nil {
			return err
		}
		addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
		for i := range addrs {
			err = errors.Join(err, netlink.AddrDel(link, &addrs[i]))
		}
		addr, errParse := netlink.ParseAddr("10.87.0.77/24")
		if err = errors.Join(err, errParse); err != nil {
			return err
		}
		return netlink.AddrAdd(link, addr)
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := openHost(h, device.Spec{Fabric: "udp"})
	if err == nil {
		e.ctx.Close()
		t.Fatal("opened")
	}
	if !strings.Contains(err.Error(), "xw0 (10.87.0.1/24) and xw1 (10.87.0.77/24) are on the same network") {
		t.Error(err)
	}
}
