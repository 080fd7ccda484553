package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// ReduceScatter reduces the vectors send of all ranks element by element and gives
// rank i the next counts[i] elements of the result in recv (MPI_Reduce_scatter).
// All ranks call it with the same counts, operation and options. In place, which
// is nil as send, the vector is in recv, and the result at its beginning. On an
// intercommunicator each group gets the reduction of the other one, and counts
// are those of the own group.
func ReduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op[T], options ...OpOption) error {
	if k := reductionFast(c, planOfReduceScatter, 0, send, recv, op, options); k != nil && countsAre(k.counts, counts) {
		return k.run()
	}
	return planReduceScatter(c.beginCached("ReduceScatter", planOfReduceScatter), Slice(send), Slice(recv), counts, by(op, options)).run()
}

// IreduceScatter is ReduceScatter that does not wait (MPI_Ireduce_scatter).
func IreduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op[T], options ...OpOption) (Request, error) {
	return planReduceScatter(c.beginNonblocking("IreduceScatter"), Slice(send), Slice(recv), counts, by(op, options)).start()
}

// ReduceScatterInit prepares ReduceScatter to be started many times (MPI_Reduce_scatter_init).
func ReduceScatterInit[T Scalar](c *Comm, send, recv []T, counts []int, op Op[T], options ...OpOption) (*Persistent, error) {
	return planReduceScatter(c.beginPersistent("ReduceScatterInit"), Slice(send), Slice(recv), counts, by(op, options)).keep()
}

func planReduceScatter(k *call, send, recv Data, counts []int, r reduction) *call {
	if !k.given(send, recv) {
		return k
	}
	if !counted(k, [][]int{counts}) {
		k.clear()
	}
	again := sameReduction(k, planOfReduceScatter, send, recv, 0, &r)
	if !k.reduces(&r, recv, send) || again || !k.disjoint(send, recv) {
		return k
	}
	if send.none() {
		send = recv
	}
	p := k.c.Size()
	if len(counts) != p {
		return k.refuse(ErrArg, "%d counts for %d ranks", len(counts), p)
	}
	in := k.operand(send)
	if !k.ok() {
		return k
	}
	list, at, each := k.s.Blocks(p), 0, len(in)/max(send.count, 1)
	for i, n := range counts {
		if n < 0 || n > send.count-at {
			return k.refuse(ErrCount, "%d elements of rank %d from %d on do not lie in a vector of %d", n, i, at, send.count)
		}
		list[i] = in[at*each : (at+n)*each]
		at += n
	}
	if mine := counts[k.c.rank]; recv.count < mine || at != send.count {
		return k.refuse(ErrCount, "%d elements of %d are given away, and there is room for %d of %d", at, send.count, recv.count, mine)
	}
	return k.reduceScatter(in, list, recv.part(0, counts[k.c.rank]))
}

func (k *call) reduceScatter(in []byte, list [][]byte, recv Data) *call {
	out := k.result(recv)
	switch mine := list[k.c.rank]; {
	case !k.ok():
	case len(out) != len(mine):
		k.refuse(ErrCount, "room for %d bytes: this rank gets %d", len(out), len(mine))
	case k.c.Inter():
		k.inter().ReduceScatter(&k.s, in, list, out)
	default:
		coll.ReduceScatter(&k.s, k.team(), in, list, out)
	}
	return k
}

// ReduceScatterBlock is ReduceScatter with the same number of elements for each
// rank (MPI_Reduce_scatter_block).
func ReduceScatterBlock[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	if k := reductionFast(c, planOfReduceScatterBlock, 0, send, recv, op, options); k != nil {
		return k.run()
	}
	return planReduceScatterBlock(c.beginCached("ReduceScatterBlock", planOfReduceScatterBlock), Slice(send), Slice(recv), by(op, options)).run()
}

// IreduceScatterBlock is ReduceScatterBlock that does not wait (MPI_Ireduce_scatter_block).
func IreduceScatterBlock[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planReduceScatterBlock(c.beginNonblocking("IreduceScatterBlock"), Slice(send), Slice(recv), by(op, options)).start()
}

// ReduceScatterBlockInit prepares ReduceScatterBlock to be started many times (MPI_Reduce_scatter_block_init).
func ReduceScatterBlockInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planReduceScatterBlock(c.beginPersistent("ReduceScatterBlockInit"), Slice(send), Slice(recv), by(op, options)).keep()
}

func planReduceScatterBlock(k *call, send, recv Data, r reduction) *call {
	if !k.given(send, recv) {
		return k
	}
	again := sameReduction(k, planOfReduceScatterBlock, send, recv, 0, &r)
	if !k.reduces(&r, recv, send) || again || !k.disjoint(send, recv) {
		return k
	}
	if send.none() {
		send = recv
	}
	p := k.c.Size()
	if !k.whole(send.count, p) {
		return k
	}
	each := send.count / p
	if recv.count < each {
		return k.refuse(ErrCount, "room for %d elements: this rank gets %d", recv.count, each)
	}
	in := k.operand(send)
	if !k.ok() {
		return k
	}
	return k.reduceScatter(in, k.s.Even(in, p), recv.part(0, each))
}
