package mpi

// Dup makes a communicator of the same ranks with a context of its own
// (MPI_Comm_dup). All ranks call it. Attributes are copied as their keys say,
// and the error handler and the topology with them. Hints are not.
func (c *Comm) Dup() (*Comm, error) {
	const op = "Comm.Dup"
	err := c.live(op)
	if err != nil {
		return nil, c.report(err)
	}
	copies, err := c.attrs.copies(op, c)
	if err != nil {
		return nil, c.report(err)
	}
	if c.Inter() {
		return c.dupInter(copies)
	}
	got, err := c.agree(op, 1, nil)
	if err != nil {
		return nil, c.report(err)
	}
	d := c.p.newComm(2*got[0], c.Group())
	c.bequeath(d, copies)
	return d, nil
}

// dupInter is Dup for intercommunicators.
func (c *Comm) dupInter(copies []attribute[*Comm]) (*Comm, error) {
	t := c.p.watch.begin("Comm.Dup", c, Undefined, Undefined, 0)
	got, err := c.agreeInter("Comm.Dup")
	t.end(err)
	if err != nil {
		return nil, c.report(err)
	}
	d := c.within.inter(got, c.RemoteGroup())
	c.bequeath(d, copies)
	return d, nil
}

// bequeath gives a duplicate what it gets from c: with copies of the attributes.
func (c *Comm) bequeath(d *Comm, copies []attribute[*Comm]) {
	d.topo = c.topo
	d.SetErrhandler(c.Errhandler())
	d.attrs.list = copies
}

// DupWithInfo is [Comm.Dup] with hints for the new communicator
// (MPI_Comm_dup_with_info).
func (c *Comm) DupWithInfo(info *Info) (*Comm, error) {
	d, err := c.Dup()
	if err != nil {
		return nil, err
	}
	if err := d.hint("Comm.DupWithInfo", info); err != nil {
		return d, c.report(err)
	}
	return d, nil
}

// Idup is Dup that does not wait (MPI_Comm_idup). The communicator may be used when
// the request is complete, and not before. It gets the attributes of now.
func (c *Comm) Idup() (*Comm, Request, error) { return c.idup("Comm.Idup", nil) }

// IdupWithInfo is DupWithInfo that does not wait (MPI_Comm_idup_with_info).
func (c *Comm) IdupWithInfo(info *Info) (*Comm, Request, error) {
	return c.idup("Comm.IdupWithInfo", info)
}

func (c *Comm) idup(op string, info *Info) (*Comm, Request, error) {
	if err := c.live(op); err != nil {
		return nil, Request{}, c.report(err)
	}
	d := &Comm{p: c.p, ep: c.ep, freed: true, coming: true}
	if err := d.hint(op, info); err != nil {
		return nil, Request{}, c.report(err)
	}
	copies, err := c.attrs.copies(op, c)
	if err != nil {
		return nil, Request{}, c.report(err)
	}
	c.bequeath(d, copies)
	t := &dup{c: c, d: d, tag: c.coll.number(), need: 1}
	if c.Inter() {
		t.need, t.near = 2, c.within.coll.number()
	}
	w := c.p.watch.begin(op, c, Undefined, Undefined, 0)
	r, err := c.begin(op, t)
	w.end(err)
	if err != nil {
		return nil, Request{}, err
	}
	return d, r, nil
}

// dup is a duplication under way. It agrees on contexts as agree does, with one
// difference: while it is under way the rank goes on, and may make other
// communicators, so that all ranks always tell one another whether they have got
// what was chosen. Its collectives have one tag, and come one after the other.
type dup struct {
	c, d      *Comm
	tag, near int32 // of its collectives; near: of those inside a group of an intercommunicator
	need      int
	try       int
	confirm   bool // the collective under way tells whether all have got the contexts
	across    bool // it is the one with the other group
	got       []uint32
	mine      bool // this rank has taken them
	set, all  contextSet
}

func (t *dup) begin(k *call) {
	t.c.p.dups++
	t.choose(k)
}

// choose begins to look for contexts that are free on all ranks.
func (t *dup) choose(k *call) {
	t.confirm, t.set = false, t.c.p.contexts
	t.reduce(k)
}

// reduce begins the collective that makes t.set what all ranks have in common:
// first those of this group.
func (t *dup) reduce(k *call) {
	k.c, k.s.Tag, t.across = t.c, t.tag, false
	if t.c.Inter() {
		k.c, k.s.Tag = t.c.within, t.near
	}
	planAllreduce(k, Data{}, Slice(t.set[:]), by(BAnd[uint64], nil))
}

// cross exchanges t.set with the other group.
func (t *dup) cross(k *call) {
	k.c, k.s.Tag, t.across = t.c, t.tag, true
	planAllreduce(k, Slice(t.set[:]), Slice(t.all[:]), by(BAnd[uint64], nil))
}

func (t *dup) advance(k *call) (done bool) {
	for k.s.Advance(k) {
		err := k.s.Err()
		if err == nil && t.c.Inter() && !t.across {
			t.cross(k)
			continue
		}
		if t.across {
			for i := range t.set {
				t.set[i] &= t.all[i]
			}
		}
		if err != nil || t.decide(k) {
			t.end(k, err)
			return true
		}
	}
	return false
}

// decide goes on when a collective has ended, and reports whether it was the last.
func (t *dup) decide(k *call) (last bool) {
	if t.confirm {
		if t.set[0]&alone != 0 {
			return true
		}
		t.giveBack()
		t.try++
		t.choose(k)
		return false
	}
	t.set[0] &^= alone
	if t.got = t.set.choose(t.need, t.try*int(t.c.context/2+1)); len(t.got) < t.need {
		t.got = nil
		return true
	}
	t.confirm, t.set = true, contextSet{}
	if t.mine = t.c.p.contexts.take(t.got); t.mine {
		t.set[0] = alone
	}
	t.reduce(k)
	return false
}

func (t *dup) giveBack() {
	if t.mine {
		t.c.p.contexts.give(t.got...)
	}
	t.mine, t.got = false, nil
}

// end makes the communicator, or says why there is none.
func (t *dup) end(k *call, err error) {
	t.c.p.dups--
	k.c = t.c
	switch {
	case err != nil:
		t.giveBack()
	case t.got == nil:
		err = tooMany(k.op)
	}
	if k.err = err; err != nil {
		return
	}
	d := t.d
	d.become(2*t.got[0], t.c.Group())
	if t.c.Inter() {
		d.join(t.c.RemoteGroup(), t.c.p.view(2*t.got[1], t.c.Group()))
		d.within.announce()
	}
	d.announce()
	d.freed, d.coming = false, false
}

// agreeInter returns two contexts that are free on the ranks of both groups.
func (c *Comm) agreeInter(op string) ([]uint32, error) {
	return c.within.agreed(op, 2, func(free *contextSet) error {
		_, err := c.within.meet(op, 0, free, c.leaders(op))
		return err
	})
}
