package device_test

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// openOnTwo opens both ends on hosts with two devices each, connected.
func openOnTwo(t *testing.T, bed testbed.Config, s device.Spec) (tb *testbed.Testbed, a, b *host) {
	t.Helper()
	needRoot(t)
	bed.Second = true
	tb, err := testbed.New(bed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tb.Close() })
	var ends [2]*host
	for i := range ends {
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
		name string
		bed  testbed.Config
		spec device.Spec
	}{
		{"udp", testbed.Config{}, device.Spec{Fabric: "udp"}},
		{"udp/1500/IPv6", testbed.Config{MTU: 1500, IPv6: true}, device.Spec{Fabric: "udp", IPv6: true}},
		{"generic", testbed.Config{}, device.Spec{Fabric: "xdp:generic"}},
		{"driver/1500", testbed.Config{MTU: 1500}, device.Spec{Fabric: "xdp:driver"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb, a, b := openOnTwo(t, c.bed, c.spec)
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
func TestSeveral_sleepers(t *testing.T) {
	const rounds = 100
	for _, fabric := range []string{"udp", "xdp:generic"} {
		t.Run(fabric, func(t *testing.T) {
			tb, a, b := openOnTwo(t, testbed.Config{}, device.Spec{Fabric: fabric, Poller: device.PollerConfig{NoSpin: true}})
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
	for _, fabric := range []string{"udp", "xdp:generic"} {
		t.Run(fabric, func(t *testing.T) {
			_, a, b := openOnTwo(t, testbed.Config{}, device.Spec{Fabric: fabric})
			for range 16 {
				a.recv()
				b.recv()
			}
			msg := make([]byte, 8)
			var wc [1]verbs.WC
			once := func() {
				a.send(msg)
				step(a, b, func() bool { return b.rcq.Poll(wc[:]) == 1 })
				b.recv()
				b.send(msg)
				step(a, b, func() bool { return a.rcq.Poll(wc[:]) == 1 })
				a.recv()
			}
			if n := testing.AllocsPerRun(200, once); n != 0 {
				t.Errorf("%v allocations per round trip, want none", n)
			}
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
		{device.Spec{Device: "a,b", Seat: "{}"}, "share a queue of one only"},
		{device.Spec{Device: "a,b", Fabric: "xdp", BulkQueue: 1}, "leave BulkQueue away"},
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
	needRoot(t)
	tb, err := testbed.New(testbed.Config{Second: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	h := tb.Hosts[0]
	for _, args := range [][]string{
		{"addr", "flush", "dev", h.Second.Dev}, {"addr", "add", "10.87.0.77/24", "dev", h.Second.Dev},
	} {
		if out, err := h.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
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
