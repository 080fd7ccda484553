package main

import (
	"os"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// Ranks encrypt what they send over everything that is encrypted: whole messages of all sizes.
func TestXrun_secure(t *testing.T) {
	testenv.NeedRoot(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"xdp":        {"--fabric", "xdp"},
		"xdp 1500":   {"--fabric", "xdp", "--mtu", "1500", "-x", "XWARP_BULK=kernel"},
		"xdp shared": {"--fabric", "xdp", "--queues", "shared", "-x", "XWARP_SHARED=0"},
		"udp":        {"--fabric", "udp"},
		"udp ud":     {"--fabric", "udp", "--transport", "ud"},
		"udp rc":     {"--fabric", "udp", "--transport", "rc"},
		"xdp rc":     {"--fabric", "xdp", "--transport", "rc"},
		"xdp hybrid": {"--fabric", "xdp", "--transport", "hybrid"},
		"xdp ud":     {"--fabric", "xdp", "--transport", "ud", "--ipv6"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, status := xrun(t, append(append([]string{"-n", "4", "--testbed", "2", "--secure", "--stats"}, args...), program, asRank)...)
			if status != 0 || strings.Count(out, "\n") != 4 || !strings.Contains(errOut, "+aes-gcm") || !strings.Contains(errOut, ", encrypted\n") {
				t.Errorf("status %d, %q, %s", status, out, errOut)
			}
		})
	}
}

// A program of another MPI is refused, and so is a rank that asks for encryption of a launcher
// that was not told.
func TestXrun_secureRefuses(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"start them with xrun --secure":  {"-env", "XWARP_SECURE", "1", program, asRank, ":", "-n", "1", program, asRank},
		"it is a program of another MPI": {"--secure", "sh", "-c", "echo cmd=init pmi_version=1 pmi_subversion=1 >&3; exec cat <&3"},
	} {
		if out, errOut, status := xrun(t, append([]string{"-n", "2"}, args...)...); status == 0 || !strings.Contains(errOut, want) {
			t.Errorf("%q: status %d, %q, %q; want %q", args, status, out, errOut, want)
		}
	}
}
