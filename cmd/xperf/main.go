// Command xperf measures what the layers of xwarp cost; see `xperf --help`.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/bench/peers"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/mpi"
	"golang.org/x/sys/unix"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 3
	exitInterrupted = 130
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == launch.AgentArg {
		os.Exit(launch.AgentMain(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 2 && os.Args[1] == launch.GhostArg {
		if err := mpi.Ghost(); err != nil {
			fmt.Fprintln(os.Stderr, "xperf: ghost:", err)
			os.Exit(exitFailed)
		}
		return
	}
	p := &program{out: os.Stdout, errs: os.Stderr, terminal: isTerminal(os.Stderr)}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		p.clear()
		p.closePlaces()
		os.Exit(exitInterrupted)
	}()
	code := p.run(os.Args[1:])
	p.clear()
	os.Exit(code)
}

// program is one run of xperf.
type program struct {
	out      io.Writer
	errs     io.Writer
	terminal bool // errs is one: show progress there

	results []bench.Result // so far, for --plot

	mu     sync.Mutex
	shown  bool      // progress stands on the present line
	told   mono.Time // when it was last told to what is no terminal
	places []*bench.Place
}

// run does what args say and returns the exit code.
func (p *program) run(args []string) int {
	if page, err := page(); err == nil && page.Answer(args, p.out) {
		return exitOK
	}
	o, err := parse(args)
	if err == nil && o.help {
		err = help(p.out, o.command)
	} else if err == nil {
		err = p.dispatch(o)
		p.closePlaces()
	}
	if err == nil {
		return exitOK
	}
	p.clear()
	fmt.Fprintln(p.errs, "xperf:", err)
	switch {
	case errors.Is(err, bench.ErrUsage):
		fmt.Fprintln(p.errs, "`xperf --help` shows how it is used.")
		return exitUsage
	case errors.Is(err, testbed.ErrPermission), errors.Is(err, os.ErrPermission), errors.Is(err, errors.ErrUnsupported):
		return exitUnavailable
	}
	return exitFailed
}

func (p *program) dispatch(o *options) error {
	switch {
	case o.command == "serve":
		return p.serve(o)
	case o.command == rankCommand:
		return peers.Rank(os.Stdin, p.out)
	case o.command == "compare" && o.table == peersTable:
		return p.comparePeers(o)
	case o.command == "compare" && o.table == algorithmsTable:
		return p.compareAlgorithms(o)
	case o.command == "compare" && o.table == abiTable:
		return p.compareABI(o)
	case o.job:
		return p.job(o)
	case o.command == "compare":
		return p.compare(o)
	case o.command == "memory":
		return p.memory(o)
	case o.command == "plot":
		return p.plotFiles(o)
	case o.testbed:
		return p.onTestbed(o)
	case o.host == "":
		return p.server(o)
	}
	return p.client(o)
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// tellEvery is how often a long run reports how far it is when the output is no terminal.
const tellEvery = 30 * mono.Second

// progress shows what is going on: on a terminal at once, elsewhere now and
// then, and never in a short run.
func (p *program) progress(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		fmt.Fprintf(p.errs, "\r\033[K%s", what)
		p.shown = true
		return
	}
	now := mono.Real{}.Now()
	if p.told == 0 {
		p.told = now
	}
	if now.Sub(p.told) >= tellEvery {
		fmt.Fprintln(p.errs, "xperf:", what)
		p.told = now
	}
}

// clear takes the progress away.
func (p *program) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.errs, "\r\033[K")
		p.shown = false
	}
}

// notice says in one line what the user should know.
func (p *program) notice(format string, args ...any) {
	p.clear()
	fmt.Fprintf(p.errs, "xperf: "+format+"\n", args...)
}
