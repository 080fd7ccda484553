package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/mpi"
)

// asDown is a rank whose host loses one of its two devices while it talks.
const asDown = "goes-down"

func downMain() error {
	p, err := mpi.Init()
	if err != nil {
		return err
	}
	w := p.World()
	for round, set := range []string{"", "xw0 down", "xw0 up", "xw1 down", "xw1 up"} {
		for i := range 20 {
			if i == 10 && set != "" && w.Rank() == w.Size()-1 { // while messages are on their way
				link := exec.Command("ip", append([]string{"link", "set"}, strings.Fields(set)...)...)
				if err := link.Start(); err != nil {
					return err
				}
				defer func() { _ = link.Wait() }()
			}
			if err := exchange(w, round+i); err != nil {
				return fmt.Errorf("%q, %d: %w", set, i, err)
			}
		}
	}
	if w.Rank() == 0 {
		fmt.Println("all is well")
	}
	return p.Finalize()
}

// exchange sends messages of some sizes to each other rank, and looks at what comes.
func exchange(w *mpi.Comm, seed int) error {
	for _, size := range []int{8, 20_000, 300_000} {
		out, in := make([]byte, size), make([]byte, size)
		for step := 1; step < w.Size(); step++ {
			to, from := (w.Rank()+step)%w.Size(), (w.Rank()-step+w.Size())%w.Size()
			fillWith(out, seed+w.Rank()+to)
			if _, err := mpi.Sendrecv(w, out, to, 1, in, from, 1); err != nil {
				return err
			}
			if fillWith(out, seed+from+w.Rank()); !bytes.Equal(in, out) {
				return fmt.Errorf("%d bytes from rank %d are not what it sent", size, from)
			}
		}
	}
	return nil
}

// A job on hosts with two devices each goes on when one of them is set down, and is the
// other's turn when that is.
func TestXrun_severalDevices(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("XWARP_REQUIRE_XDP") == "1" {
			t.Fatal("XWARP_REQUIRE_XDP is set and this is not root")
		}
		t.Skip("needs root to make hosts")
	}
	tb, err := testbed.New(testbed.Config{Second: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	on := func(args string) []string {
		return append(strings.Fields(args), "--device", testbed.Device+","+testbed.SecondDevice,
			"--hosts", tb.Hosts[0].Name+","+tb.Hosts[1].Name, "--launcher-exec", launcher, self, asDown)
	}
	for _, c := range []struct{ args, notice string }{
		{"-n 2 --fabric udp", "kernel UDP"},
		{"-n 2 --fabric xdp", "AF_XDP"},
		{"-n 4 --oversubscribe", "kernel UDP (with AF_XDP ranks can share one device only)"},
	} {
		out, errOut, status := xrun(t, on(c.args)...)
		if status != 0 || out != "all is well\n" || !strings.Contains(errOut, c.notice) {
			t.Errorf("%s: status %d, %q, %s", c.args, status, out, errOut)
		}
	}
	for args, want := range map[string]string{
		"-n 2 --fabric udp --transport rc":       "several devices (xw0,xw1) are for transport rd",
		"-n 2 --fabric udp --transport ud":       "several devices (xw0,xw1) are for transport rd",
		"-n 4 --oversubscribe --fabric xdp":      "name one device, use --fabric udp, or start one rank",
		"-n 2 --fabric xdp -x XWARP_BULK=kernel": "several devices (xw0,xw1): large data goes in frames there",
		"-n 2 --fabric xdp:asavie":               `several devices (xw0,xw1): fabric "xdp:asavie" uses one`,
	} {
		if out, errOut, status := xrun(t, on(args)...); status == 0 || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %q, %s; want %q", args, status, out, errOut, want)
		}
	}
}
