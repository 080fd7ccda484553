package mpi

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Barrier waits until all ranks of the communicator have called it
// (MPI_Barrier).
func (c *Comm) Barrier() error {
	if err := c.collectively("Barrier"); err != nil {
		return c.report(err)
	}
	return c.report(c.barrier())
}

// collectively begins a collective, unless the communicator cannot have any.
func (c *Comm) collectively(op string) error {
	if err := c.live(op); err != nil {
		return err
	}
	if c.Inter() {
		return fail(ErrComm, op, "it is not for intercommunicators: Merge first")
	}
	c.coll.op = op
	return nil
}

func (c *Comm) barrier() error { return coll.Barrier(&c.coll) }

// Bcast copies buf of the rank root into buf of all others (MPI_Bcast). All
// ranks call it with the same length and root.
func Bcast[T Scalar](c *Comm, buf []T, root int) error {
	if err := c.collectively("Bcast"); err != nil {
		return c.report(err)
	}
	if root < 0 || root >= c.size {
		return c.report(fail(ErrRoot, "Bcast", "root %d is no rank of this communicator, which has ranks 0 to %d", root, c.size-1))
	}
	return c.report(coll.Bcast(&c.coll, mem.BytesOf(buf), root))
}

// InPlace is what to give as the send buffer of an Allreduce that reduces recv
// itself (MPI_IN_PLACE). nil says the same.
func InPlace[T Scalar]() []T { return nil }

// Allreduce reduces the vectors send of all ranks element by element and gives
// the result to all of them in recv (MPI_Allreduce). All ranks call it with the
// same length and operation, and all get the same bits.
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op[T]) error {
	if err := c.collectively("Allreduce"); err != nil {
		return c.report(err)
	}
	if op == nil {
		return c.reportf(ErrOp, "Allreduce", "the operation is nil; there is Sum, Max and so on, or write your own")
	}
	if send != nil {
		if len(send) != len(recv) {
			return c.reportf(ErrCount, "Allreduce", "%d elements to send and room for %d: want the same", len(send), len(recv))
		}
		copy(recv, send)
	}
	return c.report(coll.Allreduce(&c.coll, recv, op))
}

// collective is a communicator's hidden half: messages of collectives use a
// context of their own. It implements coll.Transport.
type collective struct {
	c       *Comm
	op      string // the call that is under way
	tag     int32  // tells apart collectives of parts of the ranks in the same context: see CreateGroup
	scratch []uint64
}

// Messages of collectives have no tags of their own. They are told apart by
// their order: all ranks call the collectives of a communicator in the same one.

func (t *collective) Rank() int { return t.c.rank }
func (t *collective) Size() int { return t.c.size }

// envelope is that of a message from a rank, envelopeOut of one from this rank.
func (t *collective) envelope(source int) match.Envelope {
	return match.Envelope{Context: t.c.context + 1, Source: int32(t.c.at(source)), Tag: t.tag}
}

func (t *collective) envelopeOut() match.Envelope {
	return match.Envelope{Context: t.c.context + 1, Source: int32(t.c.p.rank), Tag: t.tag}
}

// allreduce reduces the words of all ranks.
func (t *collective) allreduce(v []uint64, op Op[uint64]) error { return coll.Allreduce(t, v, op) }

// sum adds the numbers of all ranks.
func (t *collective) sum(v []int64) error { return coll.Allreduce(t, v, Sum[int64]) }

// bcast copies the bytes of root.
func (t *collective) bcast(b []byte, root int) error { return coll.Bcast(t, b, root) }

func (t *collective) Send(b []byte, to int) error {
	if err := t.c.ep.Send(t.envelopeOut(), t.c.at(to), b); err != nil {
		return t.c.wrap(t.op, err)
	}
	return nil
}

func (t *collective) Recv(b []byte, from int) error {
	st, err := t.c.ep.Recv(t.envelope(from), b)
	return t.check(st.Bytes, len(b), from, err)
}

func (t *collective) Sendrecv(out []byte, to int, in []byte, from int) error {
	r := t.c.ep.Irecv(t.envelope(from), in)
	_, err := t.c.ep.Isend(t.envelopeOut(), t.c.at(to), out).Wait()
	st, recvErr := r.Wait()
	if err == nil {
		err = recvErr
	}
	return t.check(st.Bytes, len(in), from, err)
}

// check makes an error of a message that has not the length that all ranks
// should agree on.
func (t *collective) check(got, want, from int, err error) error {
	if err == nil && got == want {
		return nil
	}
	if err == nil {
		err = &Error{Class: ErrTruncate, Op: t.op, Rank: from, Detail: fmt.Sprintf(
			"rank %d sent %d bytes where %d were expected: the ranks call it with different lengths", from, got, want)}
		return err
	}
	return t.c.wrap(t.op, err)
}

// scratchKept is how much scratch memory in bytes is kept from one collective
// to the next.
const scratchKept = 8 << 20

func (t *collective) Scratch(n int) []byte {
	words := (n + 7) / 8
	if words <= len(t.scratch) {
		return mem.BytesOf(t.scratch)[:n]
	}
	scratch := make([]uint64, words)
	if n <= scratchKept {
		t.scratch = scratch
	}
	return mem.BytesOf(scratch)[:n]
}
