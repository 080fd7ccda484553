package xdp_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

// twoDevices is a host whose queues of two devices have the same slots, of which slot 0
// is in this process, and another one that echoes what arrives on either device.
type twoDevices struct {
	ways   []way
	queues []*xdp.Queue
	ends   []end // of slot 0
	mine   []*chat
	there  [2]*xdp.Queue
	stop   chan struct{}
	others sync.WaitGroup // who stop ends
	halt   func()         // ends them
}

func newTwoDevices(t *testing.T, mode bpf.Mode, slots int, late bool) *twoDevices {
	t.Helper()
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Second: true})
	here, there := tb.Hosts[0], tb.Hosts[1]
	d := &twoDevices{ways: []way{{here, there}, {here.Second, there.Second}}, stop: make(chan struct{})}
	d.halt = sync.OnceFunc(func() {
		close(d.stop)
		d.others.Wait()
	})
	d.open(t, mode, slots, late)
	d.sit(t, late)
	for i, w := range d.ways {
		c := queueConfig(slots, mode)
		c.Device = w.to.Dev
		d.there[i] = openQueue(t, w.to, c)
		var ends []end
		for n := range slots {
			ends = append(ends, end{sit(t, d.there[i], n), w.to})
		}
		d.others.Go(func() { echo(ends, w.from, d.stop, make(chan struct{})) })
	}
	t.Cleanup(d.halt) // before anything is closed
	return d
}

