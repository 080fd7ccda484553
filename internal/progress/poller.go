package progress

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// PollerConfig says when an idle rank gives its core away. Its zero value is
// one rank on a machine of its own.
type PollerConfig struct {
	// Ranks is how many ranks and ghosts share Cores; default 1.
	Ranks int
	// Cores is how many cores they have; default, those that this process may
	// run on.
	Cores int
	// Goroutines says that the ranks are goroutines of this process and not
	// processes of their own.
	Goroutines bool
	// Spin is how long Park returns at once after there was work, so that the
	// engine polls on; default 1 ms, or 400 us with more ranks than cores, because
	// to be woken takes 20 us, or 50 us then. Each of these returns first offers
	// the core to the others then.
	Spin mono.Duration
	// NoSpin makes Park block at once.
	NoSpin bool
}

// yieldPolicy is what a poller does for others while it spins. Measured with
// ping-pongs over UDP on 4 cores, half round trip with 8 ranks: 17 us when
// they just spin, 11 us when they block at once, 8 us when they yield. The
// wrong way to yield is worse than none: runtime.Gosched between processes, or
// sched_yield between goroutines, takes 24 us and more.
type yieldPolicy uint8

const (
	yieldNever   yieldPolicy = iota // a core for each rank: now and then a goroutine may run
	yieldOS                         // sched_yield(2)
	yieldRuntime                    // runtime.Gosched
)

// gosched is how often a poller that does not yield lets another goroutine run, in calls:
// there is a garbage collector in any case. It does so only after it has been
// idle for half of the time that it spins: from a locked thread Gosched takes 14-21 us
// (46 ns from others), which in a ping-pong made 21 us of 5.
const gosched = 256

// Poller is the Parker of the real world. It returns at once for a while after
// there was work and then blocks in one ppoll(2) on everything that is watched.
//
// Owner: engine; Wake may be called by any goroutine.
type Poller struct {
	clock  mono.Clock
	spin   mono.Duration
	turns  uint32 // spins so far
	policy yieldPolicy
	event  event.Bell    // that Wake rings
	fds    []unix.PollFd // the first is event
	bells  []Dozer
	dozes  bool // of some bells Doze is another call than FD
	dozing bool // bells are asked for a short wait
	state  atomic.Uint32
	nest   *nest // nil until FD is called

	others sync.Locker   // what to let go of while it waits; nil: nothing
	copied []unix.PollFd // of fds, which others may change during ppoll
	polled []unix.PollFd // in the last ppoll: fds or copied
}

// The states of a poller.
const (
	awake    = iota
	asleep   // in ppoll, or about to be, or a caller waits on FD: Wake must write to the eventfd
	notified // Wake was called: the next Park returns at once
)

// NewPoller makes a poller. The caller closes it.
func NewPoller(clock mono.Clock, c PollerConfig) (*Poller, error) {
	if c.Ranks < 0 || c.Cores < 0 || c.Spin < 0 {
		return nil, fmt.Errorf("progress: %d ranks, %d cores, spin %v: none of them may be negative", c.Ranks, c.Cores, c.Spin)
	}
	if c.Cores == 0 {
		c.Cores = usableCores()
		if c.Goroutines {
			c.Cores = min(c.Cores, runtime.GOMAXPROCS(0))
		}
	}
	crowded := c.Ranks > c.Cores
	if c.Spin == 0 {
		c.Spin = mono.Millisecond
		if crowded {
			c.Spin = 400 * mono.Microsecond
		}
	}
	if c.NoSpin {
		c.Spin = 0
	}
	policy := yieldNever
	switch {
	case !crowded:
	case c.Goroutines:
		policy = yieldRuntime
	default:
		policy = yieldOS
	}
	bell, err := event.NewBell()
	if err != nil {
		return nil, fmt.Errorf("progress: %w", err)
	}
	if !c.Goroutines { // where many run, their threads sleep as the monitor does
		_, _ = DeferSysmon()
	}
	return &Poller{clock: clock, spin: c.Spin, policy: policy, event: bell, fds: []unix.PollFd{{Fd: int32(bell), Events: unix.POLLIN}}}, nil
}

