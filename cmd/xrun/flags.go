package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// options are the flags that are not simply a field of the Config.
type options struct {
	hosts, hostfile                   string
	launcher, launcherExec, agentPath string
	quiet                             bool
	version                           bool
	ownEnv                            []string
	record                            recording
	startTimeout                      time.Duration
	configFile, outputDir             string
	allocation                        string        // the variable that the hosts are from, or ""
	allocated                         []launch.Host // of it
}

// elsewhere reports whether the ranks run on other machines.
func (o *options) elsewhere() bool { return o.hosts+o.hostfile+o.allocation != "" }

// errVersion is what parse returns for --version.
var errVersion = errors.New("the version is asked for")

// parse reads the command line. It returns flag.ErrHelp, errVersion or a
// *launch.ConfigError.
func parse(args []string) (launch.Config, *recording, error) {
	var c launch.Config
	var o options
	fs := flagSet(&c, &o)
	err := o.harness(&c)
	args, configErr := withConfigFile(args)
	err = errors.Join(err, configErr)
	parts := splitPrograms(args)
	if err == nil {
		err = explain(fs.Parse(joinPairs(fs, parts[0])))
	}
	if err == nil && !o.elsewhere() && c.Testbed == 0 && !o.version {
		o.allocated, o.allocation, err = launch.Allocation(os.LookupEnv)
	}
	if err == nil {
		err = check(fs, o)
	}
	var more []launch.Host
	for _, part := range parts[1:] {
		var a launch.App
		var hosts []launch.Host
		if err == nil {
			a, hosts, err = furtherApp(part)
		}
		c.Further, more = append(c.Further, a), append(more, hosts...)
	}
	if o.version {
		err = errVersion
	}
	if errors.Is(err, flag.ErrHelp) || errors.Is(err, errVersion) {
		return c, nil, err
	}
	if err != nil {
		return c, nil, &launch.ConfigError{Problem: err.Error()}
	}
	c.Program, c.Args = fs.Arg(0), fs.Args()[1:]
	if c.OwnEnv = o.ownEnv; len(c.Further) == 0 { // the agents may have to know them, too
		c.Env, c.OwnEnv = append(c.Env, o.ownEnv...), nil
	}
	if c.StartTimeout = o.startTimeout; o.startTimeout == 0 {
		c.StartTimeout = -1 // for ever
	}
	if !o.quiet {
		c.Notice = notice{os.Stderr}
		o.say(c.Notice)
	}
	if o.elsewhere() {
		c.Launcher = strings.Fields(o.launcherExec)
		if c.Hosts, err = o.hostList(os.Stdin); err != nil {
			return c, nil, err
		}
		c.Agent, err = remoteAgent(o.agentPath)
	}
	return c, &o.record, errors.Join(err, addHosts(&c, more))
}

// envTimeout and the name mpiexec are what test suites of MPI libraries know: a number of
// seconds, as --timeout has it, and a launcher that says nothing of its own, for they take
// every line that a job writes for the program's.
const envTimeout, harnessName = "MPIEXEC_TIMEOUT", "mpiexec"

// harness reads what a test suite says before the flags do.
func (o *options) harness(c *launch.Config) error {
	o.quiet = filepath.Base(os.Args[0]) == harnessName
	if s := os.Getenv(envTimeout); s != "" {
		if err := seconds(&c.Timeout)(s); err != nil {
			return fmt.Errorf("%s is %.32q: %w", envTimeout, s, err)
		}
		o.quiet = true
	}
	return nil
}

