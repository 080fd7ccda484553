package main

import (
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// A link that is down when ranks start, and comes up while they wait for it or not
// in time.
func TestXrun_lateLink(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{})
	set := func(up bool) {
		if err := tb.Hosts[1].SetUp(up); err != nil {
			t.Error(err)
		}
	}
	for _, args := range []string{"--fabric udp", "--fabric xdp", "--fabric xdp --queues shared", "--fabric xdp --transport rc"} {
		for _, late := range []bool{true, false} {
			set(false)
			wait, done := "20s", make(chan struct{})
			if late {
				go func() {
					defer close(done)
					time.Sleep(500 * time.Millisecond)
					set(true)
				}()
			} else {
				wait = "200ms"
				close(done)
			}
			_, errOut, status := xrun(t, append(strings.Fields(args), "-x", "XWARP_NET_WAIT="+wait, "-n", "2", "--device", testbed.Device,
				"--hosts", tb.Hosts[0].Name+","+tb.Hosts[1].Name, "--launcher-exec", launcher, self, asRank)...)
			<-done
			switch {
			case late && status != 0:
				t.Errorf("%s: status %d, %s", args, status, errOut)
			case !late && (status == 0 || !strings.Contains(errOut, "still so after 200ms, and XWARP_NET_WAIT=5m gives it more time")):
				t.Errorf("%s, and the link stays down: status %d, %s", args, status, errOut)
			}
		}
	}
}
