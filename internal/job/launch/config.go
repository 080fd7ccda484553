package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// AgentArg is the argument that makes a program run AgentMain.
const AgentArg = "--agent"

// Bind says how ranks are tied to processors.
type Bind string

// Ways to bind.
const (
	// BindAuto is BindCore in a testbed with a processor for every rank, and BindThread to
	// those of its host in one with more ranks, where each host has some for itself; else BindNone.
	BindAuto Bind = ""
	// BindThread gives each rank one of the allowed processors (a hardware thread of
	// a core), in turn.
	BindThread Bind = "hwthread"
	// BindCore gives each rank one of the allowed cores, in turn, or
	// Config.Cores of them.
	BindCore Bind = "core"
	// BindNUMA gives each rank the allowed processors of a NUMA node.
	BindNUMA Bind = "numa"
	// BindSocket gives each rank the allowed processors of a socket.
	BindSocket Bind = "socket"
	// BindUser gives each rank the processors that Binding.Places lists, in turn.
	BindUser Bind = "user"
	// BindNone leaves it to the kernel.
	BindNone Bind = "none"
)

// Binding says what ranks are tied to.
type Binding struct {
	To     Bind
	Cores  int     // how many BindCore gives each rank; 0 is 1
	Places [][]int // with BindUser: the processors of each place
}

// MapBy says in which order ranks take places.
type MapBy string

// Orders of places.
const (
	// MapSlot fills a host before the next one, and there a NUMA node before
	// the next one. It is the default.
	MapSlot MapBy = "slot"
	// MapNode deals the ranks to the hosts in turn.
	MapNode MapBy = "node"
	// MapCore is MapSlot, and BindCore where Bind says nothing.
	MapCore MapBy = "core"
	// MapNUMA fills hosts, and deals the ranks of each to its NUMA nodes in
	// turn; BindNUMA where Bind says nothing.
	MapNUMA MapBy = "numa"
	// MapSocket is the same with sockets; BindSocket where Bind says nothing.
	MapSocket MapBy = "socket"
)

// Host is an entry of Config.Hosts.
type Host struct {
	Name  string
	Slots int      // ranks that fit; 0 when not said
	Max   int      // ranks that fit with Config.Oversubscribe; 0: any number
	Own   *Binding // of its ranks; nil: as Config has it
}

// DefaultStartTimeout is the default of Config.StartTimeout.
const DefaultStartTimeout = 60 * time.Second

// MaxRecordEvents is the most that Config.RecordEvents may be.
const MaxRecordEvents = trace.MaxEvents

// Values of Config.StdinTo that are no ranks.
const (
	StdinAll  = -1 // all ranks read the standard input
	StdinNone = -2 // none does
)

// GhostArg is the argument that makes the program of the agent a ghost.
const GhostArg = "--ghost"

// MaxGhosts is the most that Config.Ghosts may be.
const MaxGhosts = 64

// MaxRanks is the most ranks that a job may have, with its ghosts.
const MaxRanks = 1 << 16

// App is a program of a job and its ranks.
type App struct {
	// Program is looked up in PATH on every host; Args follow it.
	Program string   `json:"program"`
	Args    []string `json:"args,omitempty"`
	// Ranks is how many run it. Default 1.
	Ranks int `json:"ranks,omitempty"`
	// Env are variables for these ranks alone, as NAME=VALUE.
	Env []string `json:"env,omitempty"`
	// Dir is the directory that they start in, seen from that of the job. Default
	// that one.
	Dir string `json:"dir,omitempty"`
	// Hosts are the names of those Config.Hosts that they may run on. Default all.
	Hosts []string `json:"-"`
}

// Own is what an App has besides, of the first program of a job.
type Own struct {
	// OwnEnv are variables, as NAME=VALUE.
	OwnEnv []string
	// OwnHosts are the names of those Config.Hosts that it may run on. Default all.
	OwnHosts []string
}

