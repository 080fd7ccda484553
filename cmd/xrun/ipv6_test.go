package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// Ranks talk over IPv6 on everything that carries them: whole messages of all sizes,
// between hosts that have no other address for one another.
func TestXrun_ipv6(t *testing.T) {
	testenv.NeedRoot(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"xdp":           {"--fabric", "xdp"},
		"xdp driver ud": {"--fabric", "xdp:driver", "--transport", "ud"},
		"xdp shared":    {"--fabric", "xdp", "--queues", "shared"},
		"xdp steered":   {"--fabric", "xdp", "--queues", "steered"},
		"xdp rc":        {"--fabric", "xdp", "--transport", "rc"},
		"udp":           {"--fabric", "udp"},
		"udp rc":        {"--fabric", "udp", "--transport", "rc"},
	} {
		t.Run(name, func(t *testing.T) {
			// Without addresses of IPv4 nothing else can have carried them.
			rank := []string{"sh", "-c", `ip -4 addr flush dev "$XWARP_DEVICE"; exec "$0" "$@"`, program, asRank}
			if _, err := exec.LookPath("ip"); err != nil {
				t.Log("with IPv4 beside it: there is no ip (Debian: iproute2)")
				rank = []string{program, asRank}
			}
			out, errOut, status := xrun(t, append(append([]string{"-n", "4", "--testbed", "2", "--ipv6"}, args...), rank...)...)
			if status != 0 || strings.Count(out, "\n") != 4 {
				t.Errorf("status %d, %q, %s", status, out, errOut)
			}
		})
	}
}
