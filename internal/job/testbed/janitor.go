package testbed

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// janitorName is argv[0] of the janitor process.
const janitorName = "xwarp-janitor"

// The janitor is this program executed again. It must not run the program's
// main, or a test binary would run its tests in it; a package initialiser is
// the one hook that no program can forget.
func init() {
	if len(os.Args) == 3 && os.Args[0] == janitorName {
		os.Exit(janitorMain(os.Args[1], os.Args[2]))
	}
}

// janitor is the owner's side: a pipe that breaks when the owner dies.
type janitor struct {
	prefix string
	pipe   *os.File
	cmd    *exec.Cmd
}

// startJanitor starts the process that will remove the namespaces of o whose
// names go on with label. It must run before there are any.
func startJanitor(o owner, label string) (*janitor, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if label == "" {
		// Unique in the process for as long as the testbed lives.
		label = strconv.Itoa(int(w.Fd()))
	}
	j := &janitor{prefix: o.prefix() + "-" + label, pipe: w}
	if names, err := netnsNames(j.prefix + "-"); err != nil || len(names) > 0 {
		w.Close()
		if err == nil {
			err = &ConfigError{"Name", strconv.Quote(label), "a name that no other testbed of the process has"}
		}
		return nil, err
	}
	j.cmd = &exec.Cmd{
		Path: "/proc/self/exe",
		Args: []string{janitorName, j.prefix, strconv.Itoa(o.pid)},
		// The race detector sleeps for a second before it exits.
		Env:   []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"},
		Dir:   "/",
		Stdin: r,
		// A session of its own: Ctrl-C and a closing terminal do not reach it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := j.cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return j, nil
}

// dismiss lets the janitor do its work and waits for it. Whatever it could
// not do is tried once more here, to learn why.
func (j *janitor) dismiss() error {
	j.pipe.Close()
	_ = j.cmd.Wait() // its result shows in what is left
	_, err := remove(j.prefix+"-", os.Getpid())
	return err
}

// janitorMain waits for the owner to go and returns the exit status.
func janitorMain(prefix, ownerPID string) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	pid, err := strconv.Atoi(ownerPID)
	if err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if _, err := remove(prefix+"-", pid); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
