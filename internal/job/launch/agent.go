package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
	"github.com/xwarp/xwarp/internal/progress"
)

// killGrace is how long ranks have between SIGTERM and SIGKILL.
const killGrace = time.Second

// agent runs the ranks of one host.
type agent struct {
	out    *outbox
	start  *startOrder
	pmi    *pmi.Server // for ranks that speak PMI
	queue  *queue      // that the ranks share, or nil
	links  []*linkWatch
	polled []func() // end the busy polling of devices
	ranks  []*rank
	exited sync.WaitGroup
	stdin  []chan []byte // for each rank that reads it

	programs map[int]string // that were found, by the number of the App
}

// AgentMain is the agent's program: it obeys the controller at the other end
// of in and out until that is gone or has no more use for it, and returns the
// exit status. The process does nothing else.
func AgentMain(in io.Reader, out io.WriteCloser) int {
	if path := os.Getenv(config.EnvDeviceNote); path != "" { // a janitor of ours
		return janitorMain(path)
	}
	// The ranks are children of this thread, which must not end before the
	// process does.
	runtime.LockOSThread()
	_, _ = progress.DeferSysmon() // ranks run on the same cores
	// A controller that is gone must not kill the agent before it has
	// cleaned up. Not signal.Ignore: ranks would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	a := &agent{out: newOutbox(out), programs: map[int]string{}}
	a.out.post(report{Op: opReady, Version: wireVersion})
	orders := make(chan order)
	go readOrders(in, orders, a.out)
	for o := range orders {
		if a.obey(o) {
			a.out.post(report{Op: opBye})
			a.out.close()
			<-a.out.done
			return 0
		}
	}
	a.signal(unix.SIGKILL)
	a.cleanUp()
	return 1
}

// readOrders closes orders when the controller is gone.
func readOrders(in io.Reader, orders chan<- order, out *outbox) {
	defer close(orders)
	lines := boot.NewLineReader(in)
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		o, err := parseOrder(line)
		if err != nil {
			out.post(report{Op: opFailed, Why: err.Error()})
			return
		}
		orders <- o
	}
}

// obey carries out an order. It reports whether it was the last one.
func (a *agent) obey(o order) (last bool) {
	switch o.Op {
	case opStart:
		if a.start != nil {
			a.out.post(report{Op: opFailed, Why: "a second start order"})
			return false
		}
		a.start = o.Start
		a.pmi = pmi.NewServer(o.Start.Job, o.Start.Size, o.Start.Mapping)
		a.startRanks()
		if a.start.User != "" {
			a.reapOrphans()
		}
	case opRoute:
		a.findDevice(o.Peers, o.IPv6, o.Device)
	case opFenced:
		a.pmi.Add(o.Values)
		line := marshal(boot.Reply{Op: boot.OpFenced, Values: o.Values})
		for _, r := range a.ranks {
			r.fenced(line)
		}
	case opEnded:
		for _, r := range a.ranks {
			r.ended(o.Ranks)
		}
	case opSignal:
		a.pass(unix.Signal(o.Signal))
	case opState:
		a.tellLosses()
		for _, r := range a.ranks {
			go r.tell(a.out)
		}
	case opStdin:
		for _, c := range a.stdin {
			select {
			case c <- o.Data: // the controller waits for room
			default: // of ranks that take no more
			}
		}
	case opKill:
		a.tellLosses()
		for _, l := range a.links {
			l.last()
		}
		a.end(unix.SIGTERM)
		a.signal(unix.SIGCONT) // a stopped rank would not notice
		time.AfterFunc(killGrace, func() { a.end(unix.SIGKILL) })
	case opFinish:
		a.end(unix.SIGKILL) // ghosts are left, which have nothing to lose; before cleanUp kills them as any others
		a.cleanUp()
		return true
	}
	return false
}

// pass passes on what xrun was sent. SIGTSTP does nothing to a group that no shell
// of its session has started.
func (a *agent) pass(sig unix.Signal) {
	if sig != unix.SIGTSTP {
		for _, r := range a.ranks {
			if r.number < a.start.Size || sig == unix.SIGCONT { // ghosts end with the ranks, whatever these make of a signal
				r.signal(sig)
			}
		}
		return
	}
	a.signal(unix.SIGSTOP)
	a.out.post(report{Op: opStopped})
}

