package mpi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/adapt"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// Whether ghosts do the operations on the memory of a rank, or the rank itself, may change
// while a window lives, at calls that all its ranks make when nothing is under way: Fence,
// and SetInfo with symmetric. What each wants goes with the barrier of these calls, so that
// all know the same behind it.

// Async says whether ghosts do the operations on memory of a window.
type Async uint8

// The ways, in the order of config.Asyncs.
const (
	AsyncOn   Async = iota // they do
	AsyncOff               // the ranks do, and of a window that was made so they always do
	AsyncAuto              // they do while a rank computes for more than a seventh of its time
)

func (a Async) String() string {
	if int(a) < len(config.Asyncs) {
		return config.Asyncs[a].Name
	}
	return fmt.Sprintf("Async(%d)", uint8(a))
}

// The hints of Casper: asyncConfig is "on", "off" or "auto", of a window and of the communicator
// that it is made from. Info tells what came of it, and under asyncNow, "on" or "off", whether a
// ghost serves this rank at present. symmetric says that all ranks call SetInfo at this place.
const (
	asyncConfig = "async_config"
	asyncNow    = "async_now"
	symmetric   = "symmetric"
)

func parseAsync(op, value string) (Async, error) {
	if i := config.Asyncs.Index(value); i >= 0 {
		return Async(i), nil
	}
	return 0, fail(ErrInfoValue, op, "%s is %q; it must be on, off or auto", asyncConfig, value)
}

// asyncOf returns what a window is made with: as its info says, or that of the communicator, or
// else the configuration.
func (c *Comm) asyncOf(op string, info *Info) (Async, error) {
	value, ok := info.Get(asyncConfig)
	if !ok {
		value, ok = c.hints.Get(asyncConfig)
	}
	if !ok {
		return c.p.async.Async, nil
	}
	return parseAsync(op, value)
}

// asyncWin is what a rank knows of a window.
type asyncWin struct {
	mode   Async
	auto   bool          // some rank decides by itself: each Fence is an exchange
	served bool          // there is memory that ghosts can serve
	wants  []adapt.State // of each rank, as of the last exchange
	on     []bool
}

// says is what others are to know of the mode of this rank.
func (a *asyncWin) says() int64 {
	if a.mode == AsyncAuto {
		return 1
	}
	return 0
}

// hear takes in what rank i has said, the first one first.
func (a *asyncWin) hear(i int, says int64) { a.auto = i > 0 && a.auto || says != 0 }

// predict begins to watch for how much of its time this rank is in MPI.
func (p *Proc) predict(mode Async) {
	if mode != AsyncAuto {
		return
	}
	if p.watch == nil {
		p.watch = newWatch(p, nil)
	}
	w := p.watch
	w.mu.Lock()
	if w.predictor == nil {
		w.predictor = adapt.New(adapt.Config{Interval: p.async.AsyncInterval}, mono.Time(w.now()))
	}
	w.mu.Unlock()
}

// wants returns what this rank wants of a window.
func (w *Win) wants() adapt.State {
	switch w.async.mode {
	case AsyncOff:
		return adapt.Off
	case AsyncAuto:
		watch := w.c.p.watch
		watch.mu.Lock()
		defer watch.mu.Unlock()
		return watch.predictor.State()
	}
	return adapt.On
}

// meet waits in a fence for all ranks of the window, which have ended what they have started.
func (w *Win) meet(op string) error {
	falls := w.c.p.fallsBack() && w.flavor == FlavorAllocate
	if falls {
		w.c.coll.op = op
		if err := w.relieve(); err != nil {
			return err
		}
	}
	switch {
	case w.async.served && w.async.auto:
		return w.exchange(op)
	case falls:
		return nil // that was the barrier
	}
	w.c.coll.op = op
	return w.c.barrier()
}

// exchange is a barrier at which all tell what they want, and that holds.
func (w *Win) exchange(op string) error {
	all, err := w.c.gatherInts(op, int64(w.wants()), w.async.says())
	if err != nil {
		return err
	}
	a := &w.async
	a.wants, a.on = slices.Grow(a.wants[:0], w.c.size)[:w.c.size], slices.Grow(a.on[:0], w.c.size)[:w.c.size]
	for i := range a.wants {
		a.wants[i] = adapt.State(all[2*i])
		a.hear(i, all[2*i+1])
	}
	probe := adapt.Decide(a.wants, a.on)
	w.c.ep.Enter()
	rma.RoutesOf(w.w).Set(a.on)
	w.c.ep.Leave()
	if watch := w.c.p.watch; probe && watch != nil {
		watch.mu.Lock()
		if watch.predictor != nil {
			watch.predictor.Probed(mono.Time(watch.now()))
		}
		watch.mu.Unlock()
	}
	return nil
}

// setAsync is SetInfo of what has to do with ghosts.
func (w *Win) setAsync(op string, info *Info) error {
	if is, _ := info.Get(symmetric); is != "true" || !w.async.served {
		return nil
	}
	mode := w.async.mode
	value, _ := w.hints.Get(asyncConfig)
	if wanted, ok := info.Get(asyncConfig); ok {
		var err error
		if mode, err = parseAsync(op, wanted); err != nil {
			return err
		}
		value = wanted
	}
	if rma.RoutesOf(w.w).Own() { // else it is the rank that serves its memory, whatever anybody wants
		w.async.mode = mode
		w.c.p.predict(mode)
		if err := w.hints.Set(asyncConfig, value); err != nil {
			return err
		}
	}
	t := w.c.watch().begin(op, w.c, Undefined, Undefined, 0)
	w.c.ep.Enter()
	err := w.w.FlushAll()
	w.c.ep.Leave()
	err = errors.Join(err, w.exchange(op))
	t.end(err)
	return err
}
