// Command xping is an rping: it tries RDMA Send, Read and Write with another
// one, or with rping itself; see `xping --help`.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/xwarp/xwarp/cmd/xping/rping"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// Exit codes.
const (
	exitOK           = 0
	exitFailed       = 1 // the connection was lost, or data were wrong
	exitUsage        = 2
	exitUnavailable  = 3 // this machine or user lacks what is needed
	exitNoConnection = 4 // there is no server, or it refuses
	exitInterrupted  = 130
)

func main() {
	p := &program{out: os.Stdout, errs: os.Stderr}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		p.stop()
		<-signals // it takes too long
		os.Exit(exitInterrupted)
	}()
	os.Exit(p.run(os.Args[1:]))
}

// stopper is a client or a server.
type stopper interface{ Stop() }

// program is one run of xping.
type program struct {
	out  io.Writer
	errs io.Writer

	mu      sync.Mutex // everything below, and out
	ends    []stopper
	stopped bool
}

// run does what args say and returns the exit code.
func (p *program) run(args []string) int {
	if page().Answer(args, p.out) {
		return exitOK
	}
	o, err := parse(args)
	if err == nil && o.help {
		_, err = io.WriteString(p.out, usage)
	} else if err == nil {
		err = p.dispatch(o)
	}
	if o.endless() && onlyInterrupted(err) {
		return exitOK // which is the only way for it to end
	}
	if err == nil {
		return exitOK
	}
	p.notice("%v", err)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(p.errs, "`xping --help` shows how it is used.")
		return exitUsage
	case errors.Is(err, rping.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, rping.ErrConnect):
		return exitNoConnection
	case errors.Is(err, testbed.ErrPermission), errors.Is(err, os.ErrPermission), errors.Is(err, errors.ErrUnsupported):
		return exitUnavailable
	}
	return exitFailed
}

// onlyInterrupted reports whether err holds nothing but that an end was stopped.
func onlyInterrupted(err error) bool {
	others := []error{rping.ErrConnect, rping.ErrLost, rping.ErrMismatch, rping.ErrProtocol}
	return errors.Is(err, rping.ErrInterrupted) && !slices.ContainsFunc(others, func(bad error) bool { return errors.Is(err, bad) })
}

func (p *program) dispatch(o *options) error {
	switch {
	case o.testbed:
		return p.onTestbed(o)
	case o.server:
		return p.server(o, func(s *rping.Server) {
			if !o.json {
				p.print("listening %v\n", s.Addr())
			}
			p.begin(s)
		})
	}
	return p.client(o)
}

// begin notes an end that a signal is to stop.
func (p *program) begin(s stopper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, s)
	if p.stopped {
		s.Stop()
	}
}

// stop ends what runs.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, s := range p.ends {
		s.Stop()
	}
}

// notice says in one line what the user should know.
func (p *program) notice(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.errs, "xping: "+format+"\n", args...)
}
