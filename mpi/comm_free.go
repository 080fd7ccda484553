package mpi

// Free ends the use of a communicator (MPI_Comm_free). All its ranks call it, and it
// waits until they do, but for nothing else: operations that are under way come to
// their end, and their requests are waited for as ever; persistent operations can be
// started until they are freed. Nothing else can be done with it.
func (c *Comm) Free() error {
	if c == nil {
		return c.live("Comm.Free")
	}
	t := c.p.watch.begin("Comm.Free", c, Undefined, Undefined, 0)
	err := c.free("Comm.Free")
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
	err := c.free(op)
	t.end(err)
	return err
}

func (c *Comm) free(op string) error {
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
	sync := c.inner()
	sync.coll.op = op
	// Nobody uses the context again before everybody is done with it: never,
	// if that cannot be found out.
	if left := c.end(sync.barrier()); err == nil {
		err = left
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

// end is the part of Free after the ranks have met, or have not, which left says. It
// returns what of that is an error.
func (c *Comm) end(left error) error {
	c.release(left == nil)
	if class := ClassOf(left); class == ErrProcFailed || class == ErrRevoked {
		return nil // freeing is what is left to do with such a communicator
	}
	return left
}

// release is the end of a communicator. Its context is free again when all ranks
// are done with it, and nothing is under way here. That suffices: what is under way on
// other ranks is none of ours, and they do not take the context before it is done.
func (c *Comm) release(all bool) {
	c.ep.Enter()
	defer c.ep.Leave()
	f := &farewell{c: c, all: all}
	for x := c; x != nil; x = x.within {
		x.freed = true
		x.session.forget(x)
	}
	if !f.advance(nil) {
		c.p.calls.follow(&call{c: c, op: "Comm.Free", task: f})
	}
}

// underWay returns what was started on c and has not come to its end, whether or not
// anybody will wait for it. It is called inside.
func (c *Comm) underWay() (rest []Request) {
	for x := c; x != nil; x = x.within {
		for _, r := range c.ep.Inside().UnderWay(x.context) {
			rest = append(rest, c.request(r))
		}
	}
	for _, k := range c.p.calls.active {
		if k.c == c || k.c != nil && k.c == c.within {
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

// farewell forgets a communicator that was freed when all that was under way on it
// has come to its end, and there are no persistent operations on it any more.
type farewell struct {
	c    *Comm
	all  bool // its ranks have met: the context may be used again
	last bool // nothing can be started any more, and rest is what was
	rest []Request
}

func (f *farewell) begin(*call) {}

func (f *farewell) advance(*call) (done bool) {
	c := f.c
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
		x.coll.slots.close()
		if f.all {
			c.p.contexts.give(x.context / 2)
		}
	}
	return true
}
