package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
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

// asLasting is a rank that exchanges messages, and looks at what arrives, until the file that
// the next argument names is there.
const asLasting = "lasting-rank"

func lastingMain(c *mpi.Comm) error {
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for i := 0; ; i++ {
		out, in := bytes.Repeat([]byte{byte(i + c.Rank())}, 1+i%3000), make([]byte, 1+i%3000)
		if _, err := mpi.Sendrecv(c, out, next, 0, in, last, 0); err != nil {
			return err
		}
		if want := bytes.Repeat([]byte{byte(i + last)}, len(in)); !bytes.Equal(in, want) {
			return fmt.Errorf("message %d is another one", i)
		}
		over := []int64{0}
		if _, err := os.Stat(os.Args[2]); err == nil && c.Rank() == 0 {
			over[0] = 1
		}
		if err := mpi.Bcast(c, over, 0); err != nil {
			return err
		}
		if over[0] != 0 {
			return nil
		}
	}
}

// Somebody on a bridge records the frames of a job that runs, and plays them again: its ranks go
// on, and --stats tells of it.
func TestXrun_secureReplayed(t *testing.T) {
	testenv.NeedRoot(t)
	stop := filepath.Join(t.TempDir(), "stop")
	cmd := command("-n", "2", "--testbed", "3", "--switch", "bridge", "--fabric", "xdp", "--secure", "--stats", self, asLasting, stop)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	fail := func(err error) {
		if err != nil {
			_ = cmd.Process.Kill()
			t.Fatal(err, <-ended, errOut.String())
		}
	}
	bed := "" // whose host 0 has no rank
	for bed == "" {
		all, _ := filepath.Glob(fmt.Sprintf("/run/netns/xwarp-%d-*-h0", cmd.Process.Pid))
		if len(all) == 1 && testbed.DoIn(filepath.Base(all[0]), func() error { return nil }) == nil {
			bed = strings.TrimSuffix(filepath.Base(all[0]), "-h0")
		}
		select {
		case err := <-ended:
			t.Fatal("xrun ended: ", err, errOut.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	for hosttest.FloodBridge(bed) != nil { // it is being made
		time.Sleep(10 * time.Millisecond)
	}
	var tap *hosttest.Tap
	for tap == nil {
		time.Sleep(10 * time.Millisecond)
		tap, _ = hosttest.OpenTap(bed+"-h0", testbed.Device)
	}
	defer tap.Close()
	var recorded [][]byte
	for len(recorded) < 1000 {
		more, err := tap.Datagrams(1, 65535)
		fail(err)
		recorded = append(recorded, more...)
		time.Sleep(10 * time.Millisecond)
	}
	for range 20 {
		fail(tap.Send(recorded...))
	}
	fail(os.WriteFile(stop, nil, 0o600))
	if err := <-ended; err != nil || !strings.Contains(errOut.String(), "came in a second time") {
		t.Errorf("%v, %s", err, errOut.String())
	}
}
