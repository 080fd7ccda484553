package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

// asLinked makes the test binary a rank whose host has something done to its network
// device, by the last rank.
const asLinked = "as-linked"

// linkEvent is something that happens to the network device of a host.
type linkEvent struct {
	name string
	do   []string // what `ip` is told: DEV, ADDR, NET and so on stand for what they are
	undo []string
	with func(dev string) error // instead of do
	want string                 // what the job ends with; "": it goes on
	only string                 // the fabric that has what it happens to; "": any
}

// linkEvents is all that is tried. The other end of a veth that is down has no carrier:
// that is a cable which is pulled. What takes a driver that resets its card is not here.
var linkEvents = []linkEvent{
	{name: "down and up", do: []string{"link set DEV down"}, undo: []string{"link set DEV up"}},
	{name: "MTU raised", do: []string{"link set DEV mtu 9500"}},
	{name: "MTU lowered for a while", do: []string{"link set DEV mtu 1500"}, undo: []string{"link set DEV mtu 9000"}},
	{name: "address away for a while", do: []string{"addr flush dev DEV"}, undo: []string{"addr add ADDR dev DEV"}},
	{name: "another address beside it", do: []string{"addr add 192.0.2.1/24 dev DEV"}},
	{name: "route away for a while", do: []string{"route del NET dev DEV"}, undo: []string{"route add NET dev DEV"}},
	{name: "neighbours forgotten", do: []string{"neigh flush dev DEV"}},
	{name: "renamed", do: []string{"link set DEV name renamed0"}},

	{name: "stays down", do: []string{"link set DEV down"}, want: "link is down"},
	{name: "MTU lowered", do: []string{"link set DEV mtu 1500"}, want: "the MTU is too small: it is 1500, and was 9000"},
	{name: "address changed", do: []string{"addr flush dev DEV", "addr add 192.0.2.1/24 dev DEV"}, want: "the address is gone"},
	{name: "deleted", do: []string{"link del DEV"}, want: "the device is gone"},
	{name: "program detached", with: detachProgram, want: "its XDP program is not attached any more", only: "xdp"},
}

