package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
)

// rank is a process of the job, seen by its agent.
type rank struct {
	number  int
	app     int // which of the job's programs it runs
	cmd     *exec.Cmd
	socket  *os.File                    // to the rank
	boot    *outbox                     // lines for the rank
	asked   chan struct{}               // closed when no more requests come from the rank
	session atomic.Pointer[pmi.Session] // of a rank that speaks PMI
	ours    atomic.Bool                 // it speaks our own language, and answers
	doing   chan string                 // answers about what it does

	queue     *queue         // that it shares with others, or nil
	queueSlot int            // its place there
	stdin     *os.File       // of one that reads the standard input
	record    *os.File       // memory of what it leaves behind, or nil
	pipes     [2]*os.File    // that it writes its output to
	said      sync.WaitGroup // until all that it has written is passed on
	output    sync.WaitGroup // until both outputs are at their end: children may go on

	mu     sync.Mutex
	reaped bool        // its number may belong to another process by now
	told   unix.Signal // the last one that it was told to end with while it lived, or 0
}

// bootFD is the descriptor that a rank finds its socket at: the first of
// exec.Cmd.ExtraFiles.
const bootFD = 3

// environment returns what rank r finds in its environment.
func (s *startOrder) environment(r rankPlan) []string {
	env := append(append(cleanEnv(os.Environ()), s.Env...), s.Apps[r.App].Env...)
	for _, v := range []struct {
		name  string
		value any
	}{
		{config.EnvRank, r.Rank}, {config.EnvSize, s.Size}, {config.EnvGhosts, s.Ghosts}, {config.EnvHost, s.Host}, {config.EnvLocalRank, r.Local},
		{config.EnvBootFD, bootFD}, {boot.EnvPMIFD, bootFD}, {pmi.EnvRank, r.Rank}, {pmi.EnvSize, s.Size},
		{config.EnvFabric, s.Fabric}, {config.EnvDevice, s.Device}, {config.EnvJob, s.Job},
	} {
		env = append(env, fmt.Sprintf("%s=%v", v.name, v.value))
	}
	if cpus, err := AllowedCPUs(); err == nil { // else the rank takes its host for the machine
		env = append(env, fmt.Sprintf("%s=%d/%d", config.EnvMachine, s.Neighbors, len(cpus)))
	}
	return env
}

// cleanEnv leaves out what belongs to the rank that xrun itself may be.
func cleanEnv(env []string) []string {
	var clean []string
	for _, e := range env {
		switch name, _, _ := strings.Cut(e, "="); name {
		case config.EnvRank, config.EnvSize, config.EnvGhosts, config.EnvHost, config.EnvLocalRank, config.EnvBootFD, config.EnvFabric, config.EnvDevice, config.EnvSlot, config.EnvJob, config.EnvRecordFD,
			boot.EnvPMIFD, pmi.EnvRank, pmi.EnvSize, pmi.EnvPort, pmi.EnvID, pmi.EnvJobID:
		default:
			clean = append(clean, e)
		}
	}
	return clean
}