// open opens the queues of both devices, which differ.
func (d *twoDevices) open(t *testing.T, mode bpf.Mode, slots int, late bool) {
	t.Helper()
	first, second := queueConfig(slots, mode), queueConfig(slots, mode)
	first.TxDepth, first.Late = 64, late
	second.Device, second.RxDepth, second.Late = testbed.SecondDevice, 256, late
	err := d.ways[0].from.Do(func() (err error) {
		d.queues, err = xdp.OpenQueues([]xdp.QueueConfig{first, second})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, q := range slices.Backward(d.queues) {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// bind binds the sockets of one device after the other, as slots open them.
func (d *twoDevices) bind() (err error) {
	for _, q := range d.queues {
		for done := false; !done && err == nil; time.Sleep(time.Millisecond) {
			select {
			case <-d.stop:
				return nil
			default:
				done, err = q.Bind(func(slot int) bool { return slot > 0 })
			}
		}
	}
	return err
}

// sit opens the ports of slot 0. Where sockets are bound late that begins when the
// slots have been given out, as in a launcher.
func (d *twoDevices) sit(t *testing.T, late bool) {
	t.Helper()
	var slots []xdp.Slot
	for _, q := range d.queues {
		slots = append(slots, take(t, q, 0))
	}
	if late {
		t.Cleanup(d.halt)
		d.others.Go(func() { _ = d.ways[0].from.Do(d.bind) })
	}
	arena, ports, err := openSlots(slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range ports {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		arena.Close()
	})
	for i, p := range ports {
		d.ends = append(d.ends, end{p, d.ways[i].from})
		d.mine = append(d.mine, newChat(p, d.ways[i].from, d.ways[i].to, 0))
	}
}

// talk goes on until n more echoes have come on both devices.
func (d *twoDevices) talk(t *testing.T, n int) {
	t.Helper()
	until := []int{d.mine[0].back + n, d.mine[1].back + n}
	for d.mine[0].back < until[0] || d.mine[1].back < until[1] {
		for _, c := range d.mine {
			if err := c.round(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// settle ends all talk and checks that every frame to receive into is somewhere on its
// own device, but for lost ones at most.
func (d *twoDevices) settle(t *testing.T, lost int) {
	t.Helper()
	d.halt()
	for i, q := range d.queues {
		fill, received, held := q.Accounted()
		sum := fill + received
		for slot, n := range held {
			if sum += n; slot > 0 && n > 0 {
				t.Errorf("device %d: slot %d holds %d frames and has nobody", i, slot, n)
			}
		}
		if all := q.Frames(); sum > all || sum < all-lost {
			t.Errorf("device %d: %d frames in FILL rings, %d in RX rings, %v held, want %d together, or less by up to %d", i, fill, received, held, all, lost)
		}
		wantNoDrops(t, d.ends[i])
	}
}

// A process that has slots on two devices sends what lies in one pool on both. When it
// is killed the others go on on both, and its frames come back on both.
func TestQueues_killedOnTwoDevices(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		const slots = 4
		d := newTwoDevices(t, mode, slots, false)
		rng := newRand()
		for slot := 1; slot < slots; slot++ {
			var places []xdp.Slot
			for _, q := range d.queues {
				places = append(places, q.Slot(slot))
			}
			p := startSlots(t, places, d.ways, never)
			p.expect(t, "talks")
			d.talk(t, 100+rng.IntN(400))
			p.kill(t)
			d.talk(t, 100)
			for _, q := range d.queues {
				if err := q.Vacate(slot); err != nil {
					t.Fatal(err)
				}
			}
		}
		d.talk(t, 2000)
		d.settle(t, slots-1)
	})
}

// A frame of the pool goes out on either device and comes back to it.
func TestQueues_onePool(t *testing.T) {
	d := newTwoDevices(t, bpf.Generic, 1, false)
	d.talk(t, 1000)
	pool := d.ends[0].Pool()
	if pool != d.ends[1].Pool() {
		t.Fatal("there are two pools")
	}
	want := 0
	for _, q := range d.queues {
		s := q.Slot(0)
		want += s.ToSend()
	}
	for i, c := range d.mine { // what is looked at for a few buffers at a time only
		for c.away > 0 {
			if err := c.take(); err != nil {
				t.Fatal(err)
			}
		}
		d.ends[i].Port.(*xdp.Port).LookAtSent()
	}
	if pool.Free() != want {
		t.Errorf("%d frames are free, want %d", pool.Free(), want)
	}
	d.settle(t, 0)
}

// Where sockets are bound late those of one device are after the other.
func TestQueues_late(t *testing.T) {
	d := newTwoDevices(t, bpf.Generic, 2, true)
	d.talk(t, 500)
	d.settle(t, 0)
}

// The slots of a process are the same ones on all devices.
func TestQueues_differ(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Second: true})
	c := queueConfig(2, bpf.Generic)
	for name, spoil := range map[string]func(*xdp.QueueConfig){
		"slots":  func(c *xdp.QueueConfig) { c.Slots = 3 },
		"parts":  func(c *xdp.QueueConfig) { c.Part *= 2 },
		"frames": func(c *xdp.QueueConfig) { c.TxDepth = 1024 },
		"device": func(c *xdp.QueueConfig) { c.Device = "nosuch0" },
	} {
		other := c
		other.Device = testbed.SecondDevice
		spoil(&other)
		err := tb.Hosts[0].Do(func() error {
			all, err := xdp.OpenQueues([]xdp.QueueConfig{c, other})
			for _, q := range slices.Backward(all) {
				q.Close()
			}
			return err
		})
		if err == nil {
			t.Errorf("different %s were accepted", name)
		}
	}
	openQueue(t, tb.Hosts[0], c) // nothing of the above is left
}

// Two cards that steer: each has filters for its own address, a slot receives on either
// into frames of its own, and sends from one pool.
func TestQueueSets_cards(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Queues: 2, Second: true})
	var ends [2][2][2]end // by host, slot and device
	var cards [2]*xdp.FakeNIC
	for i, h := range tb.Hosts {
		cards = [2]*xdp.FakeNIC{{Size: 16}, {Size: 512, Picks: true}}
		var each []xdp.QueueSetConfig
		for at, dev := range []*testbed.Host{h, h.Second} {
			c := onCard(cards[at], dev)
			c.Device, c.TxDepth = dev.Dev, 256<<at
			each = append(each, c)
		}
		var lines []*xdp.QueueSet
		err := h.Do(func() (err error) {
			lines, err = xdp.OpenQueueSets(each)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, l := range slices.Backward(lines) {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		for slot := range 2 {
			arena, ports, err := openSlots([]xdp.Slot{inherited(t, lines[0].Slot(slot)), inherited(t, lines[1].Slot(slot))})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, p := range ports {
					p.Close()
				}
				arena.Close()
			})
			ends[i][slot] = [2]end{{ports[0], h}, {ports[1], h.Second}}
		}
	}
	for at, dev := range []*testbed.Host{tb.Hosts[1], tb.Hosts[1].Second} {
		if got := cards[at].Filters(); len(got) != 4 || got[0] != filter(unix.IPPROTO_UDP, dev.Addr, portBase, 0xffff, 0) {
			t.Errorf("%s has filters %v", dev.Dev, got)
		}
	}
	rng := newRand()
	for round := range 2000 { // more than there are frames of either kind
		slot, dev := rng.IntN(2), rng.IntN(2)
		from, to := ends[round%2][slot][dev], ends[1-round%2][slot][dev]
		frame := content(rng, from, to, 60+rng.IntN(8000))
		putHeaders(frame, from.host, to.host, uint16(portBase+slot), len(frame))
		send(from, build(rng, from, frame)...)
		if got := recv(to); !bytes.Equal(got, frame) {
			t.Fatalf("round %d: not what was sent", round)
		}
	}
	for _, host := range ends {
		wantNoDrops(t, host[0][0], host[0][1], host[1][0], host[1][1])
	}
}

// Where one of two cards cannot steer, the other one is left as it was.
func TestQueueSets_oneRefuses(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: 2, Second: true})
	h := tb.Hosts[0]
	good, bad := &xdp.FakeNIC{Size: 16}, &xdp.FakeNIC{Size: 16, Fixed: true}
	first, second := onCard(good, h), onCard(bad, h.Second)
	second.Device = h.Second.Dev
	err := h.Do(func() error {
		_, err := xdp.OpenQueueSets([]xdp.QueueSetConfig{first, second})
		return err
	})
	if !errors.Is(err, xdp.ErrNoSteering) || !strings.Contains(err.Error(), "xw1") || len(good.Filters()) > 0 || good.On {
		t.Errorf("%v; filters %v are left, filtering is on: %v", err, good.Filters(), good.On)
	}
	openQueueSet(t, h, first)
}
