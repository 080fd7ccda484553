package p2p

import (
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// This file is what package mpi calls: each of these goes inside, does its work
// and leaves. Any goroutine may call them where the endpoint is for several Threads.

// Send sends buf and returns when buf may be changed. env.Source is this rank.
// The arguments are checked: dest is a rank.
func (ep *Endpoint) Send(env match.Envelope, dest int, buf []byte) error {
	ep.Enter()
	var err error
	if ep.out.eager(&ep.peers[dest], env.Context, env.Tag, view{buf: buf}, alone) {
		ep.out.push(1)
	} else {
		err = ep.out.send(env, dest, buf)
	}
	ep.Leave()
	return err
}

// Isend starts a send. Errors come with the result of the request.
func (ep *Endpoint) Isend(env match.Envelope, dest int, buf []byte) *Request {
	ep.Enter()
	r := ep.out.isendBytes(env, dest, buf)
	ep.Leave()
	return r
}

// Bsend is Isend of what may be changed at once. nil: it has gone, else it goes from a copy.
func (ep *Endpoint) Bsend(env match.Envelope, dest int, buf []byte) (r *Request) {
	ep.Enter()
	if !ep.out.trySend(env, dest, view{buf: buf}) {
		r = ep.out.isendCopy(env, dest, buf)
	}
	ep.Leave()
	return r
}

// IsendTyped is Isend of the bytes before a cursor.
func (ep *Endpoint) IsendTyped(env match.Envelope, dest int, cur dtype.Cursor) *Request {
	ep.Enter()
	r := ep.out.isend(env, dest, dataOf(cur), false)
	ep.Leave()
	return r
}

// Issend starts a send that completes when its receive has been found (MPI 4.1,
// section 3.4): whatever its length, the receiver answers.
func (ep *Endpoint) Issend(env match.Envelope, dest int, buf []byte) *Request {
	ep.Enter()
	r := ep.out.isend(env, dest, data{buf: buf}, true)
	ep.Leave()
	return r
}

// IssendTyped is Issend of the bytes before a cursor.
func (ep *Endpoint) IssendTyped(env match.Envelope, dest int, cur dtype.Cursor) *Request {
	ep.Enter()
	r := ep.out.isend(env, dest, dataOf(cur), true)
	ep.Leave()
	return r
}

// Recv receives a message that fits env into buf.
func (ep *Endpoint) Recv(env match.Envelope, buf []byte) (Status, error) {
	ep.Enter()
	st, err := ep.match.irecv(env, ep.requests.request(env.Source, buf)).wait()
	ep.Leave()
	return st, err
}

// Irecv starts a receive. Errors come with the result of the request. env may
// hold match.Any; its source is a rank otherwise.
func (ep *Endpoint) Irecv(env match.Envelope, buf []byte) *Request {
	ep.Enter()
	r := ep.inviter.irecv(env, ep.requests.request(env.Source, buf))
	ep.Leave()
	return r
}

// IrecvTyped is Irecv into the bytes before a cursor.
func (ep *Endpoint) IrecvTyped(env match.Envelope, cur dtype.Cursor) *Request {
	ep.Enter()
	r := ep.match.irecvTyped(env, cur)
	ep.Leave()
	return r
}

// Iprobe makes progress once and reports whether a message that fits env
// waits. The message stays where it is.
func (ep *Endpoint) Iprobe(env match.Envelope) (st Status, found bool, err error) {
	ep.Enter()
	ep.lanes.hurry()
	ep.glance()
	st, found, err = ep.match.find(env)
	ep.Leave()
	return st, found, err
}

// Probe waits for a message that fits env. The message stays where it is.
func (ep *Endpoint) Probe(env match.Envelope) (st Status, err error) {
	ep.Enter()
	for found := false; ; ep.progress(nil) {
		if st, found, err = ep.match.find(env); found || err != nil {
			break
		}
		ep.lanes.hurry()
	}
	ep.Leave()
	return st, err
}

// Improbe makes progress once and takes the oldest message that fits env.
func (ep *Endpoint) Improbe(env match.Envelope) (m Matched, st Status, found bool, err error) {
	ep.Enter()
	ep.lanes.hurry()
	ep.glance()
	m, st, found, err = ep.match.seize(env)
	ep.Leave()
	return m, st, found, err
}

// Mprobe waits for a message that fits env and takes it.
func (ep *Endpoint) Mprobe(env match.Envelope) (m Matched, st Status, err error) {
	ep.Enter()
	for found := false; ; ep.progress(nil) {
		if m, st, found, err = ep.match.seize(env); found || err != nil {
			break
		}
		ep.lanes.hurry()
	}
	ep.Leave()
	return m, st, err
}

// Accept receives a message that was taken, once.
func (ep *Endpoint) Accept(m Matched, buf []byte) *Request {
	ep.Enter()
	r := ep.match.acceptMatched(m, ep.requests.request(m.m.entry.Source, buf))
	ep.Leave()
	return r
}

// AcceptTyped is Accept into the bytes before a cursor.
func (ep *Endpoint) AcceptTyped(m Matched, cur dtype.Cursor) *Request {
	ep.Enter()
	r := ep.requests.request(m.m.entry.Source, nil)
	r.data = dataOf(cur)
	r = ep.match.acceptMatched(m, r)
	ep.Leave()
	return r
}

// Null returns a request that is done.
func (ep *Endpoint) Null(st Status) *Request {
	ep.Enter()
	r := ep.requests.request(ep.rank, nil)
	r.st = st
	r.complete()
	ep.Leave()
	return r
}

// Cancel takes back a receive that no message has met yet. The request is done
// then, and its status says so. A send that waits for its receive is done when the
// receiver says that there is none, or when there is one; others go on.
func (ep *Endpoint) Cancel(r *Request) {
	ep.Enter()
	if !ep.match.cancel(r) {
		ep.rendezvous.cancel(r)
	}
	ep.Leave()
}

// Flush lets messages go out that wait for others.
func (ep *Endpoint) Flush() {
	ep.Enter()
	ep.out.flush()
	ep.Leave()
}

// Step makes progress once, and does not wait.
func (ep *Endpoint) Step() {
	ep.Enter()
	ep.step()
	ep.Leave()
}

// Ask is Step for a caller that asks again and again whether something is done.
func (ep *Endpoint) Ask() {
	ep.Enter()
	ep.ask()
	ep.Leave()
}

// Glance is Ask without a step each time, for a caller that waits for messages.
func (ep *Endpoint) Glance() {
	ep.Enter()
	ep.glance()
	ep.Leave()
}

// End fails everything under way and everything that follows.
func (ep *Endpoint) End(err *Error) {
	ep.Enter()
	ep.failures.end(err)
	ep.Leave()
}

// Active returns how many requests the user has not taken the result of.
func (ep *Endpoint) Active() int {
	ep.Enter()
	n := ep.requests.active
	ep.Leave()
	return n
}

// Done reports whether Wait would return at once: the result is there, or a loss
// makes waiting doubtful.
func (r *Request) Done() bool {
	r.ep.Enter()
	there := r.Ready()
	r.ep.Leave()
	return there
}

// Ready is Done for those inside.
func (r *Request) Ready() bool {
	return r.state == done || r.ep.failures.impaired && r.ep.failures.interruption(r) != nil
}

// Await makes progress until r is done and takes its result, or reports that r is
// active still, and may wait in vain.
func (r *Request) Await() (st Status, active bool, err error) {
	ep := r.ep
	ep.Enter()
	st, active, err = r.await()
	ep.Leave()
	return st, active, err
}

// Wait makes progress until r is done and takes its result. A receive from any
// source that may wait in vain is given up.
func (r *Request) Wait() (Status, error) {
	ep := r.ep
	ep.Enter()
	st, err := r.wait()
	ep.Leave()
	return st, err
}

// Finish takes the result of r where the caller has no use for it: r is done and has not
// failed. Else it returns false, and does nothing. Call [Endpoint.Flush] before.
func (r *Request) Finish() bool {
	ep := r.ep
	ep.Enter()
	fine := r.state == done && r.err == nil
	if fine {
		ep.requests.release(r)
	}
	ep.Leave()
	return fine
}

// Test makes progress once and takes the result of r if it is there. An error of a
// request that is not finished says that it may wait in vain.
func (r *Request) Test() (st Status, finished bool, err error) {
	ep := r.ep
	ep.Enter()
	if r.state != done {
		ep.glance()
	}
	if finished = r.state == done; finished {
		st, err = ep.requests.take(r)
	} else if ep.failures.impaired {
		err = ep.failures.interruption(r)
	}
	ep.Leave()
	return st, finished, err
}

// Register makes a communicator known: its context, which is even, all ranks of
// World in it, in any order, and how many bytes its ranks agree on. The context of
// World is 0.
func (gs *groups) Register(context uint32, members []int32, agreed int) {
	gs.ep.Enter()
	gs.register(context, members, agreed)
	gs.ep.Leave()
}

// Counts returns the counters of a communicator.
func (gs *groups) Counts(context uint32) Counts {
	gs.ep.Enter()
	c := *gs.countsOf(context)
	gs.ep.Leave()
	return c
}

// RegisterPart tells that members of a communicator do collectives with a tag of
// their own, and returns how to end that.
func (gs *groups) RegisterPart(context uint32, tag int32, members []int32) (end func()) {
	ep := gs.ep
	ep.Enter()
	defer ep.Leave()
	inner := gs.registerPart(context, tag, members)
	return func() {
		ep.Enter()
		inner()
		ep.Leave()
	}
}

// Failed returns the members of a communicator that are lost, in the order in
// which this rank has learned of it, and how many of these are acknowledged.
func (gs *groups) Failed(context uint32) (lost []int32, acked int) {
	gs.ep.Enter()
	defer gs.ep.Leave()
	g := gs.at(context)
	return slices.Clone(g.lost), g.acked
}

// Acknowledge lets receives from any source go on in spite of the first n losses.
func (gs *groups) Acknowledge(context uint32, n int) {
	gs.ep.Enter()
	gs.acknowledge(context, n)
	gs.ep.Leave()
}

// IsRevoked reports whether a communicator was revoked, as far as this rank knows.
func (gs *groups) IsRevoked(context uint32) bool {
	gs.ep.Enter()
	defer gs.ep.Leave()
	return gs.at(context).revoked
}

// Revoke ends the use of a communicator on all ranks: everything but agreements
// fails. Each rank that learns of it tells its neighbours, before it does anything
// else, so all learn of it when one does that lives.
func (gs *groups) Revoke(context uint32) {
	ep := gs.ep
	ep.Enter()
	if g := gs.at(context); !g.revoked && ep.failures.over == nil {
		gs.revoke(context, g)
		ep.out.push(0)
	}
	ep.Leave()
}

// Inside is an endpoint for code that is inside already: between Enter and
// Leave, or called by the endpoint. It is what collectives are made with, of
// which every message and every step forward happens inside.
type Inside struct{ ep *Endpoint }

// Counts is Endpoint.Counts.
func (in Inside) Counts(context uint32) Counts { return *in.ep.groups.countsOf(context) }

// Inside returns the endpoint for use between Enter and Leave.
func (ep *Endpoint) Inside() Inside { return Inside{ep} }

// TrySend sends buf if that takes no request: it goes eagerly, and there is
// room for it. If it reports true, buf may be changed. Messages may wait for one
// another, as those of Isend.
func (in Inside) TrySend(env match.Envelope, dest int, buf []byte) bool {
	return in.ep.out.trySend(env, dest, view{buf: buf})
}

// TrySendTyped is TrySend of the bytes before a cursor.
func (in Inside) TrySendTyped(env match.Envelope, dest int, cur dtype.Cursor) bool {
	d := dataOf(cur)
	return in.ep.out.trySend(env, dest, d.view())
}

// IsendTyped is Endpoint.IsendTyped.
func (in Inside) IsendTyped(env match.Envelope, dest int, cur dtype.Cursor) *Request {
	return in.ep.out.isend(env, dest, dataOf(cur), false)
}

// IrecvTyped is Endpoint.IrecvTyped.
func (in Inside) IrecvTyped(env match.Envelope, cur dtype.Cursor) *Request {
	return in.ep.match.irecvTyped(env, cur)
}

// Isend is Endpoint.Isend.
func (in Inside) Isend(env match.Envelope, dest int, buf []byte) *Request {
	return in.ep.out.isendBytes(env, dest, buf)
}

// Irecv is Endpoint.Irecv.
func (in Inside) Irecv(env match.Envelope, buf []byte) *Request {
	return in.ep.inviter.irecv(env, in.ep.requests.request(env.Source, buf))
}

// Seize takes the oldest message that fits env, if there is one.
func (in Inside) Seize(env match.Envelope) (m Matched, found bool, err error) {
	m, _, found, err = in.ep.match.seize(env)
	return m, found, err
}

// Accept is Endpoint.Accept.
func (in Inside) Accept(m Matched, buf []byte) *Request {
	return in.ep.match.acceptMatched(m, in.ep.requests.request(m.m.entry.Source, buf))
}

// Await makes progress until r is Ready. Others come inside meanwhile. gives says that the caller has begun to
// send data to others, too.
func (in Inside) Await(r *Request, gives bool) {
	in.ep.far.gives = gives
	for !r.Ready() {
		in.ep.progress(r)
	}
	in.ep.far.gives = false
}

// Wait is Request.Wait. Others come inside meanwhile.
func (in Inside) Wait(r *Request) (Status, error) { return r.wait() }

// Progress makes one step, and sleeps until there is more to do when there was
// nothing. Others come inside meanwhile.
func (in Inside) Progress() { in.ep.progress(nil) }

// Step is Endpoint.Step.
func (in Inside) Step() { in.ep.step() }

// Flush is Endpoint.Flush.
func (in Inside) Flush() { in.ep.out.flush() }

// SetProgressHook calls f in every step from now on; nil ends that.
func (in Inside) SetProgressHook(f ProgressHook) { in.ep.poller.hook = f }

// Register is Endpoint.Register.
func (in Inside) Register(context uint32, members []int32, agreed int) {
	in.ep.groups.register(context, members, agreed)
}

// Members returns all members of a communicator in the order of World, and what
// Failed does. The lists are the endpoint's.
func (in Inside) Members(context uint32) (members, lost []int32, acked int) {
	g := in.ep.groups.at(context)
	return g.members, g.lost, g.acked
}

// Result tells what Wait will of a request that is done, and leaves it to Wait.
// There is none while it is only doubtful whether it will ever be done.
func (in Inside) Result(r *Request) (st Status, finished bool, err error) {
	if r.state != done {
		return Status{}, false, in.ep.failures.interruption(r)
	}
	return r.st, true, r.err
}

// Detach lets a request end by itself: no caller will take its result.
func (in Inside) Detach(r *Request) {
	ep := in.ep
	if r.state == done {
		_, _ = ep.requests.take(r)
		return
	}
	r.detached = true
	ep.requests.active--
}

// UnderWay returns the requests of a communicator, given by its context, that have not
// come to their end: messages of the program and those of collectives, also the ones
// that no caller will wait for. A later use of one has another Generation.
func (in Inside) UnderWay(context uint32) (all []*Request) {
	for _, r := range in.ep.requests.all {
		if r.state != free && r.state != done && r.entry.Context&^1 == context {
			all = append(all, r)
		}
	}
	return all
}

// Unregister forgets a communicator, if all its members are done with it. Else
// some may still ask what was agreed upon, so the context must not be used again.
func (in Inside) Unregister(context uint32, all bool) { in.ep.groups.unregister(context, all) }
