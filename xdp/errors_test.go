package xdp_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/xdp"
)

func TestOpen_badConfig(t *testing.T) {
	arena := mem.Over(make([]byte, 1<<20))
	good := xdp.Config{Device: "lo", Arena: arena, Steer: bpf.Config{PortBase: portBase}}
	for name, change := range map[string]func(*xdp.Config){
		"Device is empty":  func(c *xdp.Config) { c.Device = "" },
		"Arena is nil":     func(c *xdp.Config) { c.Arena = nil },
		"Queue is -1":      func(c *xdp.Config) { c.Queue = -1 },
		"Slot is -1":       func(c *xdp.Config) { c.Slot = -1 },
		"RxDepth is 100":   func(c *xdp.Config) { c.RxDepth = 100 },
		"RxDepth is 16":    func(c *xdp.Config) { c.RxDepth = 16 },
		"TxDepth is -4":    func(c *xdp.Config) { c.TxDepth = -4 },
		"TxDepth is 13107": func(c *xdp.Config) { c.TxDepth = 1 << 17 },
		"Frames is 2048":   func(c *xdp.Config) { c.Frames = 2048 },
		"zero-copy needs":  func(c *xdp.Config) { c.ZeroCopy, c.Mode = xdp.ZeroCopyMust, bpf.Generic },
	} {
		c := good
		change(&c)
		if _, err := xdp.Open(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q, got %v", name, err)
		}
	}
}

func TestOpen_unknownDevice(t *testing.T) {
	_, err := xdp.Open(xdp.Config{Device: "nosuchdev", Arena: mem.Over(make([]byte, 4096)), Steer: bpf.Config{PortBase: 1}})
	if e, ok := errors.AsType[*xdp.Error](err); !errors.Is(err, xdp.ErrNoDevice) || !ok || e.Device != "nosuchdev" || !strings.Contains(e.Remedy, "lo") {
		t.Errorf("%v", err)
	}
}

// Each case breaks one thing on a healthy host.
func TestOpen_unusableDevice(t *testing.T) {
	for _, test := range []struct {
		name   string
		mtu    int
		mode   bpf.Mode
		adjust func(link netlink.Link, c *xdp.Config) error
		want   error
		text   string
	}{
		{"down", 9000, bpf.Generic, func(l netlink.Link, _ *xdp.Config) error { return netlink.LinkSetDown(l) },
			xdp.ErrDeviceDown, "ip link set dev xw0 up"},
		{"no such queue", 9000, bpf.Generic, func(_ netlink.Link, c *xdp.Config) error { c.Queue = 7; return nil },
			xdp.ErrNoQueue, "queue 7 of 1"},
		{"MTU too small", 1500, bpf.Generic, func(_ netlink.Link, c *xdp.Config) error { c.MTU = 9000; return nil },
			xdp.ErrMTU, "ip link set dev xw0 mtu 9000"},
		{"MTU below IPv4's", 1500, bpf.Generic, func(_ netlink.Link, c *xdp.Config) error { c.MTU = 60; return nil },
			xdp.ErrMTU, "at least 68"},
		{"no zero-copy", 1500, bpf.Driver, func(_ netlink.Link, c *xdp.Config) error { c.ZeroCopy = xdp.ZeroCopyMust; return nil },
			xdp.ErrUnsupported, "zero-copy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newTestbed(t, test.mtu).Hosts[0]
			c := config(newArena(t))
			c.Mode = test.mode
			err := h.Do(func() error {
				link, err := netlink.LinkByName(h.Dev)
				if err != nil {
					return err
				}
				if err := test.adjust(link, &c); err != nil {
					return err
				}
				_, err = xdp.Open(c)
				return err
			})
			if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("want %q with %q, got %v", test.want, test.text, err)
			}
			if a, ok := attached(t, h); ok {
				t.Errorf("%v is left after Open failed", a)
			}
		})
	}
}

func TestOpen_asavieTakesOneBuffer(t *testing.T) {
	h := newTestbed(t, 9000).Hosts[0]
	c := config(newArena(t))
	c.MTU = 9000
	err := h.Do(func() error { _, err := openAsavie(c); return err })
	if !errors.Is(err, xdp.ErrMTU) {
		t.Errorf("%v", err)
	}
}

// Runs this test once more as nobody, inside a host.
func TestOpen_withoutPermission(t *testing.T) {
	if os.Getenv("XWARP_TEST_NOBODY") != "" {
		_, err := xdp.Open(config(newArena(t)))
		fmt.Println("is ErrPermission:", errors.Is(err, xdp.ErrPermission), err)
		r, err := xdp.Probe(testbed.Device)
		fmt.Println("usable:", r.Usable(), err)
		return
	}
	h := newTestbed(t, 9000).Hosts[0]
	const self = "/proc/self/exe" // nobody may not read the folder of the test binary
	cmd := exec.Command(self, "-test.run=^TestOpen_withoutPermission$")
	cmd.Env = append(os.Environ(), "XWARP_TEST_NOBODY=1")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := h.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"is ErrPermission: true", "CAP_NET_RAW", "usable: false <nil>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in: %s", want, out.String())
		}
	}
}
