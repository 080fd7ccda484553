package mpi

// Iagree is [Comm.Agree] that does not wait (MPIX_Comm_iagree): when the request is
// complete, flag is the AND of the flags of all ranks. One agreement at a time may
// be under way on a communicator, Ishrink included.
func (c *Comm) Iagree(flag *uint64) (Request, error) {
	const op = "Comm.Iagree"
	err := c.live(op)
	if err == nil && flag == nil {
		err = fail(ErrArg, op, "there is no flag")
	}
	if err != nil {
		return Request{}, c.report(err)
	}
	return c.begin(op, &agreeing{c: c, flag: flag})
}

// agreeing is an Iagree under way.
type agreeing struct {
	c    *Comm
	flag *uint64
	err  error // it was not begun
}

func (t *agreeing) begin(k *call) {
	t.err = t.c.beginAgree(k.op, ballot{kind: ballotAgree, flag: *t.flag})
}

func (t *agreeing) advance(k *call) (done bool) {
	if k.err = t.err; k.err != nil {
		return true
	}
	d, err := t.c.decided(k.op, ballotAgree)
	if d == nil && err == nil {
		return false
	}
	t.c.agrees = false
	if k.err = err; err == nil {
		*t.flag = d.flag
		k.err = t.c.unacknowledged(k.op, d)
	}
	return true
}

// Ishrink is [Comm.Shrink] that does not wait (MPIX_Comm_ishrink). The communicator
// may be used when the request is complete without an error, and not before. See
// [Comm.Iagree].
func (c *Comm) Ishrink() (*Comm, Request, error) {
	return c.ishrink("Comm.Ishrink", false)
}

// ishrink begins to shrink. waits says that this goroutine does nothing else until
// the end.
func (c *Comm) ishrink(op string, waits bool) (*Comm, Request, error) {
	if err := c.live(op); err != nil {
		return nil, Request{}, c.report(err)
	}
	n := &Comm{p: c.p, ep: c.ep, freed: true, coming: true}
	n.SetErrhandler(c.Errhandler())
	t := &shrinking{c: c, n: n, need: 1, alone: waits && !c.p.ep.Threads() && c.p.dups == 0}
	if c.Inter() {
		t.need = 2
	}
	r, err := c.begin(op, t)
	if err != nil {
		return nil, Request{}, err
	}
	return n, r, nil
}

// shrinking is an Ishrink under way. It agrees on which ranks are left and on contexts in
// one go; and then, unless no rank can have taken a context meanwhile, on whether
// all have got them. See agree.
type shrinking struct {
	c, n    *Comm
	need    int
	alone   bool // nothing else can take a context of this rank meanwhile
	try     int
	confirm bool
	got     []uint32 // that this rank has taken
	err     error    // it was not begun
}

func (t *shrinking) begin(k *call) {
	t.propose(k)
	t.c.p.dups++
}

// propose begins the agreement on contexts.
func (t *shrinking) propose(k *call) {
	p := t.c.p
	b := ballot{kind: ballotShrink, free: p.contexts}
	if t.alone {
		b.free[0] |= alone
	}
	t.confirm = false
	t.err = t.c.beginAgree(k.op, b)
}

func (t *shrinking) advance(k *call) (done bool) {
	for t.err == nil {
		d, err := t.c.decided(k.op, ballotShrink)
		if d == nil && err == nil {
			return false
		}
		t.c.agrees = false
		if t.err = err; err == nil && t.decide(k, d) {
			t.make(d)
			break
		}
	}
	t.c.p.dups--
	k.err = t.err
	return true
}

// decide goes on after an agreement, and reports whether it was the last and good.
func (t *shrinking) decide(k *call, d *ballot) (last bool) {
	p := t.c.p
	if t.confirm {
		if d.flag != 0 {
			return true
		}
		p.contexts.give(t.got...)
		t.try++
		t.propose(k)
		return false
	}
	certain := d.free[0]&alone != 0
	d.free[0] &^= alone
	t.got = d.free.choose(t.need, t.try*int(t.c.context/2+1))
	if len(t.got) < t.need {
		t.err = tooMany(k.op)
		return false
	}
	vote := ballot{kind: ballotShrink}
	if p.contexts.take(t.got) {
		vote.flag = ^uint64(0)
	} else {
		t.got = nil
	}
	if certain {
		return true
	}
	t.confirm = true
	t.err = t.c.beginAgree(k.op, vote)
	return false
}

// make makes the communicator of those that are left.
func (t *shrinking) make(d *ballot) {
	c, n, alive := t.c, t.n, &Group{world: d.alive, session: t.c.session}
	group := c.Group().Intersection(alive)
	n.become(2*t.got[0], group)
	if c.Inter() {
		n.join(c.RemoteGroup().Intersection(alive), c.p.view(2*t.got[1], group))
		n.within.announce()
	}
	n.announce()
	n.freed, n.coming = false, false
}
