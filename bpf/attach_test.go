package bpf_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/testbed"
)

func newTestbed(t *testing.T, c testbed.Config) *testbed.Testbed {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("XWARP_REQUIRE_XDP") == "1" {
			t.Fatal("XWARP_REQUIRE_XDP is set and network namespaces need root")
		}
		t.Skip("network namespaces need root")
	}
	tb, err := testbed.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

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
		tb := newTestbed(t, testbed.Config{MTU: test.mtu})
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
	tb := newTestbed(t, testbed.Config{Hosts: 2})
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
			tb := newTestbed(t, testbed.Config{})
			onDevice(t, tb.Hosts[0], func(ifindex int) error {
				if _, err := load(t).Attach(ifindex, first); err != nil {
					return err
				}
				before, _, err := bpf.Query(ifindex)
				if err != nil {
					return err
				}
				p := load(t)
				_, err = p.Attach(ifindex, second)
				var other *bpf.AttachedError
				if !errors.As(err, &other) || other.Attached != before || !strings.Contains(err.Error(), "bpftool link detach") {
					t.Errorf("%v on %v: %v", second, first, err)
				}
				if _, _, ok := p.Attachment(); ok {
					t.Errorf("%v on %v: attached after all", second, first)
				}
				return nil
			})
		}
	}
}

func TestAttach_twice(t *testing.T) {
	tb := newTestbed(t, testbed.Config{})
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
