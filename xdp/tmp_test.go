package xdp_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

func BenchmarkTmp(b *testing.B) {
	for range 2 {
		for _, v := range []struct {
			name string
			d    driver
			busy time.Duration
			deferIRQ string
		}{{"generic", drivers[0], 0, "0"}, {"driver", drivers[1], 0, "0"}, {"busy", drivers[1], time.Microsecond, "0"}, {"busydefer", drivers[1], time.Microsecond, "100"}} {
			mk := func(b *testing.B) (end, end) {
				tb := testbedOf(b, testbed.Config{MTU: 9000})
				for _, h := range tb.Hosts {
					out, err := exec.Command("ip", "netns", "exec", h.Name, "sh", "-c", "echo "+v.deferIRQ+" > /sys/class/net/xw0/napi_defer_hard_irqs; echo 2000000 > /sys/class/net/xw0/gro_flush_timeout").CombinedOutput()
					if err != nil {
						b.Log(string(out), err)
					}
				}
				return wireOn(b, v.d, func(m *mem.Arena) xdp.Config {
					c := benchConfig(m)
					c.BusyPoll = v.busy
					return c
				}, tb)
			}
			b.Run("lat/"+v.name, func(b *testing.B) {
				a, z := mk(b)
				startSink(b, z, true)
				onThread(func() { pingPong(b, a, z) })
			})
			for _, i := range []int{0, 1, 3, 4} {
				s := shapes[i]
				b.Run(fmt.Sprintf("bw/%s/%s", v.name, s.name), func(b *testing.B) {
					a, z := mk(b)
					frames := startSink(b, z, false)
					onThread(func() { flood(b, a, z, s, frames) })
				})
			}
		}
	}
}
