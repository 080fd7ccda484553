package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// Place is where the two ends of a test on one machine are: a server process,
// and the way to it.
type Place struct {
	// Name says where, for people.
	Name string
	// Client is how to reach the server.
	Client ConnectConfig
	// Context ends when the server process does.
	Context context.Context

	bed     *testbed.Testbed // nil on loopback
	server  *exec.Cmd
	cancel  context.CancelCauseFunc
	release chan struct{} // closed when the thread that started server may go
}

// PlaceConfig describes a place. Its zero value is two hosts with MTU 9000 and
// ends that are not pinned.
type PlaceConfig struct {
	// Server is the command of a program that prints "listening ADDRESS", with
	// words about it behind, and serves tests to clients with the key in the file that
	// --secure-key names: `xperf serve`. It must be set.
	Server []string
	// Loopback puts both ends on this host, without namespaces.
	Loopback bool
	// MTU of the hosts in bytes. Default 9000.
	MTU int
	// IPv6 gives the hosts addresses of IPv6. Default: IPv4.
	IPv6 bool
	// Switch joins the hosts.
	Switch testbed.Switch
	// Cores are the cores of the server and the client. Default: not pinned.
	Cores []int
	// Peers is how many hosts the server's end has. Default 1.
	Peers int
}

// joined names what lies between the hosts of a testbed.
var joined = map[testbed.Switch]string{
	testbed.Cable: "veth pair", testbed.Bridge: "veth pairs on a bridge", testbed.XDP: "veth pairs on an XDP switch",
}

// OpenPlace makes the place and starts the server there. The caller closes it.
func OpenPlace(c PlaceConfig) (*Place, error) {
	p := &Place{Name: "loopback of this host", Client: ConnectConfig{Local: Local{Cores: c.Cores}}}
	key, err := p.drawKey()
	if err != nil {
		return nil, err
	}
	defer key.Close()
	args := append(c.Server[1:len(c.Server):len(c.Server)], "--secure-key", inheritedKey)
	if len(c.Cores) > 0 {
		p.Name = fmt.Sprintf("%s, cores %s", p.Name, JoinInts(c.Cores))
		args = append(args, "--cores", JoinInts(c.Cores))
	}
	if c.Loopback {
		at := "127.0.0.1:0"
		if c.IPv6 {
			at = "[::1]:0"
		}
		cmd := exec.Command(c.Server[0], append(args, "--listen", at)...)
		cmd.ExtraFiles = []*os.File{key}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		p.release = make(chan struct{})
		if err := p.start(cmd, func() error { return startOnThread(cmd, p.release) }); err != nil {
			close(p.release)
			return nil, err
		}
		return p, nil
	}
	peers := max(c.Peers, 1)
	bed, err := testbed.New(testbed.Config{Hosts: peers + 1, MTU: c.MTU, Switch: c.Switch, IPv6: c.IPv6})
	if err != nil {
		return nil, err
	}
	p.bed = bed
	p.Name = strings.Replace(p.Name, "loopback of this host", joined[bed.Switch], 1)
	a, b := bed.Hosts[0], bed.Hosts[peers]
	if peers > 1 {
		args = append(args, "--netns", joinNames(bed.Hosts[1:peers]))
	}
	p.Client.Device, p.Client.Enter = b.Dev, b.Do
	cmd := exec.Command(c.Server[0], append(args, "--device", a.Dev, "--listen", netip.AddrPortFrom(a.Addr, 0).String())...)
	cmd.ExtraFiles = []*os.File{key}
	if err := p.start(cmd, func() error { return a.Start(cmd) }); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return p, nil
}

// inheritedKey names the key for a process that has it as its first further descriptor.
const inheritedKey = "/proc/self/fd/3"

// drawKey draws the key of the control connections, and returns it as a file for the server:
// no other process can read that, and there is none on disk.
func (p *Place) drawKey() (*os.File, error) {
	p.Client.Key = boot.NewSecret()
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if _, err := fmt.Fprintf(in, "%x", p.Client.Key); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// startOnThread starts cmd on a thread that lives until release is closed:
// Pdeathsig means the death of the thread that started the process.
func startOnThread(cmd *exec.Cmd, release <-chan struct{}) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-release
	}()
	return <-started
}

func joinNames(hosts []*testbed.Host) string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name
	}
	return strings.Join(names, ",")
}

// start starts the server and waits until it listens.
func (p *Place) start(cmd *exec.Cmd, start func() error) error {
	var complaints Tail
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := start(); err != nil {
		return fmt.Errorf("starting the server end: %w", err)
	}
	p.server = cmd
	p.Context, p.cancel = context.WithCancelCause(context.Background())
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	addr, _, _ = strings.Cut(addr, " ")
	if err != nil || !ok {
		_ = cmd.Process.Kill() // it said something else than it should
		err = errors.Join(fmt.Errorf("the server end did not start: %s", &complaints), cmd.Wait())
		return err
	}
	p.Client.Addr = addr
	go func() {
		err := cmd.Wait()
		p.cancel(fmt.Errorf("the server end exited: %w: %s", err, &complaints))
	}()
	return nil
}

// Close ends the server and removes the hosts.
func (p *Place) Close() error {
	_ = p.server.Process.Kill() // it may be gone
	mono.Await(p.Context.Done(), grace)
	if p.bed == nil {
		close(p.release)
		return nil
	}
	return p.bed.Close()
}

// Root reports whether this process may make a testbed: root in a container
// often may not.
func Root() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	const needs = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	return os.Geteuid() == 0 && unix.Capget(&header, &has[0]) == nil && has[0].Effective&needs == needs
}
