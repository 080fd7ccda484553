package xdp_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// frameRoom is what is left free in front of the frames of these tests.
const frameRoom = 64

// frameOf puts a frame with n bytes of payload, the first of which is mark, for the
// other end into a buffer.
func (e end) frameOf(t *testing.T, to end, mark byte, n int) fabric.Desc {
	t.Helper()
	at, ok := e.Pool().GetToSend()
	if !ok {
		t.Fatal("no frame")
	}
	b := e.Arena().At(at+frameRoom, udpHeaderLen+n)
	putHeaders(b, e.host, to.host, portBase, len(b))
	clear(b[udpHeaderLen:])
	b[udpHeaderLen] = mark
	return fabric.Desc{Addr: at + frameRoom, Len: uint32(len(b))}
}

func inVLAN(vlan uint16) func(*mem.Arena) xdp.Config {
	return func(arena *mem.Arena) xdp.Config {
		c := config(arena)
		c.Steer.VLAN = vlan
		return c
	}
}

var ourDrivers = drivers[:2]

// TestVLAN_frames sends more frames than are tagged at a time, of one buffer and of
// several: they arrive as they were, in order.
func TestVLAN_frames(t *testing.T) {
	for _, d := range ourDrivers {
		t.Run(d.name, func(t *testing.T) {
			a, b := newWire(t, d, inVLAN(4094))
			if caps := a.Caps(); caps.VLAN != 4094 || caps.Headroom() != 4 {
				t.Errorf("%+v", caps)
			}
			var bufs []fabric.Desc
			var want [][]byte
			for i := range 100 {
				first := a.frameOf(t, b, byte(i), 100)
				from := len(bufs)
				if i%3 == 0 { // half of it in a second buffer
					rest, _ := a.Pool().GetToSend()
					clear(a.Arena().At(rest, 50))
					first.Len, first.Flags = first.Len-50, fabric.More
					bufs = append(bufs, first, fabric.Desc{Addr: rest, Len: 50})
				} else {
					bufs = append(bufs, first)
				}
				frame, _ := gather(a.Arena(), bufs[from:])
				want = append(want, frame)
			}
			send(a, bufs...)
			var in [fabric.MaxBufs]fabric.Desc
			for i := 0; i < len(want); {
				n := b.Recv(in[:])
				for got := in[:n]; len(got) > 0; i++ {
					frame, bufs := gather(b.Arena(), got)
					if !bytes.Equal(frame, want[i]) {
						t.Fatalf("frame %d: % x, want % x", i, frame, want[i])
					}
					got = got[bufs:]
				}
				for _, d := range in[:n] {
					b.Pool().Put(d.Addr)
				}
				b.Flush()
			}
		})
	}
}

// TestVLAN_others sends the same frame in a VLAN, in another one and in none. Only the
// first arrives where there is a port for the VLAN; the others are the kernel's.
func TestVLAN_others(t *testing.T) {
	for _, d := range ourDrivers {
		t.Run(d.name, func(t *testing.T) {
			tb := newTestbed(t, 1500)
			b := end{host: tb.Hosts[1]}
			var program *bpf.Program
			err := b.host.Do(func() (err error) {
				link, err := netlink.LinkByName(testbed.Device)
				if err != nil {
					return err
				}
				if program, err = bpf.Load(bpf.Config{PortBase: portBase, VLAN: 100}); err != nil {
					return err
				}
				t.Cleanup(func() { program.Close() })
				_, err = program.Attach(link.Attrs().Index, d.mode)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			c := config(newArena(t))
			c.Program = program
			b.Port = open(t, d, b.host, c)
			for i, vlan := range []uint16{0, 101, 100} {
				a := end{host: tb.Hosts[0]}
				a.Port = open(t, d, a.host, inVLAN(vlan)(newArena(t)))
				send(a, a.frameOf(t, b, byte(vlan), 100))
				if vlan == 100 {
					if got := recv(b); got[udpHeaderLen] != 100 {
						t.Errorf("a frame of VLAN %d arrived", got[udpHeaderLen])
					}
				} else {
					for { // the kernel has it
						if n, err := program.Counters(); err != nil || n.Passed > uint64(i) {
							break
						}
					}
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
			if n, err := program.Counters(); err != nil || n.Steered != 1 {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}

// TestVLAN_slot has the slots of shared queues in a VLAN.
func TestVLAN_slot(t *testing.T) {
	tb := newTestbed(t, 1500)
	b := end{host: tb.Hosts[1]}
	b.Port = open(t, ourDrivers[0], b.host, inVLAN(7)(newArena(t)))
	var q *xdp.Queue
	err := tb.Hosts[0].Do(func() (err error) {
		q, err = xdp.OpenQueue(xdp.QueueConfig{Device: testbed.Device, Slots: 2, Steer: bpf.Config{PortBase: portBase, VLAN: 7}, Part: 8 << 20})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	a := end{Port: sit(t, q, 0), host: tb.Hosts[0]}
	send(a, a.frameOf(t, b, 1, 100))
	if got := recv(b); got[udpHeaderLen] != 1 {
		t.Errorf("% x", got)
	}
	send(b, b.frameOf(t, a, 2, 100))
	if got := recv(a); got[udpHeaderLen] != 2 {
		t.Errorf("% x", got)
	}
}

// TestVLAN_refused is what there is not in a VLAN.
func TestVLAN_refused(t *testing.T) {
	h := newTestbed(t, 1500).Hosts[0]
	for name, c := range map[string]struct {
		open   func() error
		reason error
		text   string
	}{
		"asavie": {func() error {
			_, err := openAsavie(inVLAN(5)(newArena(t)))
			return err
		}, xdp.ErrUnsupported, "no tag of VLAN 5"},
		"lines": {func() error {
			_, err := xdp.OpenQueueSet(xdp.QueueSetConfig{Device: testbed.Device, Slots: 1, Steer: bpf.Config{PortBase: portBase, VLAN: 5}})
			return err
		}, xdp.ErrNoSteering, "VLAN 5"},
	} {
		if err := h.Do(c.open); !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
