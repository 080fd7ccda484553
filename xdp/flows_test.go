package xdp_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

// onCard returns the configuration of two slots behind a network card.
func onCard(card *xdp.FakeNIC, h *testbed.Host) xdp.QueueSetConfig {
	c := setConfig(2, 2, bpf.Driver, testbed.Cable)
	c.Steer.Addr = h.Addr
	c.Steer.TCPBase, c.Steer.TCPPorts = xdp.TCPBlock(2)
	card.Use(&c)
	return c
}

func filter(protocol uint8, addr netip.Addr, port, mask uint16, queue int) xdp.Filter {
	return xdp.Filter{Protocol: protocol, Addr: addr, Port: port, Mask: mask, Queue: queue}
}

// On a card a slot has one queue, and the card gets filters for it, of which
// nothing is left. (Here the card is made up, and a veth in driver mode does what
// it would do between slots of the same number.)
func TestQueueSet_card(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Queues: 2})
	var hosts [2][2]end
	var sets [2]*xdp.QueueSet
	var kept xdp.Flows
	cards := [2]*xdp.FakeNIC{{Size: 16}, {Size: 512, Picks: true}}
	for i, h := range tb.Hosts {
		c := onCard(cards[i], h)
		if i == 0 {
			c.Keep = func(f xdp.Flows) error {
				if len(cards[0].Filters()) > 0 || cards[0].On {
					t.Error("it is changed before it is noted")
				}
				kept = f
				return nil
			}
		}
		sets[i] = openQueueSet(t, h, c)
		for n := range 2 {
			p, err := sitAlone(t, sets[i].Slot(n))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := p.(*xdp.Port); !ok {
				t.Errorf("a slot with one queue is a %T", p)
			}
			defer p.Close()
			hosts[i][n] = end{p, h}
		}
	}
	a := tb.Hosts[0].Addr
	want := []xdp.Filter{
		filter(unix.IPPROTO_UDP, a, portBase, 0xffff, 0), filter(unix.IPPROTO_UDP, a, portBase+1, 0xffff, 1),
		filter(unix.IPPROTO_TCP, a, 61440, 0xf800, 0), filter(unix.IPPROTO_TCP, a, 63488, 0xf800, 1),
	}
	if got := cards[0].Filters(); !equalFilters(got, want) || !equalFilters(kept.Filters, want) || !kept.Off || !cards[0].On {
		t.Errorf("got %v, noted %+v, want %v", got, kept, want)
	}
	rng := newRand()
	for round := range 50 {
		slot := round / 2 % 2
		from, to := hosts[round%2][slot], hosts[1-round%2][slot]
		frame := content(rng, from, to, 60+rng.IntN(8000))
		putHeaders(frame, from.host, to.host, uint16(portBase+slot), len(frame))
		send(from, build(rng, from, frame)...)
		if got := recv(to); !bytes.Equal(got, frame) {
			t.Fatalf("round %d: not what was sent", round)
		}
	}
	if err := cards[1].Insert(filter(unix.IPPROTO_UDP, a, 53, 0xffff, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range sets {
		if err := sets[i].Close(); err != nil {
			t.Error(err)
		}
		if left := cards[i].Filters(); len(left) != i || cards[i].On != (i == 1) { // somebody else needs that of host 1
			t.Errorf("host %d: left %v, filtering is on: %v", i, left, cards[i].On)
		}
	}
}

func equalFilters(a, b []xdp.Filter) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A card that cannot steer says why, and is left as it was.
func TestQueueSet_cardRefuses(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: 2})
	noRanges := func(f xdp.Filter) error {
		if f.Mask != 0xffff {
			return unix.EINVAL
		}
		return nil
	}
	for name, c := range map[string]struct {
		card  xdp.FakeNIC
		spoil func(*xdp.QueueSetConfig)
		want  string
	}{
		"few queues":    {xdp.FakeNIC{Size: 9, On: true}, func(c *xdp.QueueSetConfig) { c.Slots, c.PeerSlots = 3, 3 }, "3 queues are needed, it has 2): add queues (ethtool -L xw0 combined 3)"},
		"off for good":  {xdp.FakeNIC{Size: 9, Fixed: true}, nil, "n-tuple filters are switched off"},
		"small table":   {xdp.FakeNIC{Size: 1, On: true}, nil, "all 1 places"},
		"no such flow":  {xdp.FakeNIC{Size: 9, On: true, Refuse: func(xdp.Filter) error { return unix.EOPNOTSUPP }}, nil, "flow-type udp4 dst-ip 10.87.0.1 dst-port 7471"},
		"TCP is needed": {xdp.FakeNIC{Size: 9, On: true, Refuse: noRanges}, func(c *xdp.QueueSetConfig) { c.NeedTCP = true }, "flow-type tcp4"},
	} {
		h := tb.Hosts[0]
		config := onCard(&c.card, h)
		if c.spoil != nil {
			c.spoil(&config)
		}
		on := c.card.On
		err := h.Do(func() error {
			l, err := xdp.OpenQueueSet(config)
			if err == nil {
				l.Close()
			}
			return err
		})
		if !errors.Is(err, xdp.ErrNoSteering) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if left := c.card.Filters(); len(left) > 0 || c.card.On != on {
			t.Errorf("%s: left %v, filtering is on: %v", name, left, c.card.On)
		}
	}
	theirs := filter(unix.IPPROTO_UDP, tb.Hosts[0].Addr, portBase, 0xffff, 0) // as ours will be
	taken := &xdp.FakeNIC{Size: 9, On: true}
	if err := taken.Insert(theirs); err != nil {
		t.Fatal(err)
	}
	err := tb.Hosts[0].Do(func() error {
		_, err := xdp.OpenQueueSet(onCard(taken, tb.Hosts[0]))
		return err
	})
	if left := taken.Filters(); !errors.Is(err, unix.EEXIST) || !errors.Is(err, xdp.ErrNoSteering) || len(left) != 1 {
		t.Errorf("somebody else's filter: %v, left %v", err, left)
	}
	card := &xdp.FakeNIC{Size: 9, On: true, Refuse: noRanges}
	l := openQueueSet(t, tb.Hosts[0], onCard(card, tb.Hosts[0]))
	if s := l.Slot(1); s.TCPPorts != 0 || len(card.Filters()) != 2 {
		t.Errorf("without filters for TCP: %d TCP ports, filters %v", s.TCPPorts, card.Filters())
	}
}

// A driver without filters is told from a card that has them, by the kernel.
func TestFlows_removeFromDeviceWithoutFilters(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500})
	err := tb.Hosts[0].Do(func() error {
		gone := xdp.Flows{Device: "none", Ifindex: 99}
		if n, err := gone.Remove(); n != 0 || err != nil {
			t.Errorf("a device that is gone: %d, %v", n, err)
		}
		f := xdp.Flows{Device: testbed.Device, Ifindex: indexOf(t, testbed.Device)}
		_, err := f.Remove()
		return err
	})
	if !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("a veth: %v", err)
	}
}

func indexOf(t *testing.T, device string) int {
	t.Helper()
	link, err := net.InterfaceByName(device)
	if err != nil {
		t.Fatal(err)
	}
	return link.Index
}
