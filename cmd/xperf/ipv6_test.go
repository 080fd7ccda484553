package main

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// Every layer that has datagrams or streams is measured over IPv6, too.
func TestRun_ipv6(t *testing.T) {
	testenv.NeedRoot(t)
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

// A server on a device that has addresses of IPv6 only listens at the one of these.
func TestControlAddr_ipv6(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{IPv6: true})
	host := tb.Hosts[0]
	if err := host.Do(func() error {
		o := &options{device: host.Dev, control: control{port: 18515}}
		at, err := o.controlAddr()
		if want := netip.AddrPortFrom(host.Addr, 18515).String(); at != want {
			t.Errorf("%q, want %q", at, want)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// Where a server waits and a client goes to may be an address alone, of IPv6 too.
func TestControlAddr(t *testing.T) {
	for listen, want := range map[string]string{
		"": ":5", ":7": ":7", "192.0.2.1": "192.0.2.1:5", "192.0.2.1:0": "192.0.2.1:0", "a": "a:5",
		"::1": "[::1]:5", "[::1]": "[::1]:5", "[::1]:7": "[::1]:7", "fe80::1%eth1": "[fe80::1%eth1]:5",
	} {
		o := &options{host: listen, control: control{listen: listen, port: 5}}
		if at, err := o.controlAddr(); err != nil || at != want {
			t.Errorf("--listen %q: %q, %v; want %q", listen, at, err, want)
		}
		if at := o.address(); at != want {
			t.Errorf("HOST %q: %q, want %q", listen, at, want)
		}
	}
}
