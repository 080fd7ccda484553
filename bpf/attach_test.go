package bpf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// onDevice runs fn inside a host with the index of its device.
func onDevice(t *testing.T, h *testbed.Host, fn func(ifindex int) error) {
	t.Helper()
	err := h.Do(func() error {
		link, err := netlink.LinkByName(h.Dev)
		if err != nil {
			return err
		}
		return fn(link.Attrs().Index)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T) *bpf.Program {
	t.Helper()
	p, err := bpf.Load(bpf.Config{PortBase: 7471})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestAttach_modes(t *testing.T) {
	for _, test := range []struct {
		mtu        int
		wish, want bpf.Mode
	}{
		{9000, bpf.Generic, bpf.Generic},
		{1500, bpf.Driver, bpf.Driver},
		{9000, bpf.Driver, bpf.Driver}, // multi-buffer
		{9000, bpf.Auto, bpf.Driver},
	} {
		tb := hosttest.New(t, testbed.Config{MTU: test.mtu})
		onDevice(t, tb.Hosts[0], func(ifindex int) error {
			p := load(t)
			if _, _, ok := p.Attachment(); ok {
				t.Error("attached before Attach")
			}
			mode, err := p.Attach(ifindex, test.wish)
			if err != nil || mode != test.want {
				t.Errorf("MTU %d, %v wanted: %v, %v", test.mtu, test.wish, mode, err)
			}
			if at, mode, ok := p.Attachment(); !ok || at != ifindex || mode != test.want {
				t.Errorf("attachment is %d, %v, %v", at, mode, ok)
			}
			a, ok, err := bpf.Query(ifindex)
			if err != nil || !ok || a.Name != "steer" || a.Mode != test.want || a.LinkID == 0 || a.ProgramID == 0 {
				t.Errorf("on the device: %v, %v, %v", a, ok, err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if a, ok, err := bpf.Query(ifindex); ok || err != nil {
				t.Errorf("after Close: %v, %v", a, err)
			}
			return nil
		})
	}
}

func TestAttach_loopbackHasNoDriverMode(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{Hosts: 2})
	err := tb.Hosts[0].Do(func() error {
		const loopback = 1
		if _, err := load(t).Attach(loopback, bpf.Driver); err == nil || !strings.Contains(err.Error(), "use generic mode") {
			t.Errorf("%v", err)
		}
		if _, err := load(t).Attach(99, bpf.Generic); err == nil || !strings.Contains(err.Error(), "no interface with index 99") {
			t.Errorf("%v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAttach_neverReplaces(t *testing.T) {
	for _, first := range []bpf.Mode{bpf.Generic, bpf.Driver} {
		for _, second := range []bpf.Mode{bpf.Generic, bpf.Driver, bpf.Auto} {
			tb := hosttest.New(t, testbed.Config{})
			onDevice(t, tb.Hosts[0], func(ifindex int) error {
				sw, err := bpf.LoadSwitch(first)
				if err != nil {
					return err
				}
				defer sw.Close()
				if err := sw.AddPort(ifindex, tb.Hosts[0].MAC); err != nil {
					return err
				}
				refused(t, ifindex, second, false)
				return nil
			})
		}
	}
}

// refused wants a program to be refused for the one that an interface has.
func refused(t *testing.T, ifindex int, mode bpf.Mode, ours bool) {
	t.Helper()
	before, _, err := bpf.Query(ifindex)
	if err != nil {
		t.Fatal(err)
	}
	p := load(t)
	_, err = p.Attach(ifindex, mode)
	if other, ok := errors.AsType[*bpf.AttachedError](err); !ok || other.Attached != before || other.Ours != ours || !strings.Contains(err.Error(), "bpftool link detach") {
		t.Errorf("%v: %v", mode, err)
	} else if self := fmt.Sprintf("stop process %d (", os.Getpid()); !strings.Contains(err.Error(), self) {
		t.Errorf("%v: want %q in: %v", mode, self, err)
	}
	if _, _, ok := p.Attachment(); ok {
		t.Errorf("%v: attached after all", mode)
	}
}

// Two jobs at once on one device: the second says so, but not at once, for the
// first may be about to end.
func TestAttach_neverReplacesOurs(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	onDevice(t, tb.Hosts[0], func(ifindex int) error {
		if _, err := load(t).Attach(ifindex, bpf.Generic); err != nil {
			return err
		}
		refused(t, ifindex, bpf.Auto, true)
		return nil
	})
}

// What a job that ends leaves for a moment is waited for.
func TestAttach_waitsForOurs(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Generic, bpf.Driver, bpf.Auto} {
		tb := hosttest.New(t, testbed.Config{})
		onDevice(t, tb.Hosts[0], func(ifindex int) error {
			first := load(t)
			if _, err := first.Attach(ifindex, bpf.Generic); err != nil {
				return err
			}
			closed := make(chan error)
			go func() {
				time.Sleep(100 * time.Millisecond) // the other one has tried by now, most often
				closed <- first.Close()
			}()
			if _, err := load(t).Attach(ifindex, mode); err != nil {
				t.Errorf("%v: %v", mode, err)
			}
			return <-closed
		})
	}
}

// A child between fork and exec has copies of all descriptors, and who lists
// the links of the machine has one of each. Neither keeps a program attached.
func TestClose_othersHaveTheLink(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	onDevice(t, tb.Hosts[0], func(ifindex int) error {
		p := load(t)
		if _, err := p.Attach(ifindex, bpf.Generic); err != nil {
			return err
		}
		a, _, err := bpf.Query(ifindex)
		if err != nil {
			return err
		}
		other, err := link.NewFromID(link.ID(a.LinkID))
		if err != nil {
			return err
		}
		defer other.Close()
		if err := p.Close(); err != nil {
			return err
		}
		if a, ok, err := bpf.Query(ifindex); ok || err != nil {
			t.Errorf("after Close: %v, %v", a, err)
		}
		return nil
	})
}

func TestAttach_twice(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	p := load(t)
	onDevice(t, tb.Hosts[0], func(ifindex int) error {
		_, err := p.Attach(ifindex, bpf.Generic)
		return err
	})
	onDevice(t, tb.Hosts[1], func(ifindex int) error {
		if _, err := p.Attach(ifindex, bpf.Generic); err == nil {
			t.Error("one program was attached to two interfaces")
		}
		return nil
	})
}

func TestAttached_readable(t *testing.T) {
	for _, test := range []struct {
		e    bpf.AttachedError
		want string
	}{
		{bpf.AttachedError{Device: "eth1", Attached: bpf.Attached{ProgramID: 7, Name: "fw", Mode: bpf.Generic}},
			"ip link set dev eth1 xdpgeneric off"},
		{bpf.AttachedError{Device: "eth1", Attached: bpf.Attached{ProgramID: 7, Name: "fw", Mode: bpf.Driver}},
			"ip link set dev eth1 xdpdrv off"},
		{bpf.AttachedError{Device: "eth1", Attached: bpf.Attached{ProgramID: 7, Name: "fw", Mode: bpf.Driver, LinkID: 3}},
			"bpftool link detach id 3"},
	} {
		for _, want := range []string{test.want, "eth1", `"fw"`, "id 7", test.e.Mode.String()} {
			if !strings.Contains(test.e.Error(), want) {
				t.Errorf("no %q in %q", want, test.e.Error())
			}
		}
		b, err := json.Marshal(test.e.Attached)
		if err != nil || !strings.Contains(string(b), `"mode":"`+test.e.Mode.String()+`"`) {
			t.Errorf("%s, %v", b, err)
		}
	}
}
