package xdp_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/xdp"
)

// TestQueueCounter: queues that are added and taken away while it is open are counted,
// from whatever network namespace it is asked.
func TestQueueCounter(t *testing.T) {
	if _, err := exec.LookPath("ethtool"); err != nil {
		t.Skip("needs ethtool: apt-get install ethtool")
	}
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: 4})
	h := tb.Hosts[0]
	var q *xdp.QueueCounter
	if err := h.Do(func() (err error) {
		q, err = xdp.NewQueueCounter(h.Dev)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for _, n := range []int{2, 4, 1} {
		if out, err := hosttest.Output(h, "ethtool", "-L", h.Dev, "rx", fmt.Sprint(n)); err != nil {
			t.Fatalf("ethtool: %v: %s", err, out)
		}
		if got := q.Count(); got != n {
			t.Errorf("%d queues; want %d", got, n)
		}
	}
	if err := h.Do(func() error { _, err := xdp.NewQueueCounter("none0"); return err }); err == nil {
		t.Error("no error for a device that is not there")
	}
}
