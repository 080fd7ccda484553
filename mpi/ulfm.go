package mpi

import (
	"encoding/binary"
	"slices"
)

// Fault tolerance after ULFM (User Level Failure Mitigation, the proposal of the
// MPI Forum's working group; MPIX_* in Open MPI and MPICH). A rank that dies makes
// operations that need it fail with ErrProcFailed, on the ranks that call them;
// all others go on. What the program does then is its own decision:
//
//	Revoke    makes all ranks leave what they do on the communicator, with
//	          ErrRevoked, so that they meet
//	Shrink    makes a communicator of those that are left
//	Agree     decides something together, in spite of losses
//	AckFailed lets receives from any source go on
//
// Revoke, Shrink, Agree and Free work on communicators that are revoked or have
// lost ranks; everything else that all ranks call fails there.

// members returns all ranks of World that are in the communicator.
func (c *Comm) members() []int32 {
	if c.local != nil {
		return append(slices.Clone(c.local.world), c.RemoteGroup().world...)
	}
	return c.Group().world
}

// register tells the layer below about a new communicator.
func (c *Comm) register() {
	members := c.members()
	c.ep.Register(c.context, members, ballotBytes(len(members)))
	c.ep.Enter()
	c.session.track(c)
	c.ep.Leave()
}

// announce is register for those inside.
func (c *Comm) announce() {
	members := c.members()
	c.ep.Inside().Register(c.context, members, ballotBytes(len(members)))
	c.session.track(c)
}

// Revoke makes every operation on the communicator that is under way or follows
// fail with ErrRevoked, on all its ranks, but for Shrink, Agree, Free and what is
// known to this rank alone (MPIX_Comm_revoke). One rank suffices to call it. It
// does not wait for the others, which learn of it in their next call of MPI.
func (c *Comm) Revoke() error {
	if err := c.live("Comm.Revoke"); err != nil {
		return c.report(err)
	}
	c.ep.Revoke(c.context)
	if c.within != nil {
		c.ep.Revoke(c.within.context)
	}
	return nil
}

// IsRevoked reports whether this rank knows that the communicator was revoked
// (MPIX_Comm_is_revoked).
func (c *Comm) IsRevoked() bool { return c.ep.IsRevoked(c.context) }

// GetFailed returns the ranks of the communicator that this rank knows to be lost,
// in the order in which it has learned of them (MPIX_Comm_get_failed). Ranks do not
// know the same at a time; what Shrink leaves out they all agree upon. Of an
// intercommunicator it is the ranks of both groups.
func (c *Comm) GetFailed() *Group {
	lost, _ := c.ep.Failed(c.context)
	return &Group{world: slices.Clone(lost), session: c.session}
}

// AckFailed acknowledges the first n ranks of GetFailed and returns how many are
// acknowledged in all (MPIX_Comm_ack_failed). Receives from AnySource fail with
// ErrProcFailed, or stay under way with ErrProcFailedPending, while there are
// losses that are not acknowledged; and so does Agree.
func (c *Comm) AckFailed(n int) int {
	c.ep.Acknowledge(c.context, n)
	_, acked := c.ep.Failed(c.context)
	return acked
}

// FailureAck acknowledges all losses that this rank knows of
// (MPIX_Comm_failure_ack).
func (c *Comm) FailureAck() {
	lost, _ := c.ep.Failed(c.context)
	c.ep.Acknowledge(c.context, len(lost))
}

// FailureGetAcked returns the ranks whose loss was acknowledged
// (MPIX_Comm_failure_get_acked).
func (c *Comm) FailureGetAcked() *Group {
	lost, acked := c.ep.Failed(c.context)
	return &Group{world: slices.Clone(lost[:acked]), session: c.session}
}

// Agree returns the AND of the flags of all ranks (MPIX_Comm_agree), of both groups
// of an intercommunicator. All ranks that live call it and get the same, whichever
// die meanwhile: also the same error, ErrProcFailed, when a rank is lost whose
// loss not all of them have acknowledged before; the flag is right then too. See
// package agree for how.
func (c *Comm) Agree(flag uint64) (uint64, error) {
	const op = "Comm.Agree"
	d, err := c.decide(op, ballot{flag: flag, kind: ballotAgree})
	if err != nil {
		return 0, c.report(err)
	}
	return d.flag, c.report(c.unacknowledged(op, d))
}

