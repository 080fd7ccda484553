package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/mpi"
)

// asDown is a rank whose host loses one of its two devices while it talks.
const asDown = "goes-down"

func downMain(w *mpi.Comm) error {
	steps := []struct {
		dev string
		set func(netlink.Link) error
	}{
		{}, {testbed.Device, netlink.LinkSetDown}, {testbed.Device, netlink.LinkSetUp},
		{testbed.SecondDevice, netlink.LinkSetDown}, {testbed.SecondDevice, netlink.LinkSetUp},
	}
	for round, s := range steps {
		set := make(chan error, 1)
		for i := range 20 {
			if i == 10 { // while messages are on their way
				go func() { set <- setLink(s.dev, s.set, s.dev != "" && w.Rank() == w.Size()-1) }()
			}
			if err := exchange(w, round+i); err != nil {
				return fmt.Errorf("step %d, %d: %w", round, i, err)
			}
		}
		if err := <-set; err != nil {
			return fmt.Errorf("step %d: %w", round, err)
		}
	}
	if w.Rank() == 0 {
		fmt.Println("all is well")
	}
	return nil
}

// asKiller is a rank of which the last one kills the agent that has started it, while
// messages are on their way.
const asKiller = "kills-its-agent"

func killerMain(w *mpi.Comm) error {
	for i := 0; ; i++ {
		if err := exchange(w, i); err != nil {
			return err
		}
		if i == 3 && w.Rank() == w.Size()-1 {
			return unix.Kill(os.Getppid(), unix.SIGKILL)
		}
	}
}

// asSpread is a rank that sends as many long messages as its argument says.
const asSpread = "sends-long"

func spreadMain(w *mpi.Comm) error {
	messages, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	out, in := make([]byte, 1<<20), make([]byte, 1<<20)
	for i := range messages {
		peer := 1 - w.Rank()
		fillWith(out, i+w.Rank())
		if _, err := mpi.Sendrecv(w, out, peer, 1, in, peer, 1); err != nil {
			return err
		}
		if fillWith(out, i+peer); !bytes.Equal(in, out) {
			return fmt.Errorf("message %d is not what was sent", i)
		}
	}
	return nil
}

// setLink does something to a device, if it is this rank's to do.
func setLink(dev string, set func(netlink.Link) error, ours bool) error {
	if !ours {
		return nil
	}
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	return set(link)
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

// Long messages go over both devices of a host at once, and the counters say so. How much
// goes over each is up to how fast they are, and here both are as fast as the processors that
// they share: a twentieth over one of them was seen on a quiet machine. (TestSpread_goodput of package verbs
// has networks whose speed is known.) The second one is used as soon as it has answered: a
// short job may be over before that.
func TestXrun_severalDevicesShare(t *testing.T) {
	_, devices := onTwoDevices(t)
	for _, fabric := range []string{"udp", "xdp"} {
		for messages := 64; !spreads(t, fabric, devices, messages); messages *= 4 {
			if messages > 1024 {
				t.Errorf("%s: less than 1 of %d MiB went over one of the networks", fabric, messages)
				break
			}
		}
	}
}

// spreads runs a job that exchanges messages of 1 MiB, and reports whether each rank has
// sent as much as one of them on each of its two networks.
func spreads(t *testing.T, fabric string, devices []string, messages int) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "counters.json")
	args := slices.Concat([]string{"-n", "2", "--fabric", fabric, "--stats", "--json", file}, devices, []string{self, asSpread, strconv.Itoa(messages)})
	_, errOut, status := xrun(t, args...)
	text, err := os.ReadFile(file)
	var all trace.Summary
	if err := errors.Join(err, json.Unmarshal(text, &all)); err != nil || status != 0 || len(all.Ranks) != 2 {
		t.Fatalf("%s: status %d, %v, %s", fabric, status, err, errOut)
	}
	yes := strings.Contains(errOut, "sent on network 2: ")
	for _, r := range all.Ranks {
		t.Logf("%s: rank %d: %+v", fabric, r.Rank, r.Networks)
		n := r.Networks
		if len(n) != 2 || n[0].Bytes+n[1].Bytes < uint64(messages)<<20 {
			t.Fatalf("%s: rank %d has sent %+v on its networks: want %d MiB on two", fabric, r.Rank, n, messages)
		}
		yes = yes && min(n[0].Bytes, n[1].Bytes) >= 1<<20
	}
	return yes
}

