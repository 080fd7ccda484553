package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/testbed"
)

// A link that is down when ranks start, and comes up while they wait for it or not
// in time.
func TestXrun_lateLink(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("XWARP_REQUIRE_XDP") == "1" {
			t.Fatal("XWARP_REQUIRE_XDP is set and this is not root")
		}
		t.Skip("needs root to make hosts")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip to set links up and down")
	}
	tb, err := testbed.New(testbed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	set := func(state string) {
		if out, err := exec.Command("ip", "-n", tb.Hosts[1].Name, "link", "set", testbed.Device, state).CombinedOutput(); err != nil {
			t.Errorf("%v, %s", err, out)
		}
	}
	for _, args := range []string{"--fabric udp", "--fabric xdp", "--fabric xdp --queues shared", "--fabric xdp --transport rc"} {
		for _, late := range []bool{true, false} {
			set("down")
			wait, done := "20s", make(chan struct{})
			if late {
				go func() {
					defer close(done)
					time.Sleep(500 * time.Millisecond)
					set("up")
				}()
			} else {
				wait = "200ms"
				close(done)
			}
			_, errOut, status := xrun(t, append(strings.Fields(args), "-x", "XWARP_NET_WAIT="+wait, "-n", "2", "--device", testbed.Device,
				"--hosts", tb.Hosts[0].Name+","+tb.Hosts[1].Name, "--launcher-exec", "ip netns exec", self, asRank)...)
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
