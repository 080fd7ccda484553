package mpi

import (
	"cmp"
	"errors"
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/adapt"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// Whether ghosts do the operations on the memory of a rank, or the rank itself, may change
// while a window lives, at calls that all its ranks make when nothing is under way: Fence,
// and SetInfo with symmetric. What each wants goes with the barrier of these calls, so that
// all know the same behind it. Puts and Gets may change at any time: see rma.Boards.

// Async says whether ghosts do the operations on memory of a window.
type Async uint8

// The ways, in the order of config.Asyncs.
const (
	AsyncOn         Async = iota // they do
	AsyncOff                     // the ranks do, and of a window that was made so they always do
	AsyncAuto                    // they do while a rank computes for more than a seventh of its time
	AsyncAutoGhosts              // the same, and Puts and Gets follow at once, for ghosts tell one another of it
)

func (a Async) String() string { return config.Asyncs.Name(uint8(a), "Async") }

// The hints of Casper: asyncConfig is a word of config.Asyncs, of a window and of the communicator
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
	return 0, fail(ErrInfoValue, op, "%s is %q; it must be one of %s", asyncConfig, value, config.Asyncs)
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
	follow []bool        // of each rank, whether Puts and Gets follow at once what it wants
	served bool          // there is memory that ghosts can serve
	wants  []adapt.State // of each rank, as of the last exchange
	on     []bool
	failed bool // an exchange has, so that all others will
}

// decides reports whether this rank decides by itself.
func (a Async) decides() bool { return a == AsyncAuto || a == AsyncAutoGhosts }

// says is what others are to know of the mode of this rank.
func (a *asyncWin) says() int64 {
	if a.mode.decides() {
		return int64(a.mode)
	}
	return 0
}

// hear takes in what rank i has said, the first one first.
func (a *asyncWin) hear(i int, says int64) {
	if i == 0 {
		a.auto, a.follow = false, a.follow[:0]
	}
	a.auto = a.auto || says != 0
	a.follow = append(a.follow, Async(says) == AsyncAutoGhosts)
}

// predict begins to watch for how much of its time this rank is in MPI.
func (p *Proc) predict(mode Async) {
	if !mode.decides() {
		return
	}
	if p.watch == nil { // never where there are several goroutines: see observe
		p.watch = newWatch(p, nil)
	}
	p.ep.Enter()
	boards := p.boards
	p.ep.Leave()
	w := p.watch
	w.mu.Lock()
	w.boards = boards
	if w.predictor == nil {
		w.predictor = adapt.New(adapt.Config{Interval: p.async.AsyncInterval, Sharers: p.ghosts.Sharers(p.rank)}, mono.Time(w.now()))
	}
	w.mu.Unlock()
}

// follows has Puts and Gets of this rank follow what ghosts say of others, where the window is to. If they say
// nothing, it does without.
func (w *Win) follows() error {
	p := w.c.p
	if w.async.mode != AsyncAutoGhosts {
		return nil
	}
	service := rma.ServiceOf(w.w)
	if p.boards == nil {
		boards, err := service.Boards(cmp.Or(p.async.AsyncInterval, adapt.Interval))
		switch {
		case err != nil && !p.fallsBack():
			return err
		case err != nil || boards == nil:
			w.async.mode = AsyncAuto
			return nil
		case p.boards != nil: // another goroutine has made a window meanwhile
			boards.Close()
		default:
			p.boards = boards
		}
	}
	service.Follow(p.boards)
	return nil
}

// leaveBoards ends what follows does, in a process that leaves the job.
func (p *Proc) leaveBoards() {
	if p.boards == nil {
		return
	}
	if p.watch != nil { // else the window was not made
		p.watch.mu.Lock()
		p.watch.boards = nil
		p.watch.mu.Unlock()
	}
	p.ep.Enter()
	p.boards.Close()
	p.ep.Leave()
}

// wants returns what this rank wants of a window.
func (w *Win) wants() adapt.State {
	switch w.async.mode {
	case AsyncOff:
		return adapt.Off
	case AsyncAuto, AsyncAutoGhosts:
		watch := w.c.p.watch
		watch.mu.Lock()
		defer watch.mu.Unlock()
		return watch.predictor.Says() // not State: other windows would begin its probe again
	}
	return adapt.On
}

// meet waits in a fence for all ranks of the window, which have ended what they have started.
func (w *Win) meet(op string) error {
	losses, modes := w.c.p.fallsBack() && w.flavor == FlavorAllocate, w.async.served && w.async.auto
	if losses || modes {
		return w.exchange(op, losses, modes)
	}
	w.c.coll.op = op
	return w.c.barrier()
}

