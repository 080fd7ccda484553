package mpi

import (
	"os"

	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/verbs"
)

// task is an operation under way that is no schedule of a collective, and that
// goes on in the same steps. All is called inside.
type task interface {
	// begin starts it; that of a persistent operation is called more than once.
	begin(k *call)
	// advance goes on as far as it can without waiting, and reports whether that
	// is the end. It leaves the result in k.err and k.st.
	advance(k *call) (done bool)
}

// advance goes on as far as it can without waiting.
func (k *call) advance() (done bool) {
	if k.check != nil && !k.checkOn() {
		return false
	}
	if k.c.p.check && k.err != nil && k.checks() {
		return true // the check has failed
	}
	if k.task != nil {
		return k.task.advance(k)
	}
	return k.s.Advance(k)
}

// calls are the nonblocking collectives of a process. They go on in every step
// of the engine: calls implements p2p.ProgressHook.
type calls struct {
	ep      *p2p.Endpoint
	active  []*call // in the order in which they were started
	idle    *call   // pool
	untaken int     // started, and the user has not taken the result

	memory *coll.Memory // of the arena, for blocking ones, too; or nil
}

// scratchMost is how many bytes of the arena collectives have for themselves, and not more than one scratchShare-th of its
// room.
const (
	scratchMost  = 8 << 20
	scratchShare = 8
)

// reserve takes memory for collectives from the arena, the pages of which are there already: to touch those of new memory makes
// the first call of a program many times as long. Without it collectives have new memory.
func (a *calls) reserve(arena *verbs.Arena) {
	if arena == nil {
		return
	}
	n := min(scratchMost, arena.Room()/scratchShare)
	if at, err := arena.Alloc(n, os.Getpagesize()); err == nil {
		a.memory = coll.NewMemory(arena.At(at, n&^7))
	}
}

// Advance lets all of them go on, and forgets those that have come to their end.
func (a *calls) Advance() (n int) {
	left := a.active[:0]
	for _, k := range a.active {
		at := k.s.Position()
		if k.done = k.advance(); !k.done {
			left = append(left, k)
		}
		if k.done || k.s.Position() != at {
			n++
		}
	}
	clear(a.active[len(left):])
	if a.active = left; len(left) == 0 {
		a.ep.Inside().SetProgressHook(nil)
	}
	return n
}

// beginNonblocking begins a nonblocking collective.
func (c *Comm) beginNonblocking(op string) *call {
	if err := c.live(op); err != nil {
		return &call{c: c, op: op, err: err}
	}
	return c.fresh(op)
}

// fresh returns a call from the pool.
func (c *Comm) fresh(op string) *call {
	a := &c.p.calls
	a.ep.Enter()
	k := a.idle
	if k == nil {
		k = &call{s: coll.Schedule{Memory: a.memory}}
	} else {
		a.idle, k.next = k.next, nil
	}
	a.ep.Leave()
	k.c, k.op, k.err, k.st, k.sign = c, op, nil, emptyStatus(), unsigned
	return k
}

// follow lets a call that has begun go on. It is called inside.
func (a *calls) follow(k *call) {
	a.active = append(a.active, k)
	a.ep.Inside().SetProgressHook(a)
}

// begin starts a task that takes no part in the order of collectives.
func (c *Comm) begin(op string, t task) (Request, error) {
	k := c.beginNonblocking(op)
	k.task = t
	return k.launch()
}

// start starts what was planned.
func (k *call) start() (Request, error) {
	t := k.watched()
	r, err := k.launch()
	t.end(err)
	return r, err
}

func (k *call) launch() (Request, error) {
	if k.err != nil {
		err := k.err
		k.clear()
		return Request{}, k.c.report(err)
	}
	if !k.kept && k.task == nil {
		k.seal()
		k.s.Tag = k.c.coll.number()
	}
	c := k.c
	a := &c.p.calls
	a.ep.Enter()
	a.untaken++
	k.busy = true
	k.s.Rewind()
	if k.task != nil {
		k.task.begin(k)
	}
	if k.checks() {
		k.check = k.newCheck()
	}
	if k.done = k.advance(); !k.done {
		a.follow(k)
	}
	k.Flush()
	a.ep.Leave()
	return Request{k: k, c: c, mark: uint64(k.gen)}, nil
}

// waitCall is Wait for a collective, or for the null request.
func (r *Request) waitCall(op string) (Status, error) {
	k := r.k
	if k == nil {
		return emptyStatus(), nil
	}
	if r.gen() != k.gen {
		return emptyStatus(), r.stale(op)
	}
	ep := k.c.ep
	ep.Enter()
	for !k.done {
		ep.Inside().Progress()
	}
	g := k.grequest()
	st, err := r.takeCall()
	ep.Leave()
	if g != nil {
		st, err = g.finish(op)
	}
	return st, r.c.report(err)
}

// testCall is Test for a collective, or for the null request.
func (r *Request) testCall() (st Status, done bool, err error) {
	k := r.k
	if k == nil {
		return emptyStatus(), true, nil
	}
	if r.gen() != k.gen {
		return emptyStatus(), false, r.stale("Test")
	}
	ep := k.c.ep
	ep.Enter()
	if !k.done {
		ep.Leave()
		ep.Ask()
		ep.Enter()
	}
	var g *Grequest
	if st = emptyStatus(); k.done {
		done, g = true, k.grequest()
		st, err = r.takeCall()
	} else {
		k.Flush() // the program may not come back for long
	}
	ep.Leave()
	if g != nil {
		st, err = g.finish("Test")
	}
	return st, done, r.c.report(err)
}

// takeCall takes the result and makes the request null. It is called inside.
func (r *Request) takeCall() (Status, error) {
	k := r.k
	r.k = nil
	k.Flush()
	st, err := k.outcome()
	k.err = nil
	a := &k.c.p.calls
	a.untaken--
	k.gen++
	k.busy = false
	if !k.kept {
		k.clear()
		k.task = nil
		k.next, a.idle = a.idle, k
	}
	return st, err
}

// outcome is what became of a call that is done.
func (k *call) outcome() (Status, error) {
	if k.task != nil || k.err != nil {
		return k.st, k.err
	}
	return emptyStatus(), k.s.Err()
}
