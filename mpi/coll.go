package mpi

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Root is what the root of a collective on an intercommunicator gives as root
// (MPI_ROOT). The others of its group give ProcNull, and those of the other
// group its rank.
const Root = -4

// InPlace is what to give as the send buffer of a collective that finds in the
// receive buffer what it would find there (MPI_IN_PLACE). nil says the same.
func InPlace[T Scalar]() []T { return nil }

// collective is a communicator's hidden half: what its collectives share.
type collective struct {
	c    *Comm
	op   string // the call that is under way, where it is not a call of the user's own
	seq  int32  // of the latest collective
	kept int32  // of the latest persistent one
	part int32  // not 0: the tag of all collectives of a part of the ranks: see CreateGroup

	blocking [planKinds]*call // one that each kind of plan is kept in, and one for what has none

	known   bool // hosts, oneHost and inter are
	hosts   *coll.Hosts
	oneHost bool
	inter   coll.Inter
	slots   slots
	near    *neighbors
	parts   channels
}

// Messages of collectives use a context of their own, and have a number of the
// collective as their tag, which is the same on all ranks, for all call the
// collectives of a communicator in the same order. So several can be under way
// at a time. Persistent ones keep the number that they got when they were made:
// they may be started in any order.
const (
	tagNumber = p2p.SeqTagMax // the numbers; they begin again when there are no more
	tagKept   = 1 << 29       // persistent
	keptMax   = 1<<28 - 1     // the numbers of these; behind them are those of partitions: see channels
	tagPart   = p2p.PartTag   // collectives of parts of the ranks, or messages of leaders
)

// number returns the tag of the next collective.
func (t *collective) number() int32 {
	if t.part != 0 {
		return t.part
	}
	t.seq = (t.seq + 1) & tagNumber
	return t.seq
}

// keep returns the tag of a persistent collective.
func (t *collective) keep() int32 {
	t.kept = (t.kept + 1) & keptMax
	return tagKept | t.kept
}

// choose reads the rows that come before the tables of collectives.
func (p *Proc) choose(rows string) (err error) {
	if rows == "" {
		return nil
	}
	if p.tables, err = coll.ParseTables(rows, config.ParseSize); err != nil {
		return fail(ErrArg, "Init", "%s: %v", EnvColl, err)
	}
	return nil
}

// learn finds out what collectives have to know about the ranks.
func (t *collective) learn() {
	c := t.c
	t.known = true
	if c.Inter() {
		t.inter = coll.NewInter(c.rank, c.local.Size(), c.size)
		return
	}
	hosts := make([]int, c.size)
	for r := range hosts {
		hosts[r] = c.p.hosts[c.at(r)]
	}
	t.hosts = coll.NewHosts(hosts)
	t.oneHost = slices.Min(hosts) == slices.Max(hosts)
}

// envelope is that of a message from a leader of the other group of an
// intercommunicator.
func (t *collective) envelope(source int) match.Envelope {
	return match.Envelope{Context: t.c.context + 1, Source: int32(t.c.at(source)), Tag: tagPart}
}

// allreduce reduces the words of all ranks.
func (t *collective) allreduce(v []uint64, op Op[uint64]) error {
	return planAllreduce(t.c.beginCached(t.op, planOfAllreduce), Data{}, Slice(v), by(op, nil)).finish()
}

// sum adds the numbers of all ranks.
func (t *collective) sum(v []int64) error {
	return planAllreduce(t.c.beginCached(t.op, planOfAllreduce), Data{}, Slice(v), by(Sum[int64], nil)).finish()
}

// bcast copies the bytes of root.
func (t *collective) bcast(b []byte, root int) error {
	k := t.c.beginBlocking(t.op)
	coll.Bcast(&k.s, k.team(), b, root)
	return k.finish()
}

// barrier waits for all ranks.
func (c *Comm) barrier() error {
	k := c.beginBlocking(c.coll.op)
	coll.Barrier(&k.s, k.team())
	return k.finish()
}