// exchange is a barrier at which all tell which ghosts they know to be lost, and, or, what they
// want. Behind it all ranks that are left have the same routes, whichever are lost meanwhile.
func (w *Win) exchange(op string, losses, modes bool) error {
	c, a, routes := w.c, &w.async, rma.RoutesOf(w.w)
	var all []int64
	if losses {
		c.ep.Enter()
		all = routes.Lost()
		c.ep.Leave()
	}
	ghosts := len(all)
	if modes {
		all = append(all, make([]int64, 2*c.size)...)
		all[ghosts+2*c.rank], all[ghosts+2*c.rank+1] = int64(w.wants()), a.says()
	}
	c.coll.op = op
	err := c.coll.sum(all)
	lost, probe := all[:ghosts], false
	if err == nil && modes {
		probe = a.decide(all[ghosts:], c.size)
	}
	var on []bool
	if modes {
		on = a.on
	}
	changes := err == nil && routes.Differ(lost, on)
	if err != nil || changes {
		err = w.commit(op, err)
	}
	if err != nil {
		return err
	}
	if probe {
		c.p.probed()
	}
	own := false
	c.ep.Enter()
	if changes {
		own = routes.Change(lost, on)
	}
	if modes {
		routes.Follow(a.follow)
	}
	c.ep.Leave()
	if own {
		a.mode = AsyncOff
		return w.hints.Set(asyncConfig, AsyncOff.String())
	}
	return nil
}

// decide takes in what all ranks have said in an exchange, and decides which
// ranks ghosts are to serve.
func (a *asyncWin) decide(all []int64, ranks int) (probe bool) {
	a.wants, a.on = slices.Grow(a.wants[:0], ranks)[:ranks], slices.Grow(a.on[:0], ranks)[:ranks]
	for i := range a.wants {
		a.wants[i] = adapt.State(all[2*i])
		a.hear(i, all[2*i+1])
	}
	return adapt.Decide(a.wants, a.on)
}

// commit is the end of an exchange behind which routes change, or which has failed on this rank
// because another one was lost: then others may know what all have said, and this one not. So
// a rank that is to change them asks all that are left whether they can, in an agreement. One
// whose exchange has failed has told them that it cannot, and need not wait for them: nothing
// changes. From then on every exchange fails, for the lost rank is missing.
func (w *Win) commit(op string, failed error) error {
	c, a := w.c, &w.async
	if failed == nil {
		d, err := c.decide(op, ballot{kind: ballotRoutes, flag: 1})
		if err != nil || d.flag != 0 {
			return err
		}
		a.failed = true
		if err = c.unacknowledged(op, d); err == nil {
			err = fail(ErrProcFailed, op, "another rank of the window could not meet all of the others")
		}
		return err
	}
	if !a.failed {
		a.failed = true
		c.ep.Enter()
		_ = c.beginAgree(op, ballot{kind: ballotRoutes}) // it is the first one under way
		c.ep.Inside().Flush()
		c.ep.Leave()
	}
	return failed
}

// probed tells the predictor that a probe begins.
func (p *Proc) probed() {
	if w := p.watch; w != nil {
		w.mu.Lock()
		if w.predictor != nil {
			w.predictor.Probed(mono.Time(w.now()))
		}
		w.mu.Unlock()
	}
}

// setAsync is SetInfo of what has to do with ghosts.
func (w *Win) setAsync(op string, info *Info) error {
	if is, _ := info.Get(symmetric); is != "true" || !w.async.served {
		return nil
	}
	mode := w.async.mode
	var err error
	if wanted, ok := info.Get(asyncConfig); ok {
		if mode, err = parseAsync(op, wanted); err != nil {
			return err
		}
	}
	if rma.RoutesOf(w.w).Own() { // else it is the rank that serves its memory, whatever a rank wants
		w.async.mode = mode
		w.c.ep.Enter()
		err = w.follows()
		w.c.ep.Leave()
		w.c.p.predict(w.async.mode)
		err = errors.Join(err, w.hints.Set(asyncConfig, w.async.mode.String()))
	}
	t := w.c.watch().begin(op, w.c, Undefined, Undefined, 0)
	w.c.ep.Enter()
	err = errors.Join(err, w.w.FlushAll())
	w.c.ep.Leave()
	err = errors.Join(err, w.exchange(op, false, true))
	t.end(err)
	return err
}
