package xdp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

func probe(t *testing.T, h *testbed.Host) (r xdp.Report, failed map[string]xdp.Finding) {
	t.Helper()
	err := h.Do(func() (err error) {
		r, err = xdp.Probe(h.Dev)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	failed = map[string]xdp.Finding{}
	for _, f := range r.Findings {
		if f.Needed && !f.OK {
			failed[f.Name] = f
		}
		if f.OK == (f.Remedy != "") {
			t.Errorf("%+v: a remedy belongs to what is missing, and only there", f)
		}
	}
	return r, failed
}

func TestProbe_healthy(t *testing.T) {
	r, failed := probe(t, newTestbed(t, 9000).Hosts[0])
	if len(failed) != 0 || !r.Usable() {
		t.Errorf("%+v", failed)
	}
	if r.Driver != "veth" || r.MTU != 9000 || r.Queues != 1 || !r.Up || !r.MultiBuffer || !r.NeedWakeup || r.ZeroCopy != xdp.ZeroCopyNo || r.Program != nil || r.QueuesMax < 1 {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestProbe_down(t *testing.T) {
	h := newTestbed(t, 9000).Hosts[0]
	err := h.Do(func() error {
		link, err := netlink.LinkByName(h.Dev)
		if err != nil {
			return err
		}
		return netlink.LinkSetDown(link)
	})
	if err != nil {
		t.Fatal(err)
	}
	r, failed := probe(t, h)
	if _, ok := failed["link"]; !ok || r.Usable() {
		t.Errorf("%+v", r)
	}
}

func TestProbe_inUse(t *testing.T) {
	h := newTestbed(t, 9000).Hosts[0]
	open(t, drivers[1], h, config(newArena(t)))
	r, failed := probe(t, h)
	if _, ok := failed["xdp program"]; !ok || r.Program == nil || r.Program.Name != "steer" || r.Program.Mode != bpf.Driver {
		t.Errorf("%+v", r.Program)
	}
	if f, ok := failed["socket"]; !ok || f.Detail != xdp.ErrQueueBusy.Error() {
		t.Errorf("%+v", f)
	}
}

// Trying finds out what runs, and leaves nothing on the device.
func TestTry(t *testing.T) {
	h := hosttest.New(t, testbed.Config{MTU: 1500, Queues: 2}).Hosts[0]
	for range 2 {
		err := h.Do(func() error {
			r, err := xdp.Try(h.Dev)
			if err != nil {
				return err
			}
			if len(r.Modes) != 2 || r.ZeroCopy != xdp.ZeroCopyNo || r.Program != nil || !r.Usable() {
				t.Errorf("%+v", r)
			}
			for _, f := range r.Findings {
				if f.Name == "zero-copy" && !strings.HasPrefix(f.Detail, "tried on queue 1: the driver has it not") {
					t.Errorf("%+v", f)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := config(newArena(t))
	c.Frames = 0
	open(t, drivers[1], h, c)
	err := h.Do(func() error {
		r, err := xdp.Try(h.Dev) // which must leave alone what somebody uses
		if err == nil && (r.Usable() || r.Program == nil) {
			t.Errorf("%+v", r)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestProbe_unknownDevice(t *testing.T) {
	if _, err := xdp.Probe("nosuchdev"); !errors.Is(err, xdp.ErrNoDevice) {
		t.Error(err)
	}
	if _, err := xdp.Try("nosuchdev"); !errors.Is(err, xdp.ErrNoDevice) {
		t.Error(err)
	}
}
