package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Reduce reduces the vectors send of all ranks element by element and gives the
// result to the rank root in recv (MPI_Reduce). Others may give nil as recv. In
// place the root's own vector is in recv. All ranks call it with the same length,
// operation and options.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op[T], root int, options ...OpOption) error {
	return planReduce(c.now("Reduce"), send, recv, op, root, options).run()
}

// Ireduce is Reduce that does not wait (MPI_Ireduce).
func Ireduce[T Scalar](c *Comm, send, recv []T, op Op[T], root int, options ...OpOption) (Request, error) {
	return planReduce(c.later("Ireduce"), send, recv, op, root, options).start()
}

// ReduceInit prepares Reduce to be started many times (MPI_Reduce_init).
func ReduceInit[T Scalar](c *Comm, send, recv []T, op Op[T], root int, options ...OpOption) (*Persistent, error) {
	return planReduce(c.often("ReduceInit"), send, recv, op, root, options).keep()
}

func planReduce[T Scalar](k *call, send, recv []T, op Op[T], root int, options []OpOption) *call {
	if !k.root(root) || !reduction(k, op, options) {
		return k
	}
	in, out := mem.BytesOf(send), mem.BytesOf(recv)
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		k.inter().RecvReduce(&k.s, out)
	case c.Inter():
		k.inter().SendReduce(&k.s, in, root)
	case c.rank != root:
		coll.Reduce(&k.s, k.team(), in, nil, root)
	case send == nil:
		coll.Reduce(&k.s, k.team(), out, out, root)
	case sameLength(k, send, recv):
		coll.Reduce(&k.s, k.team(), in, out, root)
	}
	return k
}

// sameLength refuses a result of another length than what is reduced.
func sameLength[T Scalar](k *call, send, recv []T) bool {
	if len(send) != len(recv) {
		k.refuse(ErrCount, "%d elements to send and room for %d: want the same", len(send), len(recv))
	}
	return k.ok()
}

// Allreduce reduces the vectors send of all ranks element by element and gives
// the result to all of them in recv (MPI_Allreduce). All ranks call it with the
// same length, operation and options, and all get the same bits. On an
// intercommunicator each group gets the reduction of the other one.
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	return planAllreduce(c.again("Allreduce"), send, recv, op, options).run()
}

// Iallreduce is Allreduce that does not wait (MPI_Iallreduce).
func Iallreduce[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planAllreduce(c.later("Iallreduce"), send, recv, op, options).start()
}

// AllreduceInit prepares Allreduce to be started many times (MPI_Allreduce_init).
func AllreduceInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planAllreduce(c.often("AllreduceInit"), send, recv, op, options).keep()
}

func planAllreduce[T Scalar](k *call, send, recv []T, op Op[T], options []OpOption) *call {
	in, out := mem.BytesOf(send), mem.BytesOf(recv)
	again := k.ok() && k.same(plan{
		kind: planOfAllreduce, commutes: len(options) == 0, elem: sizeOf[T](),
		in: first(in), nin: len(in), out: first(out), nout: len(out),
	})
	if !reduction(k, op, options) || send != nil && !sameLength(k, send, recv) || again {
		return k
	}
	if k.c.Inter() {
		k.inter().Allreduce(&k.s, in, out)
		return k
	}
	k.s.Copy(out, in)
	coll.Allreduce(&k.s, k.team(), out)
	return k
}