// onTwoDevices makes hosts with two devices each, and returns what makes xrun use them.
func onTwoDevices(t *testing.T) (tb *testbed.Testbed, args []string) {
	t.Helper()
	tb = hosttest.New(t, testbed.Config{Second: true})
	return tb, []string{
		"--device", testbed.Device + "," + testbed.SecondDevice,
		"--hosts", tb.Hosts[0].Name + "," + tb.Hosts[1].Name, "--launcher-exec", launcher,
	}
}

// A job on hosts with two devices each goes on when one of them is set down, and is the
// other's turn when that is.
func TestXrun_severalDevices(t *testing.T) {
	_, devices := onTwoDevices(t)
	on := func(args string) []string {
		return slices.Concat(strings.Fields(args), devices, []string{self, asDown})
	}
	for _, c := range []struct{ args, notice string }{
		{"-n 2 --fabric udp", "kernel UDP"},
		{"-n 2 --fabric xdp", "AF_XDP"},
		{"-n 4 --oversubscribe", "AF_XDP on xw0,xw1, those of a host on one queue"},
		{"-n 4 --oversubscribe --fabric xdp:driver -x XWARP_SHARED=0", "AF_XDP:driver on xw0,xw1"},
		{"-n 4 --oversubscribe --fabric xdp --queues steered", "the ranks of host 1 share one queue: xdp: xw0: it cannot steer"},
	} {
		out, errOut, status := xrun(t, on(c.args)...)
		if status != 0 || out != "all is well\n" || !strings.Contains(errOut, c.notice) {
			t.Errorf("%s: status %d, %q, %s", c.args, status, out, errOut)
		}
	}
	for args, want := range map[string]string{
		"-n 2 --fabric udp --transport rc":       "several devices (xw0,xw1) are for transport rd",
		"-n 2 --fabric udp --transport ud":       "several devices (xw0,xw1) are for transport rd",
		"-n 2 --fabric xdp -x XWARP_BULK=kernel": "several devices (xw0,xw1): large data goes in frames there",
		"-n 2 --fabric xdp:asavie":               `several devices (xw0,xw1): fabric "xdp:asavie" uses one`,
	} {
		if out, errOut, status := xrun(t, on(args)...); status == 0 || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %q, %s; want %q", args, status, out, errOut, want)
		}
	}
}

// Ranks that share the queues of two devices need no privileges, and whoever dies, no
// program stays on either device and the next job finds them free.
func TestXrun_severalDevicesDeaths(t *testing.T) {
	tb, devices := onTwoDevices(t)
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs go to build an example")
	}
	survivors := filepath.Join(t.TempDir(), "ulfm")
	if out, err := exec.Command(goTool, "build", "-buildvcs=false", "-o", survivors, "../../examples/ulfm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	nobody := strings.Repeat("65534 CapEff: 0000000000000000\n", 4)
	for _, c := range []struct {
		args, program    []string
		status           int
		out, errOut, why string
	}{
		{[]string{"--disable-auto-cleanup"}, []string{survivors, "--kill", "1,3"}, 128 + 9, "2 of 4 ranks left", "was killed by signal 9", "ranks that die"},
		{nil, []string{self, asKiller}, 125, "", "lost its agent (signal: killed)", "an agent that dies"},
		{[]string{"--user", "nobody", "--wdir", "/"}, []string{self, asRank}, 0, nobody, "", "an ordinary user"},
		{[]string{"--stats"}, []string{self, asRank}, 0, "", "and shm on xw0, 1 queue, multi-buffer and xw1, 1 queue", "the counters"},
		{[]string{"--user", "nobody", "--wdir", "/", "-x", "XWARP_SHARED=0"}, []string{self, asRank}, 0, nobody, "", "without channels"},
	} {
		args := slices.Concat([]string{"-n", "4", "--oversubscribe", "--fabric", "xdp"}, c.args, devices, c.program)
		out, errOut, status := xrun(t, args...)
		if status != c.status || !strings.Contains(out, c.out) || !strings.Contains(errOut, c.errOut) {
			t.Errorf("%s: status %d, %q, %s", c.why, status, out, errOut)
		}
		for _, h := range tb.Hosts {
			awaitNoProgram(t, h, testbed.Device)
			awaitNoProgram(t, h, testbed.SecondDevice)
		}
	}
}

// awaitNoProgram waits until a device has no XDP program: the kernel takes it away some
// time after the death of who had it.
func awaitNoProgram(t *testing.T, h *testbed.Host, dev string) {
	t.Helper()
	err := h.Do(func() error {
		for {
			link, err := netlink.LinkByName(dev)
			if err != nil || link.Attrs().Xdp == nil || !link.Attrs().Xdp.Attached {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
