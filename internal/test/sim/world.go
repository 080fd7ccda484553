package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Config describes a world. Its zero value is a quiet 10 Gbit/s network.
type Config struct {
	Seed      uint64        // of everything that is random; 0 is a seed like any other
	StepCost  mono.Duration // what reading the clock costs a task; default 100 ns
	Limit     mono.Duration // virtual time after which Run gives up; default 10 minutes
	MTU       int           // largest IP packet in bytes; default 9000
	Up        LinkConfig    // from each node to the switch
	Down      LinkConfig    // from the switch to each node
	ArenaSize int           // bytes of arena per node; default 20 MiB
	Frames    int           // frames in the pool of a port; default 1024
	RxDepth   int           // buffers in the RX ring and in the FILL ring of a port; default Frames/2
	TxDepth   int           // buffers in the TX ring of a port; default Frames/4
	Queues    int           // of a NIC, which spreads what it receives over them by the UDP ports; default 1
	Log       io.Writer     // one line per event, for people; default none
}

func (c *Config) fill() {
	fallback(&c.StepCost, 100*mono.Nanosecond)
	fallback(&c.Limit, 600*mono.Second)
	fallback(&c.MTU, 9000)
	fallback(&c.ArenaSize, 20<<20)
	fallback(&c.Frames, 1024)
	fallback(&c.RxDepth, c.Frames/2)
	fallback(&c.TxDepth, c.Frames/4)
	c.Up.fill()
	c.Down.fill()
	if c.TxDepth < fabric.MaxBufs || c.RxDepth < fabric.MaxBufs || c.Frames < 2*fabric.MaxBufs {
		panic(fmt.Sprintf("sim: Config: %d frames, RX ring %d, TX ring %d: a frame of %d buffers would never fit",
			c.Frames, c.RxDepth, c.TxDepth, fabric.MaxBufs))
	}
}

func fallback[T int | int64 | mono.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

// Why a run ended before its tasks did. The error of Run is a [HaltError]
// that wraps one of them.
var (
	ErrDeadlock  = errors.New("deadlock: every task waits and nothing is going to happen")
	ErrTimeLimit = errors.New("virtual time limit reached")
)

// HaltError says that the world stopped with tasks still running.
type HaltError struct {
	Reason error // ErrDeadlock or ErrTimeLimit
	Seed   uint64
	At     mono.Time
	Tasks  []string // what each task that has not ended was doing
}

func (e *HaltError) Error() string {
	return fmt.Sprintf("sim: seed %d at %v: %v:\n\t%s",
		e.Seed, mono.Duration(e.At), e.Reason, strings.Join(e.Tasks, "\n\t"))
}

func (e *HaltError) Unwrap() error { return e.Reason }

// World is a set of nodes, what connects them and what runs on them.
type World struct {
	config  Config
	now     mono.Time // of the event being handled
	events  heap
	order   *rand.Rand // breaks ties
	pushed  uint32
	trace   trace
	nodes   []*Node
	heal    mono.Time // end of the partition between Node.islands
	tasks   []*Task
	live    int   // tasks that have not ended
	running *Task // the task whose code runs now, or nil
	failed  error
	packets uint64    // packets numbered so far
	conns   uint64    // connections of streams, likewise
	idle    []*packet // packets to use again
	poison  []byte    // what memory that is nobody's holds
}

// New makes an empty world.
func New(c Config) *World {
	c.fill()
	return &World{
		config: c,
		order:  rand.New(rand.NewPCG(c.Seed, 0)),
		poison: bytes.Repeat([]byte{0xdb}, mem.FrameSize),
	}
}

// Seed returns the seed to repeat the run with.
func (w *World) Seed() uint64 { return w.config.Seed }

// Now returns the virtual time. Called by a task it is the task's, and costs
// it Config.StepCost.
func (w *World) Now() mono.Time {
	if w.running != nil {
		return w.running.Now()
	}
	return w.now
}

// At runs f at virtual time t, or as soon as possible when t has passed: to
// change links, or to do what a person would do to a machine. f runs between
// tasks and must not block.
func (w *World) At(t mono.Time, f func()) { w.push(max(t, w.present()), callback(f)) }

type callback func()

func (f callback) fire(*World) { f() }

// Run handles events until all tasks have ended. It returns the error or the
// panic of the first task that fails, or a [HaltError]; the other tasks are
// then unwound. A world runs once.
func (w *World) Run() error {
	defer w.unwind() // also when a task left through runtime.Goexit (testing.T.FailNow)
	for w.live > 0 {
		if len(w.events) == 0 {
			return w.halt(ErrDeadlock)
		}
		e := w.events.pop()
		w.now = e.at
		if e.at > mono.Time(w.config.Limit) {
			return w.halt(ErrTimeLimit)
		}
		e.what.fire(w)
		if w.failed != nil {
			return w.failed
		}
	}
	return nil
}

func (w *World) halt(reason error) error {
	e := &HaltError{Reason: reason, Seed: w.config.Seed, At: w.now}
	for _, t := range w.tasks {
		if !t.ended {
			e.Tasks = append(e.Tasks, t.String())
		}
	}
	return e
}

func (w *World) unwind() {
	for _, t := range w.tasks {
		w.running = t // deferred calls of the body may read the clock
		t.stop()
	}
	w.running = nil
}

// present is the time without cost: the running task's, or the world's.
func (w *World) present() mono.Time {
	if w.running != nil {
		return w.running.now
	}
	return w.now
}

func (w *World) push(at mono.Time, what firer) {
	w.pushed++
	w.events.push(event{at: at, order: uint64(w.order.Uint32())<<32 | uint64(w.pushed), what: what})
}

// random returns a generator for one purpose, independent of all others, so
// that a fault more on one link does not change what happens on another.
func (w *World) random(purpose, id int) *rand.Rand {
	return rand.New(rand.NewPCG(w.config.Seed, uint64(purpose)<<32|uint64(id)))
}

// Purposes of random generators.
const (
	randomTask = iota + 1
	randomUp
	randomDown
)
