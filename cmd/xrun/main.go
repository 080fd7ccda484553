// Xrun starts the ranks of an MPI job; see xrun --help.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/cmd/internal/cli"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/mpi"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == launch.AgentArg {
		os.Exit(launch.AgentMain(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 2 && os.Args[1] == launch.GhostArg {
		os.Exit(ghost(os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if page().Answer(args, stdout) {
		return 0
	}
	c, record, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage())
		return 0
	}
	if errors.Is(err, errVersion) {
		fmt.Fprintln(stdout, page().Version())
		return 0
	}
	if err == nil {
		err = record.prepare(&c, stdout, stderr)
	}
	if err == nil {
		c.Stdin, c.Stdout, c.Stderr = readableStdin(), stdout, stderr
		signals := make(chan os.Signal, 16)
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGCONT)
		c.Signals, c.Suspend = signals, suspend
		if err = launch.Run(c); record.err != nil {
			err = errors.Join(err, record.err)
		}
		signal.Stop(signals) // a second signal ends the process
	}
	if err != nil {
		fmt.Fprintf(stderr, "xrun: %v\n", err)
		if _, ok := errors.AsType[*launch.ConfigError](err); ok {
			fmt.Fprintln(stderr, "xrun: see xrun --help")
		}
	}
	return launch.ExitCode(err)
}

// ghost is a ghost of a job. It does not return before the job is over.
func ghost(stderr io.Writer) int {
	if err := mpi.Ghost(); err != nil {
		fmt.Fprintf(stderr, "xrun: ghost: %v\n", err)
		return 1
	}
	return 0
}

// page is what xrun says about itself.
func page() cli.Page {
	return cli.Page{
		Name: "xrun", Summary: "start the ranks of an MPI job, on this machine or on several",
		Help: usage(), Flags: flagSet(&launch.Config{}, &options{}), SeeAlso: []string{"mpiexec(1)", "srun(1)"},
	}
}

// suspend stops this process, as Ctrl-Z would if it did not care for its ranks.
func suspend() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// readableStdin returns the standard input, unless it is a terminal that
// belongs to another job of the shell: reading would stop us.
func readableStdin() io.Reader {
	foreground, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err == nil && foreground != unix.Getpgrp() {
		return nil
	}
	return os.Stdin
}

// notice marks what xrun itself says.
type notice struct{ w io.Writer }

func (n notice) Write(p []byte) (int, error) { return fmt.Fprintf(n.w, "xrun: %s", p) }