// startRank starts a rank on the calling thread, which must live as long as
// the agent: the kernel kills the rank when it ends. The rank may use cpus, or
// all if there are none.
func startRank(s *startOrder, path string, p rankPlan, cpus []int, q *queue, server *pmi.Server, out *outbox) (*rank, error) {
	var opened []io.Closer // the rank's ends, and on failure ours
	defer func() {
		for _, c := range opened {
			c.Close()
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "rank")
	_ = unix.SetNonblock(pair[0], true) // ours only; it makes a blocked read end with Close
	ours := os.NewFile(uintptr(pair[0]), "boot")
	opened = append(opened, theirs)

	r := &rank{number: p.Rank, app: p.App, queue: q, queueSlot: p.Local, socket: ours, asked: make(chan struct{}), doing: make(chan string, 1), cmd: &exec.Cmd{
		Path:       path,
		Args:       append([]string{s.Apps[p.App].Program}, s.Apps[p.App].Args...),
		Env:        s.environment(p),
		Dir:        s.Apps[p.App].Dir,
		ExtraFiles: []*os.File{theirs},
		// A group of its own: Ctrl-C reaches the ranks through xrun only, and a
		// signal to the group reaches the rank's children. But the session is
		// that of all ranks of this machine: Linux shares processors out by
		// session (autogroup), and sched_yield gives a core to no other one.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}}
	pipes, err := r.makePipes(p.Rank < s.Size && (s.StdinTo == p.Rank || s.StdinTo == StdinAll))
	opened = append(opened, pipes.theirs...)
	if s.Merge {
		r.cmd.Stderr = r.cmd.Stdout // in one pipe, so in the order that it was written in
	}
	if err == nil && s.User != "" {
		r.cmd.SysProcAttr.Credential, err = credentials(s.User)
	}
	if err == nil && q != nil {
		var files []*os.File
		var env string
		files, env, err = q.pass(p.Local, bootFD+1)
		r.cmd.ExtraFiles, r.cmd.Env = append(r.cmd.ExtraFiles, files...), append(r.cmd.Env, env)
		for _, f := range files {
			opened = append(opened, f)
		}
	}
	if err == nil {
		err = r.giveRecord(s)
	}
	if err == nil {
		err = startOn(cpus, r.cmd)
	}
	if err != nil {
		opened = append(append(opened, ours), pipes.ours...)
		if r.record != nil {
			opened = append(opened, r.record)
		}
		return nil, err
	}
	out.post(report{Op: opStarted, Rank: p.Rank, PID: r.cmd.Process.Pid})
	r.boot = newOutbox(ours)
	go r.relayRequests(boot.Reply{Op: boot.OpWelcome, Version: boot.WireVersion, JobKey: s.JobKey, Secret: s.Secret}, server, out)
	r.passOn(out)
	return r, nil
}

// passOn passes on what the rank writes from now on.
func (r *rank) passOn(out *outbox) {
	r.said.Add(2)
	r.output.Add(2)
	for i, f := range r.pipes {
		go func() {
			defer r.output.Done()
			said := sync.OnceFunc(r.said.Done)
			defer said()
			out.forward(&lastWords{f, said}, report{Op: opOutput, Rank: r.number, Stderr: i == 1})
		}()
	}
}

// rankPipes are the ends of the pipes of a rank's standard files.
type rankPipes struct{ ours, theirs []io.Closer }

func (r *rank) makePipes(stdin bool) (rankPipes, error) {
	var p rankPipes
	for i, theirs := range []*io.Writer{&r.cmd.Stdout, &r.cmd.Stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return p, err
		}
		r.pipes[i], *theirs = read, write
		p.ours, p.theirs = append(p.ours, read), append(p.theirs, write)
	}
	if !stdin {
		return p, nil
	}
	read, write, err := os.Pipe()
	if err == nil {
		r.cmd.Stdin, r.stdin = read, write
		p.ours, p.theirs = append(p.ours, write), append(p.theirs, read)
	}
	return p, err
}

// startOn starts cmd on some of the processors that this process may use, or on
// all if there are none. A process inherits them from the thread that forks it.
func startOn(cpus []int, cmd *exec.Cmd) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	allowed, err := AllowedCPUs()
	if err != nil {
		return err
	}
	if err := useOnly(cpus); err != nil {
		return fmt.Errorf("binding to processors %v: %w", cpus, err)
	}
	return errors.Join(cmd.Start(), useOnly(allowed))
}

// lastWords reads from a pipe. Once it has a deadline, which is when the rank has
// ended, it tells when the pipe is empty, and goes on: children of the rank may
// hold the pipe open and write more.
type lastWords struct {
	*os.File
	said func()
}

func (l *lastWords) Read(b []byte) (int, error) {
	for {
		n, err := l.File.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if n, err = l.now(b); err != unix.EAGAIN {
			return n, err
		}
		l.said()
		if err := l.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
}

// now reads what is there.
func (l *lastWords) now(b []byte) (n int, err error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return 0, err
	}
	gone := raw.Control(func(fd uintptr) {
		for n, err = unix.Read(int(fd), b); err == unix.EINTR; {
			n, err = unix.Read(int(fd), b)
		}
	})
	switch {
	case gone != nil:
		return 0, gone
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// await waits for the end of the rank, passes on what it has written, and reports it.
func (r *rank) await(out *outbox) {
	// Leave the process a zombie, so that its number stays its own, until
	// it cannot be signalled any more.
	for unix.Waitid(unix.P_PID, r.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	r.mu.Lock()
	r.reaped = true
	told := r.told
	r.mu.Unlock()
	_ = r.cmd.Wait() // the status is what counts
	r.finishReports()
	r.boot.close()
	for _, p := range r.pipes {
		_ = p.SetReadDeadline(time.Now()) // see lastWords
	}
	awaitFor(killGrace, r.said.Wait) // longer if this agent stood still, but not if xrun's output is not read
	r.sendRecord(out)
	end := report{Op: opExit, Rank: r.number}
	ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		end.Signal, end.Core = int(ws.Signal()), ws.CoreDump()
	} else {
		end.Status = ws.ExitStatus()
	}
	// One that was killed may not have been dead yet when it was told to end.
	end.Told = told == unix.SIGKILL || told != 0 && ws.Signal() != unix.SIGKILL
	out.post(end)
	if r.queue == nil {
		return
	}
	// Last: it waits while another rank is in the middle of using the queue.
	if err := r.queue.vacate(r.queueSlot); err != nil {
		out.post(report{Op: opBoot, Rank: r.number, Why: "its queueSlot: " + err.Error()})
	}
}

// finishReports waits until all that the rank asked before its end is reported. A
// child of the rank may hold the socket open: what is in it is still read, and
// then there is nothing more to come. Nor is anything more to be said.
func (r *rank) finishReports() {
	if raw, err := r.socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
	<-r.asked
}

// signal sends sig to the rank and its children.
func (r *rank) signal(sig unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(sig)
}

// send is signal for callers that have locked the rank.
func (r *rank) send(sig unix.Signal) {
	if !r.reaped {
		_ = unix.Kill(-r.cmd.Process.Pid, sig)
	}
}

// end tells the rank and its children to end. Whether it has ended already, or has been killed
// and only has had no processor to end on, is what tells a death that ends the job from those that follow.
func (r *rank) end(sig unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var dead unix.Siginfo
	for !r.reaped && unix.Waitid(unix.P_PID, r.cmd.Process.Pid, &dead, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil) == unix.EINTR {
	}
	if !r.reaped && dead.Signo == 0 && !doomed(r.cmd.Process.Pid) {
		r.told = sig
	}
	r.send(sig)
}

// doomed reports whether a process was sent SIGKILL: that stays pending until its end.
func doomed(pid int) bool {
	status, _ := readSome(fmt.Sprintf("/proc/%d/status", pid), maxStatus)
	_, rest, _ := strings.Cut(string(status), "\nShdPnd:\t")
	mask, _, _ := strings.Cut(rest, "\n")
	pending, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && pending>>(unix.SIGKILL-1)&1 == 1
}

// maxStatus is more than the kernel tells of a process that way.
const maxStatus = 64 << 10
