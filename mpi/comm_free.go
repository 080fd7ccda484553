package mpi

import (
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Free ends the use of a communicator (MPI_Comm_free). All its ranks call it, but it
// waits for none of them, unless contexts run short (see [fewContexts]) or Config.Check
// has the ranks compare what they do. Operations that are under way come to their end,
// and their requests are waited for as ever; persistent operations can be started until
// they are freed. Nothing else can be done with it.
func (c *Comm) Free() error {
	if c == nil {
		return c.live("Comm.Free")
	}
	t := c.p.watch.begin("Comm.Free", c, Undefined, Undefined, 0)
	err := c.free("Comm.Free", false)
	t.end(err)
	return err
}

// Disconnect is Free that first waits until all operations on the communicator have
// come to their end (MPI_Comm_disconnect), so that nothing is on its way to or from its
// ranks any more.
func (c *Comm) Disconnect() error {
	const op = "Comm.Disconnect"
	if err := c.live(op); err != nil {
		return err
	}
	t := c.p.watch.begin(op, c, Undefined, Undefined, 0)
	if c != c.p.world && c != c.p.self {
		c.ep.Enter()
		for rest := c.underWay(); len(rest) > 0; {
			if rest[0].ended() {
				rest = rest[1:]
			} else {
				c.ep.Inside().Progress()
			}
		}
		c.ep.Leave()
	}
	err := c.free(op, true)
	t.end(err)
	return err
}

// free is Free, which can wait until all ranks have called it.
func (c *Comm) free(op string, wait bool) error {
	err := c.live(op)
	switch {
	case err != nil:
		return err
	case c == c.p.world || c == c.p.self:
		return c.report(fail(ErrComm, op, "%s is there until Finalize", c.name))
	}
	if err = c.attrs.removeAll(op, c); err != nil {
		return err // of a function of the program's: the communicator is as before
	}
	err = c.releaseLocal(op)
	f := c.leave(op)
	if wait || c.p.check || c.p.contextsShort() {
		if left := f.wait(); err == nil {
			err = left
		}
	}
	return err
}

// inner returns the communicator whose ranks end c together: of an intercommunicator
// that of the local group.
func (c *Comm) inner() *Comm {
	if c.within != nil {
		return c.within
	}
	return c
}

// releaseLocal is the part of Free that this rank does alone, before the others are met.
func (c *Comm) releaseLocal(op string) error {
	c.p.watch.left(c)
	err := c.attrs.removeAll(op, c)
	if err == nil {
		err = c.BufferFlush()
	}
	c.learnAll()
	return err
}

// leave begins the end of a communicator: its ranks meet, while this one goes on.
func (c *Comm) leave(op string) *farewell {
	f := &farewell{c: c}
	sync := c.inner()
	k := &call{c: sync, op: op, task: f, sign: unsigned}
	coll.Barrier(&k.s, k.team())
	k.s.Tag = sync.coll.number()
	c.ep.Enter()
	defer c.ep.Leave()
	if c.p.check {
		k.check = k.newCheck()
	}
	c.part(f, k)
	k.Flush()
	return f
}

// release is the end of a communicator whose ranks have met already, or cannot.
func (c *Comm) release(all bool) {
	c.ep.Enter()
	defer c.ep.Leave()
	c.part(&farewell{c: c, met: true, all: all}, &call{c: c, op: "Comm.Free"})
}

// part makes the communicator unusable, and lets its farewell begin. It is called inside.
func (c *Comm) part(f *farewell, k *call) {
	k.task = f
	for x := c; x != nil; x = x.within {
		x.freed = true
		x.session.forget(x)
		x.coll.slots.keep() // which blocking collectives have: there are no more of them
	}
	if k.done = k.advance(); !k.done {
		c.p.calls.follow(k)
	}
}

// underWay returns what was started on c and has not come to its end, whether or not
// the program will wait for it. It is called inside.
func (c *Comm) underWay() (rest []Request) {
	for x := c; x != nil; x = x.within {
		for _, r := range c.ep.Inside().UnderWay(x.context) {
			rest = append(rest, c.request(r))
		}
	}
	for _, k := range c.p.calls.active {
		if _, ends := k.task.(*farewell); !ends && (k.c == c || k.c != nil && k.c == c.within) {
			rest = append(rest, Request{k: k, c: c, mark: uint64(k.gen)})
		}
	}
	return rest
}

// ended reports whether the operation has come to its end. Unlike done it does not
// take a doubt for that.
func (r *Request) ended() bool {
	switch {
	case !r.live():
		return true
	case r.k != nil:
		return r.k.done
	}
	_, ended, _ := r.c.ep.Inside().Result(r.r)
	return ended
}

// farewell forgets a communicator that was freed when its ranks have met, all that was
// under way on it has come to its end, and there are no persistent operations on it any
// more. Then its context can be used again. That suffices: what is under way on other
// ranks is none of ours, and they do not take the context before it is done. If the ranks
// cannot meet, no communicator uses the context again.
type farewell struct {
	c    *Comm
	met  bool  // the meeting is over
	all  bool  // and all ranks were there: the context may be used again
	err  error // or why they were not
	last bool  // nothing can be started any more, and rest is what was
	rest []Request
}

func (f *farewell) begin(*call) {}

func (f *farewell) advance(k *call) (done bool) {
	c := f.c
	if !f.met {
		f.err = k.err // of ranks that do something else
		if f.err == nil {
			if !k.s.Advance(k) {
				return false
			}
			f.err = k.s.Err()
		}
		f.met, f.all = true, f.err == nil
	}
	if c.held > 0 {
		return false
	}
	if !f.last {
		f.last, f.rest = true, c.underWay()
	}
	for ; len(f.rest) > 0; f.rest = f.rest[1:] {
		if !f.rest[0].ended() {
			return false
		}
	}
	for x := c; x != nil; x = x.within {
		c.ep.Inside().Unregister(x.context, f.all)
		if f.all {
			c.p.contexts.give(x.context / 2)
		}
	}
	return true
}

// wait waits until the ranks have met, and returns what of that is an error.
func (f *farewell) wait() error {
	f.c.ep.Enter()
	defer f.c.ep.Leave()
	for !f.met {
		f.c.ep.Inside().Progress()
	}
	if class := ClassOf(f.err); class == ErrProcFailed || class == ErrRevoked {
		return nil // freeing is what is left to do with such a communicator
	}
	return f.err
}

// farewells waits until the ranks of all communicators that were freed have met. A
// process that left before would leave others waiting.
func (p *Proc) farewells() {
	p.ep.Enter()
	defer p.ep.Leave()
	meets := func(k *call) bool {
		f, ok := k.task.(*farewell)
		return ok && !f.met
	}
	for slices.ContainsFunc(p.calls.active, meets) {
		p.ep.Inside().Progress()
	}
}
