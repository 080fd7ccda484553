package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
)

// Inter reports whether c is an intercommunicator (MPI_Comm_test_inter).
func (c *Comm) Inter() bool { return c.local != nil }

// RemoteSize returns the number of ranks of the remote group of an
// intercommunicator (MPI_Comm_remote_size).
func (c *Comm) RemoteSize() int { return c.size }

// CreateInter makes an intercommunicator of two groups of ranks that do not
// overlap (MPI_Intercomm_create): those of c, and those of another communicator
// whose ranks call it too. leader is a rank of c; peer, which counts there only,
// is a communicator that both leaders are in, remote the other leader's rank in
// it, and tag is for their messages.
func (c *Comm) CreateInter(leader int, peer *Comm, remote, tag int) (*Comm, error) {
	const op = "Comm.CreateInter"
	err := c.live(op)
	switch {
	case err != nil:
	case c.Inter():
		err = fail(ErrComm, op, "the ranks of one side must have an intracommunicator")
	case leader < 0 || leader >= c.size:
		err = fail(ErrRank, op, "leader %d is no rank of this communicator, which has ranks 0 to %d", leader, c.size-1)
	case c.rank == leader && peer != nil && peer.session != c.session:
		err = fail(ErrComm, op, "the leaders' communicator is of another session")
	case c.rank != leader:
	case remote == ProcNull:
		err = fail(ErrRank, op, "the other leader is ProcNull: nobody is there")
	case peer != nil && remote == peer.rank && !peer.Inter():
		err = fail(ErrRank, op, "the other leader is this rank itself")
	default:
		err = peer.checkSend(op, remote, tag)
	}
	if err != nil {
		return nil, c.report(err)
	}
	var other []int32
	got, err := c.agree(op, 2, func(free *contextSet) error {
		exchange := func(out, in []byte) error { return peer.swap(op, remote, tag, out, in) }
		other, err = c.meet(op, leader, free, exchange)
		return err
	})
	if err != nil {
		return nil, c.report(err)
	}
	return c.inter(got, &Group{world: other, session: c.session}), nil
}

// inter makes an intercommunicator of the ranks of c and a remote group.
func (c *Comm) inter(contexts []uint32, remote *Group) *Comm {
	n := c.p.view(2*contexts[0], c.Group())
	n.join(remote, c.p.newComm(2*contexts[1], c.Group()))
	n.register()
	n.SetErrhandler(c.Errhandler())
	return n
}

// join makes of a view of the local group an intercommunicator with a remote one.
func (c *Comm) join(remote *Group, within *Comm) {
	c.local, c.within = within.Group(), within
	c.world, c.index = nil, nil
	c.address(remote)
}

// swap sends bytes to a rank and receives as many from it.
func (c *Comm) swap(op string, with, tag int, out, in []byte) error {
	r, err := c.irecv(in, with, tag)
	if err != nil {
		return err
	}
	if err := c.send(out, with, tag); err != nil {
		return err
	}
	_, err = r.wait(op)
	return err
}

// meet is what two sides do that have no communicator in common yet: their
// leaders exchange which ranks are on each, and what contexts are free, and tell the
// others of their side.
func (c *Comm) meet(op string, leader int, free *contextSet, exchange func(out, in []byte) error) ([]int32, error) {
	mine := c.Group().world
	n := []int64{int64(len(mine))}
	theirs := make([]int64, 1)
	c.coll.op = op
	var alone error // the leader has not met the other one: the others must not wait for it
	if c.rank == leader {
		if alone = exchange(mem.BytesOf(n), mem.BytesOf(theirs)); alone != nil {
			theirs[0] = -1
		}
	}
	if err := c.coll.bcast(mem.BytesOf(theirs), leader); err != nil {
		return nil, err
	}
	if alone == nil && theirs[0] < 0 {
		alone = fail(ErrProcFailed, op, "the leader, rank %d, could not meet that of the other group", leader)
	}
	if alone != nil {
		return nil, alone
	}
	other, both := make([]int32, theirs[0]), *free
	if c.rank == leader {
		// Sides may be of different sizes, so each message has its own length.
		if err := exchange(mem.BytesOf(mine), mem.BytesOf(other)); err != nil {
			return nil, err
		}
		if err := exchange(mem.BytesOf(free[:]), mem.BytesOf(both[:])); err != nil {
			return nil, err
		}
		for i := range both {
			both[i] &= free[i]
		}
	}
	if err := c.coll.bcast(mem.BytesOf(other), leader); err != nil {
		return nil, err
	}
	if err := c.coll.bcast(mem.BytesOf(both[:]), leader); err != nil {
		return nil, err
	}
	*free = both
	if (&Group{world: mine}).Intersection(&Group{world: other}).Size() > 0 {
		return nil, fail(ErrComm, op, "a rank is in both groups")
	}
	return other, nil
}

// leaders exchanges bytes between the first ranks of both sides.
func (c *Comm) leaders(op string) func(out, in []byte) error {
	return func(out, in []byte) error {
		return c.p.exchange(op, c, c.coll.envelope(0), out, in)
	}
}

// Merge makes an intracommunicator of both groups of an intercommunicator
// (MPI_Intercomm_merge). All ranks of a group give the same value of high; the
// group that gives true comes behind the other. If both give the same, the
// group with the lowest rank of World comes first.
func (c *Comm) Merge(high bool) (*Comm, error) {
	const op = "Comm.Merge"
	err := c.live(op)
	if err == nil && !c.Inter() {
		err = fail(ErrComm, op, "it is for intercommunicators")
	}
	if err != nil {
		return nil, c.report(err)
	}
	mine, theirs := []int64{0}, []int64{0}
	if high {
		mine[0] = 1
	}
	got, err := c.within.agree(op, 1, func(free *contextSet) error {
		if _, err := c.within.meet(op, 0, free, c.leaders(op)); err != nil {
			return err
		}
		if c.rank == 0 {
			if err := c.leaders(op)(mem.BytesOf(mine), mem.BytesOf(theirs)); err != nil {
				return err
			}
		}
		return c.within.coll.bcast(mem.BytesOf(theirs), 0)
	})
	if err != nil {
		return nil, c.report(err)
	}
	first, second := c.local, c.RemoteGroup()
	if mine[0] > theirs[0] || mine[0] == theirs[0] && lowest(second) < lowest(first) {
		first, second = second, first
	}
	n := c.p.newComm(2*got[0], first.Union(second))
	n.SetErrhandler(c.Errhandler())
	return n, nil
}

// lowest returns the lowest rank of World in a group.
func lowest(g *Group) int32 {
	low := g.world[0]
	for _, w := range g.world {
		low = min(low, w)
	}
	return low
}
