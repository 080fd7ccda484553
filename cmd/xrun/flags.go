package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/launch"
	"github.com/xwarp/xwarp/internal/testbed"
)

const usage = `usage: xrun [-n N] [OPTIONS] PROGRAM [ARGS...]

Starts N processes of PROGRAM, the ranks of an MPI job, and waits for them.

Where
  -n, -np N            number of ranks (default: one per host)
  --testbed H          make H hosts on this machine (network namespaces on a
                       cable or switch) and remove them afterwards; needs root,
                       and without it the ranks run on loopback instead
  --hosts A,B:2,...    run on these machines; :2 is the number of ranks that fit
  --bind-to core|none  tie each rank to one processor (default: core in a
                       testbed with a processor for every rank)

How they talk
  --fabric F           xdp, xdp:generic, xdp:driver, xdp:asavie or udp (default:
                       xdp where it can be used, else udp; xrun says which)
  --device DEV         network device, the same on all hosts
  --mtu M              MTU of the testbed's devices in bytes (default 9000)
  --switch S           what joins the testbed's hosts: cable (two of them),
                       bridge or xdp (default: cable, else xdp). tcpdump sees
                       AF_XDP frames on a bridge only: ip netns exec
                       xwarp-PID-...-sw tcpdump -ni any udp

What you see
  --tag-output         put "[rank] " in front of every line
  --quiet              do not say what the job runs on

Starting
  --start-timeout D    time for hosts to answer and for ranks to reach the start
                       of the job (default 60s; 0: for ever)
  --env NAME[=VALUE]   set a variable for the ranks (repeatable); without VALUE
                       that of xrun, which other hosts do not see otherwise
  --launcher ssh       how to reach --hosts (the only one by name)
  --launcher-exec CMD  reach a host by running CMD HOST AGENT ARGS... instead
  --agent-path PATH    where xrun is on the hosts (default: where it is here)

Options may be written with one dash or two, and as --name value or
--name=value. Options after PROGRAM belong to it. Rank 0 reads the standard
input. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks;
a second SIGINT or SIGTERM kills them. Over AF_XDP there is one rank per host
and NIC; a testbed gives every rank a NIC.

Exit status
  0        all ranks ended with status 0
  1-123    that of the first rank that failed, or the code it aborted with;
           1 also for a rank that left without Finalize
  124      a host or rank did not start in time
  125      xrun could not do its work: bad usage, host lost, no testbed
  126      PROGRAM cannot be run
  127      there is no PROGRAM
  128+S    the first rank that failed was killed by signal S

Examples
  xrun -n 4 ./app                        4 ranks on this machine, kernel UDP
  sudo xrun -n 4 --testbed 2 ./app       on two hosts made for it, AF_XDP
  sudo xrun -n 2 --testbed 2 --fabric udp --mtu 1500 ./app
  xrun --hosts a,b,c --device eth1 ./app three machines, one rank each
  xrun -n 8 --hosts a:4,b:4 --fabric udp --tag-output ./app -v input.mtx
`

// options are the flags that are not simply a field of the Config.
type options struct {
	hosts, launcher, launcherExec, agentPath string
	quiet                                    bool
	startTimeout                             time.Duration
}

// parse reads the command line. It returns flag.ErrHelp, or a
// *launch.ConfigError.
func parse(args []string) (launch.Config, error) {
	var c launch.Config
	var o options
	fs := flagSet(&c, &o)
	err := fs.Parse(args)
	if err == nil {
		err = check(fs, o)
	}
	if errors.Is(err, flag.ErrHelp) {
		return c, err
	}
	if err != nil {
		return c, &launch.ConfigError{Problem: err.Error()}
	}
	c.Program, c.Args = fs.Arg(0), fs.Args()[1:]
	if c.StartTimeout = o.startTimeout; o.startTimeout == 0 {
		c.StartTimeout = -1 // for ever
	}
	if !o.quiet {
		c.Notice = notice{os.Stderr}
	}
	if o.hosts == "" {
		return c, nil
	}
	c.Launcher = strings.Fields(o.launcherExec)
	if c.Hosts, err = launch.ParseHosts(o.hosts); err != nil {
		return c, err
	}
	c.Agent, err = remoteAgent(o.agentPath)
	return c, err
}

func flagSet(c *launch.Config, o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("xrun", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Func("n", "", positive(&c.Ranks))
	fs.Func("np", "", positive(&c.Ranks))
	fs.Func("testbed", "", positive(&c.Testbed))
	fs.Func("mtu", "", positive(&c.MTU))
	fs.Func("switch", "", func(s string) (err error) {
		c.Switch, err = testbed.ParseSwitch(s)
		return err
	})
	fs.Func("hosts", "", nonEmpty(&o.hosts))
	fs.Func("bind-to", "", nonEmpty((*string)(&c.Bind)))
	fs.Func("fabric", "", nonEmpty(&c.Fabric))
	fs.Func("device", "", nonEmpty(&c.Device))
	fs.Func("launcher", "", nonEmpty(&o.launcher))
	fs.Func("launcher-exec", "", nonEmpty(&o.launcherExec))
	fs.Func("agent-path", "", nonEmpty(&o.agentPath))
	fs.Func("env", "", func(s string) error { return addEnv(c, s) })
	fs.BoolVar(&c.TagOutput, "tag-output", false, "")
	fs.BoolVar(&o.quiet, "quiet", false, "")
	fs.DurationVar(&o.startTimeout, "start-timeout", launch.DefaultStartTimeout, "")
	return fs
}

func positive(into *int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return errors.New("want a number above 0")
		}
		*into = n
		return nil
	}
}

func nonEmpty(into *string) func(string) error {
	return func(s string) error {
		if s == "" {
			return errors.New("it is empty")
		}
		*into = s
		return nil
	}
}

// check refuses what makes no sense together.
func check(fs *flag.FlagSet, o options) error {
	switch {
	case fs.NArg() == 0:
		return errors.New("no program to run")
	case o.launcher != "" && o.launcher != "ssh":
		return fmt.Errorf("unknown launcher %q: want ssh, or give a command with --launcher-exec", o.launcher)
	case o.hosts == "" && o.launcher+o.launcherExec+o.agentPath != "":
		return errors.New("--launcher, --launcher-exec and --agent-path are for --hosts")
	case o.startTimeout < 0:
		return fmt.Errorf("--start-timeout %v: want a time, or 0 for ever", o.startTimeout)
	}
	return nil
}

func addEnv(c *launch.Config, s string) error {
	name, _, ok := strings.Cut(s, "=")
	if name == "" {
		return fmt.Errorf("want NAME=VALUE or NAME")
	}
	if !ok {
		value, set := os.LookupEnv(name)
		if !set {
			return fmt.Errorf("%s is not set here", name)
		}
		s = name + "=" + value
	}
	c.Env = append(c.Env, s)
	return nil
}

// remoteAgent returns the agent's command line on another host. A launcher
// like ssh hands it to a shell, so an unusual path is quoted.
func remoteAgent(path string) ([]string, error) {
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	if strings.IndexFunc(path, needsQuote) >= 0 {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return []string{path, launch.AgentArg}, nil
}

func needsQuote(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("/._-+:,@%", r), r > 127:
		return false
	}
	return true
}