// usableCores returns on how many cores this process may run.
func usableCores() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return runtime.NumCPU()
	}
	return set.Count()
}

// Crowded reports whether ranks must share cores.
func (p *Poller) Crowded() bool { return p.policy != yieldNever }

// Watch makes input on fd end a Park. The caller keeps fd, and calls Unwatch
// before closing it. A negative fd is ignored: it is of a carrier that has none.
func (p *Poller) Watch(fd int) {
	if fd < 0 {
		return
	}
	p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	if p.others != nil {
		p.Wake() // a Park of another goroutine does not wait for fd yet
	}
	if p.nest != nil {
		// Whatever ppoll can wait for, epoll can too, except regular files,
		// which are no input.
		_ = p.nest.set.Add(fd)
	}
}

// Bell is a carrier, or anything else with a descriptor that must be asked for
// before each wait.
type Bell interface {
	// FD returns the descriptor, the same each time, or -1 when there is none.
	FD() int
}

// Dozer is a Bell that can be had for less before a wait of up to dozeMost. For the rare thing of which
// it does not tell then, FD must be called behind that.
type Dozer interface {
	Bell
	Doze() int
}

// dozeMost is how long a wait is that begins with Doze: so seldom is FD called, and so late may come what is
// not told of.
const dozeMost = 5 * mono.Millisecond

// plainBell is a Bell of which each wait costs the same.
type plainBell struct{ Bell }

// Doze implements Dozer.
func (b plainBell) Doze() int { return b.FD() }

// WatchBell is Watch for the descriptor of b, which is asked for before each
// wait. Unwatch forgets the descriptor, and b with it.
func (p *Poller) WatchBell(b Bell) {
	if fd := b.FD(); fd >= 0 {
		p.Watch(fd)
		d, ok := b.(Dozer)
		if !ok {
			d = plainBell{b}
		}
		p.bells, p.dozes = append(p.bells, d), p.dozes || ok
	}
}

// Unwatch forgets fd.
func (p *Poller) Unwatch(fd int) {
	for i := 1; i < len(p.fds); i++ {
		if p.fds[i].Fd == int32(fd) {
			p.fds = append(p.fds[:i], p.fds[i+1:]...)
			if p.nest != nil {
				_ = p.nest.set.Remove(fd)
			}
			p.bells = slices.DeleteFunc(p.bells, func(b Dozer) bool { return b.FD() == fd })
			return
		}
	}
}

// Park implements Parker.
func (p *Poller) Park(until mono.Time, idle mono.Duration) (slept bool) {
	if spun, slept := p.Spin(idle); spun {
		return slept
	}
	p.block(until)
	return true
}

// Yield lets another thread have the core that is ready to run. It is raw, for the scheduler
// of Go need not know about a call that never sleeps.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Yield gives the core away as Spin does where ranks share cores.
func (p *Poller) Yield() {
	if p.policy == yieldRuntime {
		runtime.Gosched()
	} else {
		Yield()
	}
}

// Spin implements Spinner.
func (p *Poller) Spin(idle mono.Duration) (spun, slept bool) {
	if idle >= p.spin {
		return false, false
	}
	if p.others != nil {
		return true, p.spinShared()
	}
	switch p.policy {
	case yieldOS:
		Yield()
		return true, true
	case yieldRuntime:
		runtime.Gosched()
		return true, true
	}
	if p.turns++; p.turns%gosched == 0 && idle >= p.spin/2 {
		runtime.Gosched()
		return true, true
	}
	return true, false
}

// goschedShared is gosched for a poller whose program has several goroutines at
// work, which want to run at once.
const goschedShared = 16

