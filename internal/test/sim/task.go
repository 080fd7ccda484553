package sim

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Task is code of one rank, ghost or service that runs on a node as a
// coroutine. It is the clock (mono.Clock) and the parker (progress.Parker) of
// its engine:
//
//	progress.New(task, task)
type Task struct {
	world *World
	node  *Node
	id    int
	name  string
	doing string // for people
	rand  *rand.Rand

	now      mono.Time // the task's own clock
	parked   bool
	notified bool      // Wake was called: the next Park returns at once
	frames   bool      // parked: frames wake it
	deadline mono.Time // parked: time wakes it
	armed    mono.Time // when its timer fires next; Never when it is not in the heap
	ended    bool

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// PanicError is what Run returns when a task panicked.
type PanicError struct {
	Task  string
	Seed  uint64
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("sim: seed %d: task %s panicked: %v\n%s", e.Seed, e.Task, e.Value, e.Stack)
}

// Unwrap returns the value of the panic when it is an error.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// unwound is the panic that ends a task when the world stops before it does.
type unwound struct{}

// Go adds a task on a node. It starts when Run does or, from inside a running
// world, at the present time. An error that body returns ends the world.
func (w *World) Go(n *Node, name string, body func(*Task) error) *Task {
	t := &Task{world: w, node: n, id: len(w.tasks), name: name, now: w.present(), armed: mono.Never}
	t.rand = w.random(randomTask, t.id)
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.run(body)
	})
	w.tasks = append(w.tasks, t)
	n.tasks = append(n.tasks, t)
	w.live++
	w.push(t.now, (*resume)(t))
	return t
}

// run calls the body and keeps what went wrong. A task that leaves through
// runtime.Goexit takes the caller of Run with it, as testing.T.FailNow wants.
func (t *Task) run(body func(*Task) error) {
	defer func() {
		switch v := recover().(type) {
		case nil, unwound:
		default:
			t.world.failed = &PanicError{Task: t.name, Seed: t.world.config.Seed, Value: v, Stack: debug.Stack()}
		}
	}()
	if err := body(t); err != nil && t.world.failed == nil {
		t.world.failed = fmt.Errorf("sim: seed %d: task %s: %w", t.world.config.Seed, t.name, err)
	}
}

// Name returns the name given to Go.
func (t *Task) Name() string { return t.name }

// Node returns the node that the task runs on.
func (t *Task) Node() *Node { return t.node }

// World returns the world that the task lives in.
func (t *Task) World() *World { return t.world }

// Rand returns the task's own random numbers, drawn from the world's seed.
func (t *Task) Rand() *rand.Rand { return t.rand }

// Doing tells people who read about a deadlock what the task is about to do.
func (t *Task) Doing(what string) { t.doing = what }

// String says what the task does now.
func (t *Task) String() string {
	s := fmt.Sprintf("%s on node %d", t.name, t.node.id)
	if t.doing != "" {
		s += ", doing: " + t.doing
	}
	switch {
	case !t.parked:
		return s + ", is running"
	case !t.frames:
		s += ", waits"
	default:
		s += ", waits for a frame"
	}
	if t.deadline == mono.Never {
		return s + " without a deadline"
	}
	return s + fmt.Sprintf(" until %v", mono.Duration(t.deadline))
}

// Now lets Config.StepCost pass and returns the task's time. Everything that
// was to happen in the world until then has happened.
func (t *Task) Now() mono.Time {
	t.now = t.now.Add(t.world.config.StepCost)
	t.settle()
	return t.now
}

// Park waits until a frame arrives at a port that the task reads, room comes
// free in a TX ring that had none, Wake is called or the time is until.
// idle is not used: a task has nothing better to do than to wait. slept is
// always true.
func (t *Task) Park(until mono.Time, _ mono.Duration) (slept bool) {
	t.settle()
	if until > t.now && !t.notified && !t.node.input(t) {
		t.wait(until, true)
	}
	t.notified = false
	return true
}

// Wake ends the present Park, or the next one when there is none, as
// progress.Waker wants. Tasks of the same world may call it, and scripts.
func (t *Task) Wake() {
	t.notified = true
	if t.frames {
		t.wake()
	}
}

// Sleep lets d pass, whatever arrives: the task computes.
func (t *Task) Sleep(d mono.Duration) {
	t.settle()
	if end := t.now.Add(d); end > t.now {
		t.wait(end, false)
	}
}

// settle lets the world catch up with the task's clock.
func (t *Task) settle() {
	w := t.world
	if len(w.events) > 0 && w.events[0].at <= t.now || t.now > mono.Time(w.config.Limit) {
		w.push(t.now, (*resume)(t))
		t.handOver()
	}
}

// wait parks the task until somebody wakes it or the time is until.
func (t *Task) wait(until mono.Time, frames bool) {
	t.parked, t.frames, t.deadline = true, frames, until
	t.arm()
	t.handOver()
}

// arm puts the task's timer into the heap unless it is there already: a task
// that parks a million times before its deadline has one timer, not a million.
func (t *Task) arm() {
	if t.deadline < t.armed {
		t.armed = t.deadline
		t.world.push(t.armed, (*timer)(t))
	}
}

// wake makes a parked task run at the present time.
func (t *Task) wake() {
	if t.parked {
		t.parked = false
		t.world.push(t.world.present(), (*resume)(t))
	}
}

func (t *Task) handOver() {
	if !t.yield(struct{}{}) {
		panic(unwound{})
	}
}

// resume is the event that runs a task.
type resume Task

func (r *resume) fire(w *World) {
	t := (*Task)(r)
	t.now = max(t.now, w.now)
	w.note(traceResume, uint64(t.id), t.node.id, nil)
	w.running = t
	_, more := t.next()
	w.running = nil
	if !more {
		t.ended = true
		w.live--
		w.note(traceEnd, uint64(t.id), t.node.id, nil)
	}
}

// timer is the event that ends a task's wait. It may come early, because the
// task has parked again since it was armed.
type timer Task

func (r *timer) fire(w *World) {
	t := (*Task)(r)
	if w.now != t.armed {
		return // replaced by an earlier one, which has fired
	}
	t.armed = mono.Never
	switch {
	case !t.parked:
	case t.deadline <= w.now:
		t.wake()
	default:
		t.arm()
	}
}
