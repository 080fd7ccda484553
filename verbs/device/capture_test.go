package device_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// What tcpdump, which we did not write, makes of our packets: UDP over IPv4,
// every checksum that is there right, and none missing but where a CRC takes its
// place. That of packets of several datagrams is left to the device that cuts them, as it is by the kernel's own sockets.
//
// The kernel shows AF_XDP frames to no packet socket of the hosts, neither sent
// (they skip the queueing layer) nor received (XDP takes them first). It shows
// them on the ports of the bridge between the hosts.
func TestCapture_tcpdumpFindsNothingWrong(t *testing.T) {
	testenv.NeedRoot(t)
	tcpdump, err := exec.LookPath("tcpdump")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("tcpdump is missing: apt-get install tcpdump")
		}
		t.Skip("needs tcpdump: apt-get install tcpdump")
	}
	tb := hosttest.New(t, testbed.Config{Switch: testbed.Bridge})
	// -l and --immediate-mode: each line when it is seen. The first line that
	// it writes, to standard error, says that it listens.
	dump := exec.Command(tcpdump, "-l", "--immediate-mode", "-nvv", "-i", "any", "-Q", "in", "udp", "port", "18700")
	out, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := dump.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.DoIn(tb.Name+"-sw", dump.Start); err != nil {
		t.Fatal(err)
	}
	for ready := bufio.NewScanner(said); ready.Scan(); {
		if strings.Contains(ready.Text(), "listening on") {
			break
		}
	}
	var ends [2]*host
	for i := range ends {
		if ends[i], err = openHost(tb.Hosts[i], device.Spec{Fabric: "xdp"}); err != nil {
			t.Fatal(err)
		}
		defer ends[i].ctx.Close()
	}
	for i := range ends {
		if err := ends[i].connect(ends[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	summed, sealed := false, false // UDP checksums are right, and packets without one were seen
	both, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		said := sync.OnceFunc(func() { close(both) })
		defer said()
		for text := bufio.NewScanner(out); text.Scan(); { // ends with tcpdump
			lines = append(lines, text.Text())
			summed = summed || strings.Contains(text.Text(), "[udp sum ok]")
			sealed = sealed || strings.Contains(text.Text(), "[no cksum]")
			if summed && sealed {
				said()
			}
		}
	}()
	sendUnreliable(t, ends[0])
	testSizes(t, ends[0], ends[1])
	testExchange(t, ends[0], ends[1], 300, 5)
	<-both // it may be behind, and what it has not shown when it is told to end it never shows
	if err := dump.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	<-ended
	for _, line := range lines {
		if sumLeftToDevice(line) {
			continue
		}
		if strings.Contains(line, "bad") || strings.Contains(line, "wrong") || strings.Contains(line, "truncated") {
			t.Errorf("tcpdump complains: %s", line)
		}
	}
	if !summed || !sealed {
		t.Errorf("packets with a UDP checksum: %v, without: %v; want both", summed, sealed)
	}
	if err := dump.Wait(); err != nil {
		t.Error(err)
	}
}

// sumLeftToDevice reports whether a line of tcpdump is about an aggregate: the checksum is the sum of the pseudo header, of 10.87.0.1
// and 10.87.0.2, of UDP and of the length with that of the header.
func sumLeftToDevice(line string) bool {
	_, length, _ := strings.Cut(line, "UDP, length ")
	n, err := strconv.Atoi(length)
	sum := 2*(10<<8+87) + 1 + 2 + 17 + 8 + n
	return err == nil && n > 512 && strings.Contains(line, fmt.Sprintf("[bad udp cksum 0x%04x ", sum>>16+sum&0xffff))
}

// sendUnreliable sends datagrams that have a UDP checksum. Nobody takes them.
func sendUnreliable(t *testing.T, e *host) {
	t.Helper()
	ud, err := e.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: e.scq, RecvCQ: e.rcq})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 8, 501, 1000} {
		wr := verbs.SendWR{Opcode: verbs.OpSend, AH: e.ah, RemoteQPN: ud.Num(), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, n)}}
		if err := ud.PostSend(&wr); err != nil {
			t.Fatal(err)
		}
		e.ctx.Engine().Step()
	}
}