// Share implements Sharer. Watch and Unwatch may be called during a Park of
// another goroutine from now on.
func (p *Poller) Share(l sync.Locker) (spins bool) {
	p.others = l
	if p.policy == yieldNever && runtime.GOMAXPROCS(0) == 1 {
		p.policy = yieldRuntime
	}
	return p.policy == yieldNever
}

// spinShared lets the others in, and run.
func (p *Poller) spinShared() (slept bool) {
	p.turns++
	if p.policy == yieldNever && p.turns%goschedShared != 0 {
		return false
	}
	p.others.Unlock()
	if p.policy == yieldOS && p.turns%goschedShared != 0 {
		Yield()
	} else {
		runtime.Gosched()
	}
	p.others.Lock()
	return true
}

// block waits in ppoll until something that is watched has input, Wake is
// called, a signal comes or the time is until.
func (p *Poller) block(until mono.Time) {
	rest := p.left(until)
	if rest <= 0 {
		return
	}
	if p.state.Swap(asleep) == notified { // else it was awake, or FD left it asleep
		p.state.Store(awake)
		return
	}
	p.dozing = p.dozes
	p.ask()
	Restore()
	n := 0
	if p.dozing {
		n = p.wait(min(rest, dozeMost))
		p.dozing = false
		if rest = p.left(until); n == 0 && rest > 0 {
			p.ask()
		}
	}
	if n == 0 && rest > 0 {
		n = p.wait(rest)
	}
	p.state.Store(awake)
	if n > 0 {
		p.look()
	}
}

// forEver is what is left until mono.Never.
const forEver = mono.Duration(math.MaxInt64)

func (p *Poller) left(until mono.Time) mono.Duration {
	if until == mono.Never {
		return forEver
	}
	return until.Sub(p.clock.Now())
}

// wait is one ppoll, and returns how many descriptors have something. Whatever the error, Park may
// return early; in practice it is a signal.
func (p *Poller) wait(most mono.Duration) int {
	var timeout *unix.Timespec
	if most != forEver {
		ts := unix.NsecToTimespec(int64(most))
		timeout = &ts
	}
	p.polled = p.fds
	if p.others != nil {
		p.copied = append(p.copied[:0], p.fds...)
		p.polled = p.copied
		p.others.Unlock()
	}
	n, _ := unix.Ppoll(p.polled, timeout, nil)
	if p.others != nil {
		p.others.Lock()
	}
	return n
}

// ask prepares the bells for a wait.
func (p *Poller) ask() {
	for _, b := range p.bells {
		if p.dozing {
			b.Doze()
		} else {
			b.FD()
		}
	}
}

// Rearm implements Sharer. During a long wait it ends that, for FD may cost a caller that sends often too much.
func (p *Poller) Rearm() {
	if p.dozes && !p.dozing {
		p.Wake()
		return
	}
	p.ask()
}

// look empties the eventfd and finds descriptors that were closed:
// with one of them watched no Park would wait again.
func (p *Poller) look() {
	fds := p.polled
	if fds[0].Revents != 0 {
		p.event.Quiet()
	}
	for i := range fds {
		if fds[i].Revents&unix.POLLNVAL != 0 && p.watches(fds[i].Fd) {
			panic(fmt.Sprintf("progress: descriptor %d was closed without Unwatch", fds[i].Fd))
		}
	}
}

// watches reports whether fd is watched still.
func (p *Poller) watches(fd int32) bool {
	return slices.ContainsFunc(p.fds, func(f unix.PollFd) bool { return f.Fd == fd })
}

// Wake implements Waker.
func (p *Poller) Wake() {
	if p.state.Swap(notified) == asleep {
		p.event.Ring()
	}
}

// Close gives back the eventfd; Wake must not be called any more. The watched
// descriptors stay open.
func (p *Poller) Close() error {
	if len(p.fds) == 0 {
		return errors.New("progress: poller was closed before")
	}
	bell := p.event // stays as it is: the last Wake may have to read it still
	err := bell.Close()
	if p.nest != nil {
		err = errors.Join(err, p.nest.close())
	}
	p.fds, p.nest = nil, nil
	return err
}