// happen does what ip is told.
func (e *linkEvent) happen(commands []string) error {
	dev := os.Getenv(config.EnvDevice)
	switch {
	case e.with != nil:
		return e.with(dev)
	case len(commands) == 0:
		return nil
	}
	nic, err := net.InterfaceByName(dev)
	if err != nil {
		return err
	}
	names := []string{"DEV", dev}
	addrs, err := nic.Addrs()
	if err != nil {
		return err
	}
	if len(addrs) > 0 && os.Getenv("ADDR") == "" {
		_ = os.Setenv("ADDR", addrs[0].String()) // for undo
	}
	if p, err := netip.ParsePrefix(os.Getenv("ADDR")); err == nil {
		names = append(names, "ADDR", p.String(), "NET", p.Masked().String())
	}
	for _, c := range commands {
		args := strings.Fields(strings.NewReplacer(names...).Replace(c))
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil && !bytes.Contains(out, []byte("Flush not complete")) { // neighbours are asked for again at once
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// detachProgram does what `bpftool link detach` does to our program.
func detachProgram(dev string) error {
	nic, err := net.InterfaceByName(dev)
	if err != nil {
		return err
	}
	at, ok, err := bpf.Query(nic.Index)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("no program on %s", dev), err)
	}
	l, err := link.NewFromID(link.ID(at.LinkID))
	if err != nil {
		return err
	}
	return errors.Join(l.Detach(), l.Close())
}

// Messages of linkedJob: what they are there for, and how many rounds come before the
// event, while it lasts, and after it.
const (
	linkedRounds = 20
	linkedLong   = 200_000 // bytes: some go through the kernel where frames are copied
)

// linkedJob talks with all others while the event happens to its host, or to another one.
func linkedJob(p *mpi.Proc) error {
	var event linkEvent
	for _, e := range linkEvents {
		if e.name == os.Getenv(envDoes) {
			event = e
		}
	}
	c := p.World()
	acts := c.Rank() == c.Size()-1
	var done atomic.Bool
	out, in := make([]byte, linkedLong), make([]byte, linkedLong)
	w, memory, err := mpi.WinAllocate[byte](c, linkedLong, nil)
	if err == nil {
		err = w.LockAll(mpi.ModeNoCheck)
	}
	if err != nil {
		return err
	}
	left := []int64{0}
	for round := 0; left[0] == 0; round++ {
		if acts && round == linkedRounds {
			if err := event.happen(event.do); err != nil {
				panic(err) // the test is wrong, or the machine
			}
			if event.want == "" {
				go func() {
					time.Sleep(300 * time.Millisecond) // a few messages are lost, or wait
					if err := event.happen(event.undo); err != nil {
						panic(err)
					}
					done.Store(true)
				}()
			}
		}
		n := 8
		if round%4 == 0 {
			n = linkedLong
		}
		to, from := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		if n == linkedLong {
			pattern(out, round)
			if err := errors.Join(mpi.Put(w, out, to, 0), w.Flush(to)); err != nil {
				return err
			}
		}
		if _, err := mpi.Sendrecv(c, out[:n], to, 0, in[:n], from, 0); err != nil {
			return err
		}
		if n == linkedLong {
			if err := errors.Join(w.Sync(), checkPattern(memory, round)); err != nil {
				return err
			}
		}
		mine := []int64{0}
		if acts && done.Load() && round >= 3*linkedRounds {
			mine[0] = 1
		}
		if err := mpi.Allreduce(c, mine, left, mpi.Sum); err != nil {
			return err
		}
	}
	fmt.Println("went on")
	return errors.Join(w.UnlockAll(), w.Free())
}

// TestProcess_linkEvents: whatever happens to the network device of a host, the job goes
// on when it is over, or ends with an error that says what it was.
func TestProcess_linkEvents(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip: apt-get install iproute2")
	}
	networks(t, func(t *testing.T, on launch.Config) {
		if on.Testbed == 0 {
			t.Skip("the device of this machine stays as it is")
		}
		for i, e := range linkEvents {
			if e.only != "" && e.only != on.Fabric || slow && i%3 != 0 {
				continue
			}
			transports := []string{"rd", "rc", "ud"}
			switch {
			case on.Queues == launch.QueuesShared || slow || e.with != nil: // without a program the kernel resets connections at once
				transports = transports[:1]
			case os.Getenv("XWARP_LONG") != "1": // each event on two transports, one over each fabric
				if on.Fabric == "xdp" {
					i++
				}
				transports = transports[i%3:][:1]
			}
			for _, transport := range transports {
				if transport == "rc" && e.name == "MTU lowered" {
					continue // TCP gives up by itself, in its own time
				}
				t.Run(e.name+"/"+transport, func(t *testing.T) { linkHappens(t, on, &e, transport) })
			}
		}
	})
}

func linkHappens(t *testing.T, on launch.Config, e *linkEvent, transport string) {
	c := survivors(0, e.name, 0, 0)
	c.Args, c.KeepGoing = []string{asLinked}, false
	c.Env = append(c.Env, mpi.EnvTransport+"="+transport, mpi.EnvPromote+"=2") // some go over connections before it happens
	if on.Queues != launch.QueuesShared {
		c.Ranks = 2
	}
	if e.want != "" {
		c.Env = append(c.Env, mpi.EnvPeerLost+"=3s")
	}
	var notices lockedBuffer
	c.Notice = &notices
	out, errOut, err := launchJob(t, c, on)
	switch said := errOut + notices.String(); {
	case e.want == "" && (err != nil || out != strings.Repeat("went on\n", c.Ranks)):
		t.Errorf("%v, %q, %s", err, out, said)
	case e.want != "" && (err == nil || !strings.Contains(said, e.want)):
		t.Errorf("%v, %q, %s; want an end with %q", err, out, said, e.want)
	}
}