// Config describes a job. Program is all that must be set.
type Config struct {
	// Program is looked up in PATH on every host; Args follow it.
	Program string
	Args    []string
	// Ranks is the number of processes. Default: as many as fit, one per host
	// where that is not said; 1 where there are further programs.
	Ranks int
	// Ghosts is how many ghosts each host with ranks has: processes that serve the
	// windows of these ranks, and end with them. They are the agent's own program,
	// started with GhostArg. Default 0.
	Ghosts int
	// Own is what holds for the ranks of Program alone.
	Own
	// Further are the programs that the ranks after those of Program run.
	Further []App
	// PerHost is the number of ranks that fit on a host, whatever Hosts says.
	// Default 0: what Hosts says, else as many as Ranks makes it.
	PerHost int
	// Oversubscribe puts more ranks on the hosts than fit, in rounds, when there is
	// no room for all.
	Oversubscribe bool
	// Dir is the directory that the ranks start in. Default the present one.
	Dir string
	// Testbed is the number of hosts of a testbed to run in. Default 0: none.
	Testbed int
	// Hosts are the machines to run on, reached by Launcher. Default this one.
	Hosts []Host
	// Fabric is the carrier: "xdp", "xdp:generic", "xdp:driver", "xdp:asavie"
	// or "udp". Default "xdp" where it can be used, else "udp".
	Fabric string
	// Device is the network device on every host. Default: the testbed's, the
	// loopback device when all ranks are on one host, and else on each the one
	// that its route to the others leads through. Where routes part, or lead
	// nowhere, it is that of the default route, with "udp". Several names, with commas
	// between them, are as in device.Spec.Device; what Queues says holds for each.
	Device string
	// Queues says how ranks of one host share its NIC over AF_XDP.
	Queues Queues
	// User is the name or number of the user that the ranks run as. Only root
	// can choose. Default the agent's user.
	User string
	// MTU is that of the testbed's devices in bytes. Default 9000.
	MTU int
	// Switch is what joins the hosts of the testbed.
	Switch testbed.Switch
	// TagOutput puts "[rank] " in front of every line of output.
	TagOutput bool
	// OrderOutput holds the standard output of a rank back, in memory, until
	// the ranks before it have ended. Error output is not held back.
	OrderOutput bool
	// Bind ties ranks to processors.
	Bind Bind
	// Cores is how many cores BindCore gives each rank, neighbours on one NUMA
	// node where a node has as many. Default 1.
	Cores int
	// Places are the processors that BindUser gives to ranks, in turn on each host.
	Places [][]int
	// Processors are the ones that ranks may use, on each host. Default: all.
	Processors []int
	// ReportBindings lets Notice have a line about what each rank is bound to.
	ReportBindings bool
	// Map says which places the ranks take first. Default MapSlot.
	Map MapBy
	// KeepGoing lets the other ranks go on when one dies, or its host: they are
	// told. Run returns why when all have ended. A rank that dies before the
	// start of the job is complete ends it all the same.
	KeepGoing bool
	// Timeout is how long the job may take. Default 0: for ever.
	Timeout time.Duration
	// StartTimeout is how long hosts have to answer, and ranks to reach their
	// first fence after the first of them did. Default DefaultStartTimeout;
	// negative: for ever.
	StartTimeout time.Duration
	// Launcher is the command that runs a command on another host: it is
	// called with the name of the host and the command line of the agent.
	// Default ssh -x -o BatchMode=yes -o ServerAliveInterval=60.
	Launcher []string
	// Agent is the command line of the agent. Default this program with
	// AgentArg.
	Agent []string
	// Env are further variables for the ranks, as NAME=VALUE.
	Env []string
	// Stdin is read by the rank StdinTo, or StdinAll or StdinNone. Default: empty.
	Stdin   io.Reader
	StdinTo int
	// Stdout and Stderr get the ranks' output. Default: discarded.
	Stdout, Stderr io.Writer
	// MergeOutput makes the ranks' error output part of their standard output.
	MergeOutput bool
	// OutFile and ErrFile name files on this machine that get it instead: %r stands
	// for the number of the rank, %0r for the same with zeros in front, so that all are
	// as long, %h for its host and %% for a %. Ranks whose files have the same name
	// share one.
	OutFile, ErrFile string
	// MakeDirs makes the directories of these files where there are none.
	MakeDirs bool
	// Notice gets a line about what the job runs on. Default: discarded.
	Notice io.Writer
	// Report is called after the end of the job with what its ranks have left
	// behind. Default: nil, and they leave nothing.
	Report func(Records)
	// RecordEvents is how many events, calls and messages, a rank keeps for
	// Report: a power of two, or 0 for none, and up to MaxRecordEvents. Each takes
	// 48 bytes of memory of its host.
	RecordEvents int
	// ReportState prints to Stderr what each rank does when the job fails, before it
	// is ended: the call of MPI that it is in, and its stacks. That is done in any
	// case when Timeout or StartTimeout is over, and for SIGQUIT.
	ReportState bool
	// Signals are passed on to the ranks, but for SIGQUIT. A second one of SIGINT and
	// SIGTERM kills. SIGTSTP stops the ranks, and SIGCONT lets them go on.
	Signals <-chan os.Signal
	// Suspend is called after SIGTSTP, when all ranks have been stopped, to stop
	// the program itself. It returns when that goes on. Default: nothing is done.
	Suspend func()
}

// Exit statuses of xrun that are not a rank's.
const (
	ExitTimeout   = 124 // a host or rank did not start in time, or the job not end
	ExitLauncher  = 125 // xrun could not do its work: bad usage, host lost, no testbed
	ExitCannotRun = 126 // the program is there, but cannot be run
	ExitNotFound  = 127 // there is no such program
)

// ConfigError is a Config that makes no sense.
type ConfigError struct{ Problem string }

func (e *ConfigError) Error() string { return e.Problem }

func configErrorf(format string, args ...any) error {
	return &ConfigError{fmt.Sprintf(format, args...)}
}

// apps returns all programs of the job. The number of ranks of the first one may be
// left to where they fit.
func (c *Config) apps() []App {
	all := []App{{Program: c.Program, Args: c.Args, Ranks: c.Ranks, Env: c.OwnEnv, Hosts: c.OwnHosts}}
	if len(c.Further) == 0 {
		return all
	}
	all = append(all, c.Further...)
	for i := range all {
		all[i].Ranks = cmp.Or(all[i].Ranks, 1)
	}
	return all
}

// programs returns apps, and what the ghosts run behind them.
func (c *Config) programs() []App {
	if c.Ghosts == 0 {
		return c.apps()
	}
	return append(c.apps(), App{Program: "/proc/self/exe", Args: []string{GhostArg}})
}

// dir returns the directory that the ranks start in. Other hosts have to have
// it, too.
func (c *Config) dir() (string, error) {
	if c.Dir == "" {
		return os.Getwd()
	}
	return filepath.Abs(c.Dir)
}

// ExitCode returns the exit status that a program should end with after Run
// returned err.
func ExitCode(err error) int {
	var e interface{ exitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.exitCode()
	}
	return ExitLauncher
}