func flagSet(c *launch.Config, o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("xrun", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Func("n", "", positive(&c.Ranks))
	fs.Func("np", "", positive(&c.Ranks))
	fs.Func("ppn", "", positive(&c.PerHost))
	fs.Func("ghosts", "", func(s string) (err error) {
		c.Ghosts, err = strconv.Atoi(s)
		return err
	})
	fs.Func("testbed", "", positive(&c.Testbed))
	fs.Func("mtu", "", positive(&c.MTU))
	for _, variable := range []string{config.EnvIPv6, config.EnvBusyPoll, config.EnvTransport, config.EnvSecure, config.EnvProgress, config.EnvAsync, config.EnvABI, config.EnvGhostFailure, config.EnvGhostBinding} {
		variableFlag(fs, c, variable)
	}
	fs.Func("switch", "", func(s string) (err error) {
		c.Switch, err = testbed.ParseSwitch(s)
		return err
	})
	fs.Func("hosts", "", nonEmpty(&o.hosts))
	fs.Func("host", "", nonEmpty(&o.hosts))
	fs.Func("hostfile", "", nonEmpty(&o.hostfile))
	fs.Func("f", "", nonEmpty(&o.hostfile))
	fs.Func("machinefile", "", nonEmpty(&o.hostfile))
	fs.BoolVar(&c.Oversubscribe, "oversubscribe", false, "")
	fs.Func("map-by", "", func(s string) error { return setMap(c, s) })
	fs.Func("bind-to", "", func(s string) error { return setBind(c, s) })
	fs.BoolVar(&c.ReportBindings, "report-bindings", false, "")
	fs.Func("wdir", "", nonEmpty(&c.Dir))
	fs.Func("wd", "", nonEmpty(&c.Dir))
	fs.Func("timeout", "", seconds(&c.Timeout))
	fs.Func("fabric", "", nonEmpty(&c.Fabric))
	fs.Func("queues", "", nonEmpty((*string)(&c.Queues)))
	fs.Func("user", "", nonEmpty(&c.User))
	fs.Func("device", "", nonEmpty(&c.Device))
	fs.Func("launcher", "", nonEmpty(&o.launcher))
	fs.Func("launcher-exec", "", nonEmpty(&o.launcherExec))
	fs.Func("agent-path", "", nonEmpty(&o.agentPath))
	fs.Func("x", "", func(s string) error { return addEnv(&c.Env, s) })
	fs.Func("genv", "", func(s string) error { return addPair(&c.Env, s) })
	fs.Func("env", "", func(s string) error { return addPair(&o.ownEnv, s) })
	fs.Func("genvlist", "", func(s string) error { return addEnvList(&c.Env, s) })
	fs.Func("envlist", "", func(s string) error { return addEnvList(&o.ownEnv, s) })
	fs.BoolVar(&o.version, "version", false, "")
	fs.BoolVar(&c.TagOutput, "tag-output", false, "")
	fs.BoolVar(&c.TagOutput, "l", false, "")
	fs.BoolVar(&c.ReportState, "report-state", false, "")
	fs.Bool("report-state-on-timeout", false, "") // Open MPI's; it is done in any case
	fs.Bool("get-stack-traces", false, "")        // likewise
	fs.BoolVar(&c.OrderOutput, "ordered-output", false, "")
	fs.Func("outfile-pattern", "", nonEmpty(&c.OutFile))
	fs.Func("errfile-pattern", "", nonEmpty(&c.ErrFile))
	fs.Func("stdin", "", func(s string) error { return setStdin(c, s) })
	fs.BoolVar(&o.record.stats, "stats", false, "")
	fs.Func("json", "", nonEmpty(&o.record.json))
	fs.Func("trace", "", nonEmpty(&o.record.trace))
	o.record.events = traceEvents
	fs.Func("trace-events", "", positive(&o.record.events))
	fs.BoolVar(&o.quiet, "quiet", false, "")
	fs.BoolVar(&c.KeepGoing, "disable-auto-cleanup", false, "")
	fs.DurationVar(&o.startTimeout, "start-timeout", launch.DefaultStartTimeout, "")
	peerFlags(fs, c, o)
	return fs
}

// say tells what the command line does not say, and what is not as elsewhere.
func (o *options) say(notice io.Writer) {
	if o.allocation != "" {
		fmt.Fprintf(notice, "the hosts are those of %s (--hosts names others)\n", o.allocation)
	}
	if o.outputDir != "" {
		fmt.Fprintf(notice, "the output of the ranks goes into files below %s, and is not copied here\n", o.outputDir)
	}
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

// seconds reads a time, or a number of seconds.
func seconds(into *time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if n, atoiErr := strconv.ParseUint(s, 10, 31); atoiErr == nil {
			d, err = time.Duration(n)*time.Second, nil
		}
		if err != nil || d < 0 {
			return errors.New("want a time such as 30s or 5m, or a number of seconds")
		}
		*into = d
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
	case o.hosts != "" && o.hostfile != "":
		return errors.New("the hosts are either in --hosts or in --hostfile")
	case !o.elsewhere() && o.launcher+o.launcherExec+o.agentPath != "":
		return errors.New("--launcher, --launcher-exec and --agent-path are for --hosts")
	case o.record.events > launch.MaxRecordEvents:
		return fmt.Errorf("--trace-events %d: want up to %d", o.record.events, launch.MaxRecordEvents)
	case o.record.json != "" && o.record.json == o.record.trace:
		return errors.New("--json and --trace would write into the same file: give them different ones")
	case o.startTimeout < 0:
		return fmt.Errorf("--start-timeout %v: want a time, or 0 for ever", o.startTimeout)
	}
	return config.CheckNames(os.Environ())
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
