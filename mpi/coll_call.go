package mpi

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// call is a collective: its schedule, and the transport that the schedule uses.
// Every collective has a function that plans it, which checks the arguments and
// writes the schedule; then the call is run at once, or started, or kept.
type call struct {
	c       *Comm
	s       coll.Schedule
	op      string
	err     error  // what is wrong with the arguments, or with the result
	gen     uint32 // tells the uses of a pooled call apart
	busy    bool   // it was started and the user has not taken the result
	done    bool
	kept    bool // persistent: the user's, not the pool's
	task    task // what it does in place of a schedule, or around one; or nil
	st      Status
	next    *call // in the pool
	plan    plan  // of a blocking one, when the next one may be the same
	counts  []int // of that plan: see counted
	waits   bool  // it is one of collective.blocking
	data    []Data
	late    []late
	lay     *dtype.Type // how elements lie that are reduced; nil: as packed bytes
	reducer typedReducer

	sign  sign      // see Config.Check, as of check
	check *checking // what goes on before a call that goes on in steps; nil: it is over, or there is none
}

// beginBlocking begins a blocking collective.
func (c *Comm) beginBlocking(op string) *call { return c.beginCached(op, planNone) }

// beginCached begins a blocking collective whose plan is of the given kind: what was
// planned last is still there.
func (c *Comm) beginCached(op string, kind planKind) *call {
	if err := c.live(op); err != nil {
		return &call{c: c, op: op, err: err}
	}
	k := c.coll.blocking[kind]
	if k == nil {
		k = &call{waits: true, s: coll.Schedule{Memory: c.p.calls.memory}}
		c.coll.blocking[kind] = k
	}
	k.c, k.op, k.err = c, op, nil
	if c.p.check {
		k.sign = unsigned
	}
	return k
}

// run runs what was planned and reports the error.
func (k *call) run() error {
	t := k.watched()
	err := k.c.report(k.finish())
	t.end(err)
	return err
}

// watched begins the call for what watches the process.
func (k *call) watched() *Call {
	if k.c == nil || k.c.p.watch == nil {
		return nil
	}
	name := k.op
	if k.kept {
		name = "Start"
	}
	return k.c.p.watch.begin(name, k.c, Undefined, Undefined, k.s.Sends())
}

// finish runs what was planned.
func (k *call) finish() error {
	ran := k.err == nil
	if ran {
		k.seal()
		k.s.Tag = k.c.coll.number()
		k.c.coll.slots.call = k
		k.c.ep.Enter()
		if k.c.p.check {
			k.err = k.checkNow()
		}
		if k.err == nil {
			k.err = k.s.Run(k)
		}
		k.c.ep.Leave()
	}
	err := k.err
	if k.plan.kind == planNone || err != nil {
		k.clear()
	}
	if ran { // all ranks have, or wait for ever
		k.c.coll.count(k.op)
	}
	return err
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
	team := coll.Team{Me: k.c.rank, Size: k.c.size, Hosts: t.hosts, OneHost: t.oneHost, Tables: k.c.p.tables}
	if k.waits {
		team.Slots = t.slots.near
	}
	return team
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
	case k.c.p.check:
		k.sign.root = root
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

// out is the envelope of a message to a rank of the schedule, which has so many bytes,
// and its rank of World.
func (k *call) out(to, tag int32, bytes int) (env match.Envelope, dest int) {
	env = match.Envelope{Context: k.c.context + 1, Source: int32(k.c.p.rank), Tag: tag}
	_, world := k.at(to)
	if w := k.c.p.watch; w != nil { // which sentAs asks, too, but as a call
		w.sentAs(k.c, env, world, bytes)
	}
	return env, int(world)
}

// in is the envelope of a message from a rank of the schedule.
func (k *call) in(from, tag int32) match.Envelope {
	_, source := k.at(from)
	return match.Envelope{Context: k.c.context + 1, Source: source, Tag: tag}
}

func (k *call) Isend(b []byte, to, tag int32) coll.Handle {
	env, dest := k.out(to, tag, len(b))
	in := k.c.ep.Inside()
	switch {
	case in.TrySend(env, dest, b):
		return nil
	case k.waits:
		return handle{p2p.Delegations(in).IsendAttended(env, dest, b)}
	}
	return handle{in.Isend(env, dest, b)}
}

func (k *call) Irecv(b []byte, from, tag int32) coll.Handle {
	in := k.c.ep.Inside()
	if k.waits {
		return handle{p2p.Delegations(in).IrecvAttended(k.in(from, tag), b)}
	}
	return handle{in.Irecv(k.in(from, tag), b)}
}

func (k *call) IsendOver(cur dtype.Cursor, to, tag int32) coll.Handle {
	env, dest := k.out(to, tag, cur.Rest())
	if in := k.c.ep.Inside(); !in.TrySendTyped(env, dest, cur) {
		return handle{in.IsendTyped(env, dest, cur)}
	}
	return nil
}

func (k *call) IrecvOver(cur dtype.Cursor, from, tag int32) coll.Handle {
	return handle{k.c.ep.Inside().IrecvTyped(k.in(from, tag), cur)}
}

func (k *call) Take(h coll.Handle, want int, peer int32) error {
	if want < 0 {
		k.c.ep.Inside().Detach(h.(handle).Request)
		return nil
	}
	st, err := k.c.ep.Inside().Wait(h.(handle).Request)
	k.c.gotAs(k.c.context+1, st)
	if err == nil && st.Bytes == want {
		return nil
	}
	c, world := k.at(peer)
	if err = c.wrap(k.op, err); err != nil && ClassOf(err) != ErrTruncate {
		return err
	}
	rank := c.from(world)
	detail := fmt.Sprintf("rank %d sent %d bytes where %d were expected", rank, st.Bytes, want)
	if err != nil {
		detail = fmt.Sprintf("rank %d sent more than the %d bytes that were expected", rank, want)
	}
	return &Error{Class: ErrTruncate, Op: k.op, Rank: rank, Detail: detail, Err: coll.ErrLengths}
}

func (k *call) Wait(h coll.Handle, gives bool) { k.c.ep.Inside().Await(h.(handle).Request, gives) }
func (k *call) Step()                          { k.c.ep.Inside().Step() }
func (k *call) Flush()                         { k.c.ep.Inside().Flush() }

// handle is a request as it looks to those inside.
type handle struct{ *p2p.Request }

// Done implements coll.Handle.
func (h handle) Done() bool { return h.Request.Ready() }
