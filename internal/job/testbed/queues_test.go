package testbed

import (
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