func (a *agent) signal(sig unix.Signal) {
	for _, r := range a.ranks {
		r.signal(sig)
	}
}

func (a *agent) end(sig unix.Signal) {
	for _, r := range a.ranks {
		r.end(sig)
	}
}

// startRanks starts the ranks until one cannot be started.
func (a *agent) startRanks() {
	err := a.prepare()
	var bindings [][]int
	if err == nil {
		var notice string
		bindings, notice, err = a.start.bindings()
		a.notice(notice)
	}
	if err == nil {
		var notice string
		a.queue, notice, err = a.start.openQueue()
		a.notice(notice)
	}
	if err == nil {
		a.busyPoll()
		a.links = a.watchLinks()
	}
	prepared := err == nil // and what is not found after this is the program
	for _, p := range a.start.Ranks {
		var r *rank
		var cpus []int
		if p.Slot >= 0 && len(bindings) > 0 {
			cpus = bindings[p.Slot%len(bindings)]
		}
		if err == nil && a.start.ReportBindings && p.Rank < a.start.Size {
			host, _ := os.Hostname()
			a.out.post(report{Op: opNotice, Rank: p.Rank, Why: bindingOf(p.Rank, host, cpus)})
		}
		var path string
		if err == nil {
			path, err = a.program(p.App)
		}
		if err == nil {
			r, err = startRank(a.start, path, p, cpus, a.queue, a.pmi, a.out)
		}
		if err != nil {
			a.out.post(report{
				Op: opFailed, Rank: p.Rank, Why: reason(err),
				NotFound: prepared && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)),
			})
			return
		}
		a.ranks = append(a.ranks, r)
		a.exited.Add(1)
		go func() {
			defer a.exited.Done()
			r.await(a.out)
		}()
		if r.stdin != nil {
			pieces := make(chan []byte, 1)
			a.stdin = append(a.stdin, pieces)
			go r.feed(pieces, a.out)
		}
	}
}

// notice lets people know something, unless it is "".
func (a *agent) notice(text string) {
	if text != "" {
		a.out.post(report{Op: opNotice, Why: text})
	}
}

// prepare goes to the job's directory, and to its processors.
func (a *agent) prepare() error {
	if a.start.Dir != "" {
		if err := os.Chdir(a.start.Dir); err != nil {
			return fmt.Errorf("no way into its directory (--wdir): %w", err)
		}
	}
	if a.start.User != "" {
		if err := adopt(); err != nil {
			return err
		}
	}
	return a.start.confine()
}

// defaultDevice returns the device that packets to the world leave by.
func defaultDevice() (string, error) {
	routes, err := netlink.RouteList(nil, unix.AF_INET)
	if err != nil {
		return "", fmt.Errorf("listing routes: %w", err)
	}
	for _, r := range routes {
		if ones, _ := r.Dst.Mask.Size(); ones != 0 {
			continue
		}
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			return "", fmt.Errorf("device of the default route: %w", err)
		}
		return link.Attrs().Name, nil
	}
	return "", errors.New("no default route to take the network device from: give --device")
}

// feed writes to a rank what the controller sends.
func (r *rank) feed(pieces <-chan []byte, out *outbox) {
	defer r.stdin.Close()
	for b := range pieces {
		if len(b) == 0 {
			return
		}
		if _, err := r.stdin.Write(b); err != nil {
			out.post(report{Op: opStdinShut, Rank: r.number})
			return
		}
		out.post(report{Op: opStdinRoom, Rank: r.number})
	}
}

// cleanUp kills what the ranks, which are dead or dying, have left, and waits
// for the last of the output.
func (a *agent) cleanUp() {
	if a.start != nil {
		_ = killMarked(a.start.Job, a.start.Host) // the controller cannot do more about it
	}
	a.exited.Wait()
	if a.start != nil && a.start.User != "" {
		_ = killOrphans() // as above
	}
	for _, l := range a.links {
		l.close() // the program is detached next
	}
	if a.queue != nil {
		a.queue.close()
	}
	for _, end := range a.polled {
		end()
	}
	awaitFor(killGrace, func() { // not for ever: a foreign process may hold a pipe open
		for _, r := range a.ranks {
			r.output.Wait()
		}
	})
}

// awaitFor calls wait, and goes on without it after a while.
func awaitFor(most time.Duration, wait func()) {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	mono.Await(done, most)
}
