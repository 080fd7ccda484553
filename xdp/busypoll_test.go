package xdp_test

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

// checkBusyPoll checks what the kernel was asked for on sockets.
func checkBusyPoll(t *testing.T, sockets []int) {
	t.Helper()
	for _, fd := range sockets {
		for opt, want := range map[int]int{unix.SO_PREFER_BUSY_POLL: 1, unix.SO_BUSY_POLL: 1} { // the budget it does not tell
			if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, opt); got != want || err != nil {
				t.Errorf("socket option %d is %d (%v), want %d", opt, got, err, want)
			}
		}
	}
}

// saysBusyPoll reports whether a port says of busy polling what the kernel says.
func saysBusyPoll(t *testing.T, p fabric.Port, sockets []int) {
	t.Helper()
	want := "no busy polling in this driver"
	for _, fd := range sockets {
		if id, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID); err != nil {
			t.Fatal(err)
		} else if id != 0 {
			want = "busy polling"
		}
	}
	if got := p.Caps().BusyPoll; got != want {
		t.Errorf("the port says %q, want %q", got, want)
	}
}

// Frames arrive when the port polls for them, on one queue and on several.
func TestBusyPoll_framesArrive(t *testing.T) {
	for _, d := range drivers[:2] {
		for _, queues := range []int{1, 3} {
			t.Run(d.name, func(t *testing.T) {
				a, b := wireOn(t, d, func(arena *mem.Arena) xdp.Config {
					c := config(arena)
					c.BusyPoll, c.RxDepth = true, 128
					return c
				}, hosttest.New(t, testbed.Config{MTU: d.mtu, Queues: queues}))
				frame := func(size int) {
					want := content(newRand(), a, b, size)
					send(a, build(newRand(), a, want)...)
					if got := recv(b); string(got) != string(want) {
						t.Errorf("a frame of %d bytes is not the same", size)
					}
				}
				frame(64)
				sockets := xdp.PollBusily(b.Port)
				xdp.PollBusily(a.Port)
				if len(sockets) != queues {
					t.Errorf("%d sockets on %d queues", len(sockets), queues)
				}
				checkBusyPoll(t, sockets)
				for range 100 {
					frame(5000)
				}
				const empty = 10
				before := b.Stats().Wakeups
				for range empty {
					b.Recv(make([]fabric.Desc, fabric.MaxBufs))
				}
				if n := b.Stats().Wakeups - before; n != empty {
					t.Errorf("it has polled %d times in %d calls that found nothing", n, empty)
				}
			})
		}
	}
}

// What the port says of itself is what the kernel says, after the first frame at the latest.
func TestBusyPoll_isSaid(t *testing.T) {
	a, b := newWire(t, drivers[1], func(arena *mem.Arena) xdp.Config {
		c := config(arena)
		c.BusyPoll = true
		return c
	})
	want := content(newRand(), a, b, 64)
	send(a, build(newRand(), a, want)...)
	recv(b)
	saysBusyPoll(t, b, []int{b.FD()})
	if c := (fabric.PortCaps{Device: "eth1", Queues: 1, MaxBufs: 1, BusyPoll: "busy polling"}); c.Detail() != "eth1, 1 queue, one buffer per frame, busy polling" {
		t.Error(c.Detail())
	}
}

// The sockets of slots are asked by who has the privileges.
func TestBusyPoll_slots(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: 2})
	err := tb.Hosts[0].Do(func() error {
		q, err := xdp.OpenQueue(xdp.QueueConfig{Device: testbed.Device, Slots: 2, BusyPoll: true, Steer: bpf.Config{PortBase: portBase}})
		if err != nil {
			return err
		}
		defer q.Close()
		for _, queue := range q.Slot(1).Queues {
			checkBusyPoll(t, []int{queue.SocketFD})
		}
		if !q.Slot(1).BusyPoll {
			t.Error("the slot does not know")
		}
		return nil
	})
	if err == nil {
		err = tb.Hosts[1].Do(func() error {
			l, err := xdp.OpenQueueSet(xdp.QueueSetConfig{Device: testbed.Device, Slots: 1, BusyPoll: true, Steer: bpf.Config{PortBase: portBase}})
			if err != nil {
				return err
			}
			defer l.Close()
			for _, pair := range l.Slot(0).Pairs {
				checkBusyPoll(t, []int{pair.ReceiveFD, pair.SendFD})
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Settings are set and set back in the network namespace of the caller; what others have
// set since stays.
func TestNAPI(t *testing.T) {
	tb := newTestbed(t, 1500)
	at := xdp.NAPI{Device: testbed.Device}
	err := tb.Hosts[0].Do(func() error { // the other one has a device of the same name
		at.Ifindex = indexOf(t, testbed.Device)
		if n, err := xdp.NAPIOf(testbed.Device, bpf.Driver); err == nil && n != at {
			t.Errorf("a new device has %+v", n)
		} else if err != nil && !errors.Is(err, xdp.ErrNoBusyPoll) {
			return err
		}
		return at.Busy().Set()
	})
	if err != nil {
		t.Fatal(err)
	}
	now := func(host int) (n xdp.NAPI) {
		err := tb.Hosts[host].Do(func() (err error) {
			n, err = xdp.NAPI{Device: testbed.Device, Ifindex: at.Ifindex}.Now()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := []xdp.NAPI{now(0), now(1)}; !slices.Equal(got, []xdp.NAPI{at.Busy(), at}) {
		t.Fatalf("after setting: %+v", got)
	}
	others := at.Busy()
	others.GROFlushTimeout = 5
	for _, c := range []struct {
		set, want xdp.NAPI
		did       bool
	}{{at.Busy(), at, true}, {at, at, false}, {others, xdp.NAPI{Device: at.Device, Ifindex: at.Ifindex, GROFlushTimeout: 5}, true}} {
		err := tb.Hosts[0].Do(func() error {
			if err := c.set.Set(); err != nil {
				return err
			}
			if did, err := at.Restore(); did != c.did || err != nil {
				t.Errorf("%+v: %v, %v", c.set, did, err)
			}
			return nil
		})
		if got := now(0); got != c.want || err != nil {
			t.Errorf("%+v became %+v (%v), want %+v", c.set, got, err, c.want)
		}
	}
	gone := xdp.NAPI{Device: "gone0"}
	if did, err := gone.Restore(); did || err != nil {
		t.Errorf("a device that is gone: %v, %v", did, err)
	}
}
