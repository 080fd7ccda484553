package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Reduce reduces the vectors send of all ranks element by element and gives the
// result to the rank root in recv (MPI_Reduce). Others may give nil as recv. In
// place the root's own vector is in recv. All ranks call it with the same length,
// operation and options.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op[T], root int, options ...OpOption) error {
	result := recv
	if c != nil && c.rank != root {
		result = nil
	}
	if k := reductionFast(c, planOfReduce, root, send, result, op, options); k != nil {
		return k.run()
	}
	return planReduce(c.beginCached("Reduce", planOfReduce), Slice(send), Slice(recv), root, by(op, options)).run()
}

// Ireduce is Reduce that does not wait (MPI_Ireduce).
func Ireduce[T Scalar](c *Comm, send, recv []T, op Op[T], root int, options ...OpOption) (Request, error) {
	return planReduce(c.beginNonblocking("Ireduce"), Slice(send), Slice(recv), root, by(op, options)).start()
}

// ReduceInit prepares Reduce to be started many times (MPI_Reduce_init).
func ReduceInit[T Scalar](c *Comm, send, recv []T, op Op[T], root int, options ...OpOption) (*Persistent, error) {
	return planReduce(c.beginPersistent("ReduceInit"), Slice(send), Slice(recv), root, by(op, options)).keep()
}

func planReduce(k *call, send, recv Data, root int, r reduction) *call {
	if !k.root(root) {
		return k
	}
	inter := k.c.Inter()
	switch { // what does not count here
	case root == Root:
		send = Data{}
	case root == ProcNull:
		return k
	case inter || k.c.rank != root:
		recv = Data{}
	}
	again := !inter && sameReduction(k, planOfReduce, send, recv, root, &r)
	if !k.reduces(&r, recv, send) {
		return k
	}
	switch {
	case root == Root:
		if out := k.result(recv); k.ok() {
			k.inter().RecvReduce(&k.s, out)
		}
	case inter:
		if in := k.operand(send); k.ok() {
			k.inter().SendReduce(&k.s, in, root)
		}
	case again:
	case k.c.rank != root:
		if in := k.operand(send); k.ok() {
			coll.Reduce(&k.s, k.team(), in, nil, root)
		}
	case send.none():
		if v := k.inout(recv, recv); k.ok() {
			coll.Reduce(&k.s, k.team(), v, v, root)
		}
	case k.sameLength(send, recv) && k.disjoint(send, recv):
		if in, out := k.operand(send), k.result(recv); k.ok() {
			coll.Reduce(&k.s, k.team(), in, out, root)
		}
	}
	return k
}

// Allreduce reduces the vectors send of all ranks element by element and gives
// the result to all of them in recv (MPI_Allreduce). All ranks call it with the
// same length, operation and options, and all get the same bits. On an
// intercommunicator each group gets the reduction of the other one.
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	if k := reductionFast(c, planOfAllreduce, 0, send, recv, op, options); k != nil {
		return k.run()
	}
	return planAllreduce(c.beginCached("Allreduce", planOfAllreduce), Slice(send), Slice(recv), by(op, options)).run()
}

// Iallreduce is Allreduce that does not wait (MPI_Iallreduce).
func Iallreduce[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planAllreduce(c.beginNonblocking("Iallreduce"), Slice(send), Slice(recv), by(op, options)).start()
}

// AllreduceInit prepares Allreduce to be started many times (MPI_Allreduce_init).
func AllreduceInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planAllreduce(c.beginPersistent("AllreduceInit"), Slice(send), Slice(recv), by(op, options)).keep()
}

// reductionFast is againFast for elements that are not in place. A rank that gets no result has no recv.
func reductionFast[T Scalar](c *Comm, kind planKind, root int, send, recv []T, op Op[T], options []OpOption) *call {
	if op == nil || len(options) > 0 || len(send) == 0 {
		return nil
	}
	in, out := mem.BytesOf(send), mem.BytesOf(recv)
	k := c.againFast(kind, root, sizeOf[T](), first(in), len(in), first(out), len(out))
	if k == nil || !k.plan.commutes {
		return nil
	}
	k.lay = nil
	k.s.Reduction(reducer[T](op), k.plan.elem, true)
	return k
}

func planAllreduce(k *call, send, recv Data, r reduction) *call {
	if !k.given(send, recv) {
		return k
	}
	again := sameReduction(k, planOfAllreduce, send, recv, 0, &r)
	if !k.reduces(&r, recv, send) || !send.none() && !k.sameLength(send, recv) || again || !k.disjoint(send, recv) {
		return k
	}
	if k.c.Inter() {
		if in, out := k.operand(send), k.result(recv); k.ok() {
			k.inter().Allreduce(&k.s, in, out)
		}
		return k
	}
	if v, in := k.apart(recv, send); k.ok() {
		coll.Allreduce(&k.s, k.team(), in, v)
	}
	return k
}

// apart is inout that leaves the elements of send where they are, if that can be:
// in is where.
func (k *call) apart(recv, send Data) (v, in []byte) {
	if b, ok := k.lies(&send); ok && !send.none() {
		return k.result(recv), b
	}
	v = k.inout(recv, send)
	return v, v
}

// inout returns room for elements that become recv at the end, and that are those
// of send before, or of recv in place.
func (k *call) inout(recv, send Data) []byte {
	if send.none() {
		send = recv
	}
	v := k.result(recv)
	k.fill(v, send)
	return v
}