// unacknowledged is the error for a loss that not all ranks have acknowledged.
func (c *Comm) unacknowledged(op string, d *ballot) error {
	for _, w := range c.members() {
		if !slices.Contains(d.alive, w) && !slices.Contains(d.acked, w) {
			return &Error{Class: ErrProcFailed, Op: op, Rank: c.from(w), Detail: "it is lost, and not all ranks had acknowledged that"}
		}
	}
	return nil
}

// Shrink makes a communicator of the ranks that are left, in their order
// (MPIX_Comm_shrink); of an intercommunicator another one. All ranks that live call
// it, and all get the same group. A rank that dies meanwhile may still be in it:
// then what they do next fails, and they shrink the new communicator.
func (c *Comm) Shrink() (*Comm, error) {
	n, r, err := c.ishrink("Comm.Shrink", true)
	if err != nil {
		return nil, err
	}
	if _, err := r.wait("Comm.Shrink"); err != nil {
		return nil, err
	}
	return n, nil
}

// ballot is what a rank gives to an agreement, and what it gets out of it: the AND
// of all ballots.
type ballot struct {
	kind  uint64
	flag  uint64
	free  contextSet
	alive []int32 // of the decision: ranks of World
	acked []int32 // ranks of World
}

// Kinds of ballots have no bit in common, so that ranks notice when they call
// different things.
const (
	ballotAgree    = 1
	ballotShrink   = 2
	ballotFinalize = 4
	ballotRoutes   = 8 // of a window
)

const ballotHead = 8 + 8 + 8*contextWords

func ballotBytes(ranks int) int { return ballotHead + (ranks+7)/8 }

// decide agrees on a ballot.
func (c *Comm) decide(op string, b ballot) (*ballot, error) {
	if err := c.live(op); err != nil {
		return nil, err
	}
	c.ep.Enter()
	defer c.ep.Leave()
	if err := c.beginAgree(op, b); err != nil {
		return nil, err
	}
	for {
		if d, err := c.decided(op, b.kind); d != nil || err != nil {
			c.agrees = false
			return d, err
		}
		c.ep.Inside().Progress()
	}
}

// beginAgree begins an agreement on a ballot, of which a communicator has one at a
// time. It is called inside, as decided is.
func (c *Comm) beginAgree(op string, b ballot) error {
	if c.agrees {
		return fail(ErrPending, op, "an agreement is under way on this communicator: wait for its request first")
	}
	c.agrees = true
	in := c.ep.Inside()
	members, lost, acked := in.Members(c.context)
	bits := make([]byte, ballotBytes(len(members)))
	binary.BigEndian.PutUint64(bits, b.kind)
	binary.BigEndian.PutUint64(bits[8:], b.flag)
	for i, w := range b.free {
		binary.BigEndian.PutUint64(bits[16+8*i:], w)
	}
	for _, w := range lost[:acked] {
		i := slices.Index(members, w)
		bits[ballotHead+i/8] |= 1 << (i % 8)
	}
	in.BeginAgree(c.context, bits)
	return nil
}

// decided returns what was agreed upon, or nil while it was not.
func (c *Comm) decided(op string, kind uint64) (*ballot, error) {
	in := c.ep.Inside()
	alive, bits, done, err := in.Agreed(c.context)
	switch {
	case err != nil:
		return nil, c.wrap(op, err)
	case !done:
		return nil, nil
	case binary.BigEndian.Uint64(bits)&kind == 0:
		return nil, fail(ErrOther, op, "the ranks of the communicator call different functions: all have to call this one")
	}
	members, _, _ := in.Members(c.context)
	return readBallot(members, alive, bits), nil
}

// readBallot reads a decision.
func readBallot(members, alive []int32, bits []byte) *ballot {
	d := &ballot{kind: binary.BigEndian.Uint64(bits), flag: binary.BigEndian.Uint64(bits[8:]), alive: alive}
	for i := range d.free {
		d.free[i] = binary.BigEndian.Uint64(bits[16+8*i:])
	}
	for i, w := range members {
		if bits[ballotHead+i/8]>>(i%8)&1 != 0 {
			d.acked = append(d.acked, w)
		}
	}
	return d
}
