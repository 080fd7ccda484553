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
	c.coll.op = "Barrier"
	return c.barrier()
}

func (c *Comm) barrier() error { return coll.Barrier(&c.coll) }

// Bcast copies buf of the rank root into buf of all others (MPI_Bcast). All
// ranks call it with the same length and root.
func Bcast[T Scalar](c *Comm, buf []T, root int) error {
	if root < 0 || root >= c.size {
		return fail(ErrRoot, "Bcast", "root %d is no rank of this communicator, which has ranks 0 to %d", root, c.size-1)
	}
	c.coll.op = "Bcast"
	return coll.Bcast(&c.coll, mem.BytesOf(buf), root)
}

// InPlace is what to give as the send buffer of an Allreduce that reduces recv
// itself (MPI_IN_PLACE). nil says the same.
func InPlace[T Scalar]() []T { return nil }

// Allreduce reduces the vectors send of all ranks element by element and gives
// the result to all of them in recv (MPI_Allreduce). All ranks call it with the
// same length and operation, and all get the same bits.
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op[T]) error {
	if op == nil {
		return fail(ErrOp, "Allreduce", "the operation is nil; there is Sum, Max and so on, or write your own")
	}
	if send != nil {
		if len(send) != len(recv) {
			return fail(ErrCount, "Allreduce", "%d elements to send and room for %d: want the same", len(send), len(recv))
		}
		copy(recv, send)
	}
	c.coll.op = "Allreduce"
	return coll.Allreduce(&c.coll, recv, op)
}

// collective is a communicator's hidden half: messages of collectives use a
// context of their own. It implements coll.Transport.
type collective struct {
	c       *Comm
	op      string // the call that is under way
	scratch []uint64
}

// collectiveTag is the tag of all messages of collectives. They are told apart
// by their order: all ranks call the collectives of a communicator in the same
// one.
const collectiveTag = 0

func (t *collective) Rank() int { return t.c.rank }
func (t *collective) Size() int { return t.c.size }

func (t *collective) envelope(source int) match.Envelope {
	return match.Envelope{Context: t.c.context + 1, Source: int32(source), Tag: collectiveTag}
}

func (t *collective) Send(b []byte, to int) error {
	if err := t.c.ep.Send(t.envelope(t.c.rank), to, b); err != nil {
		return wrap(t.op, err)
	}
	return nil
}

func (t *collective) Recv(b []byte, from int) error {
	st, err := t.c.ep.Recv(t.envelope(from), b)
	return t.check(st.Bytes, len(b), from, err)
}

func (t *collective) Sendrecv(out []byte, to int, in []byte, from int) error {
	r := t.c.ep.Irecv(t.envelope(from), in)
	_, err := t.c.ep.Isend(t.envelope(t.c.rank), to, out).Wait()
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
	return wrap(t.op, err)
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
