package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Every layer that has datagrams or streams is measured over IPv6, too.
func TestRun_ipv6(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("XWARP_REQUIRE_XDP") == "1" {
			t.Fatal("XWARP_REQUIRE_XDP is set and this is not root")
		}
		t.Skip("needs root for a testbed")
	}
	for _, line := range []string{
		"send_lat --fabric xdp", "send_bw --fabric xdp --transport ud", "send_lat --fabric xdp --transport rc",
		"mpi_lat --fabric xdp", "write_lat --fabric udp", "mpi_bw --fabric tcp --transport rc", "raw_lat --fabric udp",
	} {
		args := append(strings.Fields(line), "--testbed", "--ipv6", "--json", "--size", "1024", "--iters", "3", "--warmup", "1")
		out, errs, code := xperf(args...)
		if code != exitOK {
			t.Errorf("%s: exit status %d, %s", line, code, errs)
			continue
		}
		var result struct {
			Size int  `json:"size"`
			IPv6 bool `json:"ipv6"`
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil || result.Size != 1024 || !result.IPv6 {
			t.Errorf("%s: %v, %s", line, err, out)
		}
	}
	_, errs, code := xperf("raw_lat", "--fabric", "xdp", "--testbed", "--ipv6")
	if code == exitOK || !strings.Contains(errs, "IPv6") {
		t.Errorf("raw frames: exit status %d, %s", code, errs)
	}
}
