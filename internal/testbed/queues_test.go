package testbed

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestNew_queues(t *testing.T) {
	for _, c := range []Config{{Queues: 2}, {Queues: 3, Switch: Bridge}} {
		tb := open(t, c)
		for _, h := range tb.Hosts {
			err := h.Do(func() error {
				link, err := netlink.LinkByName(h.Dev)
				if err == nil && (link.Attrs().NumRxQueues != c.Queues || link.Attrs().NumTxQueues != c.Queues) {
					t.Errorf("%s has %d queues in and %d out, want %d", h.Name, link.Attrs().NumRxQueues, link.Attrs().NumTxQueues, c.Queues)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		exchange(t, tb.Hosts[0], tb.Hosts[1])
	}
}

func TestReceiveOn(t *testing.T) {
	tb := open(t, Config{Queues: 2})
	h := tb.Hosts[0]
	if err := h.ReceiveOn(1, 0); err != nil {
		t.Fatal(err)
	}
	// Where ip netns puts a command: a mount namespace with a sysfs of its own.
	show := func(queue string) string {
		out, err := h.Command("unshare", "-m", "sh", "-c",
			"mount -t sysfs sysfs /sys && cat /sys/class/net/"+h.Dev+"/queues/rx-"+queue+"/rps_cpus").CombinedOutput()
		if err != nil {
			t.Skipf("%v: %s", err, out)
		}
		return strings.TrimLeft(strings.TrimSpace(string(out)), "0,")
	}
	if got := show("1"); got != "1" {
		t.Errorf("queue 1 is received on %q, want 1", got)
	}
	if got := show("0"); got != "" {
		t.Errorf("queue 0 is received on %q", got)
	}
	if err := h.ReceiveOn(1); err != nil {
		t.Fatal(err)
	}
	if got := show("1"); got != "" {
		t.Errorf("queue 1 is still received on %q", got)
	}
	if err := h.ReceiveOn(2, 0); err == nil {
		t.Error("a queue that does not exist was taken")
	}
	exchange(t, tb.Hosts[1], h)
}

func TestCoreMask(t *testing.T) {
	for want, cores := range map[string][]int{
		"0": nil, "1": {0}, "c": {2, 3}, "80000000": {31}, "1,0": {32}, "20,0,10": {4, 69},
	} {
		if got, err := coreMask(cores); got != want || err != nil {
			t.Errorf("%v: %q, %v; want %q", cores, got, err, want)
		}
	}
	if _, err := coreMask([]int{-1}); err == nil {
		t.Error("core -1 was taken")
	}
}
