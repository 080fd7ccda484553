package launch

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/progress"
)

// link is the controller's end of an agent.
type link struct {
	plan  agentPlan
	cmd   *exec.Cmd
	out   *outbox
	ready bool // it has said so, and which device it has if it was asked
	found hostDevice
	stops int  // how often it was told to stop its ranks and has not yet said that it did
	bye   bool // it has said so
	gone  bool // its process has ended
	told  bool // to end, by a signal
}

// event is something that an agent did.
type event struct {
	from   *link
	report report
	err    error // it makes no sense
	ended  bool  // its process has
}

// defaultLauncher asks no questions: there may be no terminal to answer. It notices
// after three minutes that a host has vanished.
var defaultLauncher = [...]string{"ssh", "-x", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=60"}

// agentCommand returns the command that starts the agent of a.
func (c *Config) agentCommand(p *plan, a agentPlan, prn *printer) *exec.Cmd {
	argv := c.Agent
	if len(argv) == 0 {
		argv = []string{"/proc/self/exe", AgentArg}
	}
	switch {
	case p.remote && c.here(a.hostName):
		argv = []string{"/proc/self/exe", AgentArg}
	case len(c.Launcher) > 0 && p.remote:
		argv = slices.Concat(c.Launcher, []string{a.hostName}, argv)
	case p.remote:
		argv = slices.Concat(defaultLauncher[:], []string{a.hostName}, argv)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = cleanEnv(os.Environ())
	cmd.Stderr = prn.errors()
	// A group of its own: Ctrl-C is for the controller to pass on. No
	// Pdeathsig: the agent sees the end of its input and cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// here reports whether a host is this machine, which needs no launcher to reach. One
// that was asked for has its own names of hosts.
func (c *Config) here(host string) bool {
	if len(c.Launcher) > 0 {
		return false
	}
	if isLoopback(host) {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return isOwn(addr)
	}
	name, err := os.Hostname()
	short, _, _ := strings.Cut(name, ".")
	return err == nil && (host == name || host == short)
}

// isOwn reports whether a device of this machine has the address.
func isOwn(addr netip.Addr) bool {
	own, _ := net.InterfaceAddrs() // without them it counts as another host's, and ssh will tell
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr() == addr.WithZone("")
	})
}

// startAgent starts the agent of a. What it does comes as events.
func (c *Config) startAgent(p *plan, a agentPlan, tb *testbed.Testbed, prn *printer, events chan<- event) (*link, error) {
	cmd := c.agentCommand(p, a, prn)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	widen(stdout)
	if tb != nil {
		err = tb.Hosts[a.netns].Start(cmd)
	} else {
		runtime.LockOSThread()
		progress.Restore() // where this process measures, and has its monitor deferred
		err = cmd.Start()
		runtime.UnlockOSThread()
	}
	if err != nil {
		return nil, err
	}
	l := &link{plan: a, cmd: cmd, out: newOutbox(stdin)}
	go l.read(stdout, p.size, prn, events)
	return l, nil
}

// read prints the output of the ranks and turns all else into events. What a host says
// for a welcome, as a line in .bashrc may make it, comes before.
func (l *link) read(stdout io.Reader, size int, prn *printer, events chan<- event) {
	lines := boot.NewLineReader(stdout)
	for preamble := true; ; {
		line, err := lines.Next()
		if err != nil {
			break
		}
		if preamble && !bytes.HasPrefix(line, []byte("{")) {
			if w := prn.errors(); w != nil {
				fmt.Fprintf(w, "%s\n", line) // of a shell that runs the agent there
			}
			continue
		}
		preamble = false
		r, err := parseReport(line, size)
		if err == nil && r.Length > 0 {
			r.Data, err = lines.Piece(r.Length)
		}
		if err == nil && r.Op == opOutput {
			prn.print(r.Rank, r.Stderr, r.Data)
			continue
		}
		if err == nil && r.Op == opExit {
			prn.ended(r.Rank)
		}
		r.Data = bytes.Clone(r.Data)
		events <- event{from: l, report: r, err: err}
		if err != nil {
			break
		}
	}
	l.closeInput()
	_ = l.cmd.Wait() // the state says it all
	events <- event{from: l, ended: true}
}

// closeInput ends the agent's input, which makes it kill its ranks and leave.
func (l *link) closeInput() { l.out.close() }

// kill ends the agent at once, and the kernel its ranks.
func (l *link) kill() {
	l.told = true
	_ = l.cmd.Process.Kill()
}
