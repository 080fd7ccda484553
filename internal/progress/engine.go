// Package progress is the engine: the one loop that moves everything of a
// rank. Progress happens in the thread that calls, as in every fast MPI; there
// is no engine goroutine to hop to.
package progress

import (
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/assert"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// Source is anything that makes progress when asked.
type Source interface {
	// Poll does up to budget items of work, fires the timers that are due at
	// now, and returns how many items it did.
	Poll(now mono.Time, budget int) int
	// Deadline returns when Poll must be called though nothing arrived, or
	// mono.Never.
	Deadline() mono.Time
}

// Parker waits for input. The real one is [NewPoller]'s; in the simulator it
// hands the processor to the scheduler.
type Parker interface {
	// Park returns when input may have arrived or the time is until,
	// whichever is first. It may return early. idle is for how long the
	// caller has waited and there has been nothing to do. slept is false
	// when it returned at once, so that the time is still the same.
	Park(until mono.Time, idle mono.Duration) (slept bool)
}

// Spinner is a Parker that returns at once for a while before it waits. Asking
// it spares computing the deadline each time.
type Spinner interface {
	// Spin reports whether it is too early to wait; slept is as Park's.
	Spin(idle mono.Duration) (spun, slept bool)
}

// Sharer is a Parker that can let others in while it waits.
type Sharer interface {
	// Share makes every wait call l.Unlock before and l.Lock after it, whenever
	// the calling thread may stand still. yieldNever says that there is a core for
	// each rank, so that to spin for a moment takes nothing from others.
	Share(l sync.Locker) (yieldNever bool)
	// Rearm prepares the bells anew for a wait that is under way: others have looked at
	// what they are of, and been told that they look by themselves.
	Rearm()
}

// Budget is how many items one source may handle in one step, so that a busy
// source cannot starve the others.
const Budget = 64

// clockEvery is how many steps of a spinning wait share one reading of the
// clock: it costs as much as polling a port.
const clockEvery = 4

// Engine polls its sources. One caller at a time may be inside; a second one
// is a broken program and panics. Callers that a lock keeps apart share it so
// that the lock is free while one of them waits in Park: see Share.
type Engine struct {
	clock   mono.Clock
	parker  Parker
	sources []Source
	guard   assert.Guard // a step is running
	now     mono.Time
	worked  mono.Time // when a step last did something, or the present wait began
	waiting bool      // the next step follows a Park
	slept   bool      // in which time has passed
	parked  bool      // a wait in the kernel has begun since the last step
	stale   uint8     // steps since the clock was read

	nudged    atomic.Bool
	waker     Waker     // the parker, when it is one
	spinner   Spinner   // likewise
	sleepHook SleepHook // or nil
}

// New returns an engine without sources.
func New(clock mono.Clock, parker Parker) *Engine {
	e := &Engine{clock: clock, parker: parker, worked: clock.Now()}
	e.waker, _ = parker.(Waker)
	e.spinner, _ = parker.(Spinner)
	return e
}

// Add adds a source. Sources are polled in the order in which they were added.
func (e *Engine) Add(s Source) { e.sources = append(e.sources, s) }

// Remove takes a source out.
func (e *Engine) Remove(s Source) {
	for i, have := range e.sources {
		if have == s {
			e.sources = append(e.sources[:i], e.sources[i+1:]...)
			return
		}
	}
}

// Moved tells that the caller has done work of its own between steps, so that
// the wait that follows is a new one.
func (e *Engine) Moved() { e.waiting = false }

// Crowded reports whether there are more ranks than cores: then a waiter
// gives its core away at once, and does not look for long whether that will be
// necessary.
func (e *Engine) Crowded() bool {
	p, ok := e.parker.(interface{ Crowded() bool })
	return ok && p.Crowded()
}

// Yield gives the core to another rank, where they share it, for a caller that knows better
// than by the time how long it is to do so: while others have the core, time passes.
func (e *Engine) Yield() {
	if p, ok := e.parker.(interface{ Yield() }); ok {
		p.Yield()
	}
}

// watcher is a parker that descriptors can end the wait of.
type watcher interface {
	WatchBell(Bell)
	Unwatch(fd int)
}

// WatchBell makes a bell end a Park; see Poller.WatchBell. It returns false when
// the parker has no use for one: in a simulation.
func (e *Engine) WatchBell(b Bell) bool {
	w, ok := e.parker.(watcher)
	if ok {
		w.WatchBell(b)
	}
	return ok
}

// Unwatch forgets the descriptor of a bell, which is closed only then.
func (e *Engine) Unwatch(fd int) {
	if w, ok := e.parker.(watcher); ok {
		w.Unwatch(fd)
	}
}

// Now returns the time of the present or last step.
func (e *Engine) Now() mono.Time { return e.now }

// LastStep returns about when the last step was made; 0 before the first one. Any
// goroutine may call it: it looks at one word that the owner writes without a lock or
// an atomic operation, which would cost each step as much as a poll.
//
//go:norace
func (e *Engine) LastStep() mono.Time { return e.now }

// Worked returns when a step last did something, or the present wait began.
func (e *Engine) Worked() mono.Time { return e.worked }

// Parked reports whether the present step follows a wait in the kernel: it may be for what
// ended that.
func (e *Engine) Parked() bool { return e.parked }

// Clock returns the clock that the engine runs on.
func (e *Engine) Clock() mono.Clock { return e.clock }

// SleepHook is told of waits that last.
type SleepHook interface {
	// Sleep is called before the thread that waits is given away, and Wake after
	// it has come back.
	Sleep()
	Wake()
}

// SetSleepHook makes the engine tell s when it sleeps.
func (e *Engine) SetSleepHook(s SleepHook) { e.sleepHook = s }

// Share prepares the engine for several goroutines that l keeps apart: Park gives
// l away while it waits, and the others may step meanwhile. shared is false when
// the parker cannot do that; yieldNever is as [Sharer] says.
func (e *Engine) Share(l sync.Locker) (shared, yieldNever bool) {
	s, ok := e.parker.(Sharer)
	if !ok || e.waker == nil {
		return false, false
	}
	return true, s.Share(l)
}

// Rearm is the Sharer's, for a goroutine that has stepped during the Park of another one.
func (e *Engine) Rearm() { e.parker.(Sharer).Rearm() }

// Wake ends the present Park, or the next one when there is none. Any goroutine
// may call it.
func (e *Engine) Wake() {
	if e.waker != nil {
		e.waker.Wake()
	}
}

// Step polls every source once and returns how many items of work were done; a Nudge is
// one, too.
func (e *Engine) Step() int {
	e.guard.Enter("progress: two goroutines are inside one engine: calls on one rank must not overlap")
	if !e.waiting || e.slept || e.stale == clockEvery {
		e.now, e.stale = e.clock.Now(), 0
	}
	work := e.nudges()
	for _, s := range e.sources {
		work += s.Poll(e.now, Budget)
	}
	if work > 0 || !e.waiting { // what the caller computed before is no idle time
		e.worked = e.now
	}
	e.waiting, e.parked = false, false
	e.stale++
	e.guard.Leave()
	return work
}

// SinceStep returns how long ago the last step was, or a few steps more, for a caller that
// waits. It reads the clock.
func (e *Engine) SinceStep() mono.Duration { return e.clock.Now().Sub(e.now) }

// Park waits until there may be work. Call it when Step returned 0:
//
//	for !done() {
//		if e.Step() == 0 {
//			e.Park()
//		}
//	}
func (e *Engine) Park() {
	e.waiting = true
	e.slept = true // for goroutines that step meanwhile, where the engine is shared
	if e.spinner != nil {
		spun, slept := e.spinner.Spin(e.now.Sub(e.worked))
		if spun {
			e.slept = slept
			return
		}
	}
	if e.sleepHook != nil {
		e.sleepHook.Sleep()
	}
	e.parked = true
	e.slept = e.parker.Park(e.NextDeadline(), e.now.Sub(e.worked))
	if e.sleepHook != nil {
		e.sleepHook.Wake()
	}
}

// NextDeadline returns when the engine must step though nothing arrives: the
// earliest deadline of its sources, or mono.Never.
func (e *Engine) NextDeadline() mono.Time {
	until := mono.Never
	for _, s := range e.sources {
		until = min(until, s.Deadline())
	}
	return until
}
