package mpi

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/mem"
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
	c     *Comm
	op    string // the call that is under way, where it is not a call of the user's own
	seq   int32  // of the latest collective
	kept  int32  // of the latest persistent one
	part  int32  // not 0: the tag of all collectives of a part of the ranks: see CreateGroup
	call  call   // the blocking one
	known bool   // hosts and inter are
	hosts *coll.Hosts
	inter coll.Inter
	near  *neighbors
}

// Messages of collectives use a context of their own, and have a number of the
// collective as their tag, which is the same on all ranks, for all call the
// collectives of a communicator in the same order. So several can be under way
// at a time. Persistent ones keep the number that they got when they were made:
// they may be started in any order.
const (
	tagNumber = 1<<29 - 1 // the numbers; they begin again when there are no more
	tagKept   = 1 << 29   // persistent
	tagPart   = 1 << 30   // collectives of parts of the ranks, or messages of leaders
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
	t.kept = (t.kept + 1) & tagNumber
	return tagKept | t.kept
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
}

// envelope is that of a message from a leader of the other group of an
// intercommunicator, envelopeOut of one to it.
func (t *collective) envelope(source int) match.Envelope {
	return match.Envelope{Context: t.c.context + 1, Source: int32(t.c.at(source)), Tag: tagPart}
}

func (t *collective) envelopeOut() match.Envelope {
	return match.Envelope{Context: t.c.context + 1, Source: int32(t.c.p.rank), Tag: tagPart}
}

// allreduce reduces the words of all ranks.
func (t *collective) allreduce(v []uint64, op Op[uint64]) error {
	k := t.c.now(t.op)
	reduction(k, op, nil)
	coll.Allreduce(&k.s, k.team(), mem.BytesOf(v))
	return k.finish()
}

// sum adds the numbers of all ranks.
func (t *collective) sum(v []int64) error {
	k := t.c.now(t.op)
	reduction(k, Sum[int64], nil)
	coll.Allreduce(&k.s, k.team(), mem.BytesOf(v))
	return k.finish()
}

// bcast copies the bytes of root.
func (t *collective) bcast(b []byte, root int) error {
	k := t.c.now(t.op)
	coll.Bcast(&k.s, k.team(), b, root)
	return k.finish()
}

// barrier waits for all ranks.
func (c *Comm) barrier() error {
	k := c.now(c.coll.op)
	coll.Barrier(&k.s, k.team())
	return k.finish()
}

// call is a collective: its schedule, and the transport that the schedule uses.
// Every collective has a function that plans it, which checks the arguments and
// writes the schedule; then the call is run at once, or started, or kept.
type call struct {
	c    *Comm
	s    coll.Schedule
	op   string
	err  error  // what is wrong with the arguments, or with the result
	gen  uint32 // tells the uses of a pooled call apart
	busy bool   // it was started and the user has not taken the result
	done bool
	kept bool  // persistent: the user's, not the pool's
	next *call // in the pool
	plan plan  // of a blocking one, when the next one may be the same
}

// now begins a blocking collective.
func (c *Comm) now(op string) *call {
	k := c.again(op)
	if k.plan.kind != planNone {
		k.clear()
	}
	return k
}

// again begins a blocking collective whose plan calls same: what was planned
// last is still there.
func (c *Comm) again(op string) *call {
	if err := c.live(op); err != nil {
		return &call{c: c, op: op, err: err}
	}
	k := &c.coll.call
	k.c, k.op, k.err = c, op, nil
	return k
}

// plan is what a schedule was written from. Programs call the same collectives
// with the same buffers over and over, and for short vectors writing the
// schedule is a good part of what our own code costs.
type plan struct {
	kind     planKind
	commutes bool
	root     int
	elem     int
	in, out  *byte
	nin      int
	nout     int
}

type planKind uint8

const (
	planNone planKind = iota
	planOfBarrier
	planOfBcast
	planOfAllreduce
)

// planLongest is up to how many bytes a schedule is left for the next call: as
// long as it is there it keeps the program's buffers alive.
const planLongest = 64 << 10

// same reports whether the schedule was written for the same as p. Else it is
// empty afterwards.
func (k *call) same(p plan) bool {
	if k.plan == p {
		k.s.Rewind()
		return true
	}
	k.clear()
	if p.nin <= planLongest && p.nout <= planLongest {
		k.plan = p
	}
	return false
}

func (k *call) clear() {
	k.s.Reset()
	k.plan = plan{}
}

// first returns the address of b, to tell buffers apart.
func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// run runs what was planned and reports the error.
func (k *call) run() error { return k.c.report(k.finish()) }

// finish runs what was planned.
func (k *call) finish() error {
	if k.err == nil {
		k.s.Tag = k.c.coll.number()
		k.err = k.s.Run(k)
	}
	if k.plan.kind == planNone || k.err != nil {
		k.clear()
	}
	return k.err
}

// ok reports whether the arguments are right so far.
func (k *call) ok() bool { return k.err == nil }

// refuse says what is wrong with an argument.
func (k *call) refuse(class ErrorClass, format string, args ...any) *call {
	if k.err == nil {
		k.err = fail(class, k.op, format, args...)
	}
	return k
}

// team is all ranks.
func (k *call) team() coll.Team {
	t := &k.c.coll
	if !t.known {
		t.learn()
	}
	return coll.Team{Me: k.c.rank, Size: k.c.size, Hosts: t.hosts}
}

// inter is the two groups of an intercommunicator.
func (k *call) inter() coll.Inter {
	t := &k.c.coll
	if !t.known {
		t.learn()
	}
	return t.inter
}

// intra refuses intercommunicators where MPI has no such collective.
func (k *call) intra() bool {
	if k.ok() && k.c.Inter() {
		k.refuse(ErrComm, "it is not for intercommunicators: Merge first")
	}
	return k.ok()
}

// root checks a root.
func (k *call) root(root int) bool {
	switch {
	case !k.ok(), k.c.Inter() && (root == Root || root == ProcNull):
	case root < 0 || root >= k.c.size:
		k.refuse(ErrRoot, "root %d is no rank of this communicator, which has ranks 0 to %d", root, k.c.size-1)
	}
	return k.ok()
}

// at returns the rank of World that a rank of the schedule is: of an
// intercommunicator, the remote group follows the local one.
func (k *call) at(peer int32) (comm *Comm, world int32) {
	c := k.c
	if c.local != nil {
		if n := int32(len(c.local.world)); peer >= n {
			peer -= n
		} else {
			c = c.within
		}
	}
	return c, int32(c.at(int(peer)))
}

func (k *call) Isend(b []byte, to, tag int32) coll.Handle {
	env := match.Envelope{Context: k.c.context + 1, Source: int32(k.c.p.rank), Tag: tag}
	_, dest := k.at(to)
	if k.c.ep.TrySend(env, int(dest), b) {
		return nil
	}
	return k.c.ep.Isend(env, int(dest), b)
}

func (k *call) Irecv(b []byte, from, tag int32) coll.Handle {
	_, source := k.at(from)
	return k.c.ep.Irecv(match.Envelope{Context: k.c.context + 1, Source: source, Tag: tag}, b)
}

func (k *call) Take(h coll.Handle, want int, peer int32) error {
	st, err := h.(*p2p.Request).Wait()
	if err == nil && st.Bytes == want {
		return nil
	}
	c, world := k.at(peer)
	if err != nil {
		return c.wrap(k.op, err)
	}
	rank := c.from(world)
	return &Error{Class: ErrTruncate, Op: k.op, Rank: rank, Detail: fmt.Sprintf(
		"rank %d sent %d bytes where %d were expected: the ranks call it with different lengths", rank, st.Bytes, want)}
}

func (k *call) Progress() { k.c.ep.Progress() }
func (k *call) Flush()    { k.c.ep.Flush() }
