package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// ReduceScatter reduces the vectors send of all ranks element by element and gives
// rank i the next counts[i] elements of the result in recv (MPI_Reduce_scatter).
// All ranks call it with the same counts, operation and options. In place, which
// is nil as send, the vector is in recv, and the result at its beginning. On an
// intercommunicator each group gets the reduction of the other one, and counts
// are those of the own group.
func ReduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op[T], options ...OpOption) error {
	return planReduceScatter(c.now("ReduceScatter"), send, recv, counts, op, options).run()
}

// IreduceScatter is ReduceScatter that does not wait (MPI_IreduceScatter).
func IreduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op[T], options ...OpOption) (Request, error) {
	return planReduceScatter(c.later("IreduceScatter"), send, recv, counts, op, options).start()
}

// ReduceScatterInit prepares ReduceScatter to be started many times (MPI_Reduce_scatter_init).
func ReduceScatterInit[T Scalar](c *Comm, send, recv []T, counts []int, op Op[T], options ...OpOption) (*Persistent, error) {
	return planReduceScatter(c.often("ReduceScatterInit"), send, recv, counts, op, options).keep()
}

func planReduceScatter[T Scalar](k *call, send, recv []T, counts []int, op Op[T], options []OpOption) *call {
	p := 0
	if k.ok() {
		p = k.c.Size()
	}
	if !reduction(k, op, options) {
		return k
	}
	if len(counts) != p {
		return k.refuse(ErrArg, "%d counts for %d ranks", len(counts), p)
	}
	if send == nil {
		send = recv
	}
	list, at := k.s.Blocks(p), 0
	for i, n := range counts {
		if n < 0 || n > len(send)-at {
			return k.refuse(ErrCount, "%d elements of rank %d from %d on do not lie in a vector of %d", n, i, at, len(send))
		}
		list[i] = mem.BytesOf(send[at : at+n])
		at += n
	}
	if mine := counts[k.c.rank]; len(recv) < mine || at != len(send) {
		return k.refuse(ErrCount, "%d elements of %d are given away, and there is room for %d of %d", at, len(send), len(recv), mine)
	}
	return k.reduceScatter(mem.BytesOf(send), list, mem.BytesOf(recv[:counts[k.c.rank]]))
}

func (k *call) reduceScatter(in []byte, list [][]byte, out []byte) *call {
	if k.c.Inter() {
		k.inter().ReduceScatter(&k.s, in, list, out)
	} else {
		coll.ReduceScatter(&k.s, k.team(), in, list, out)
	}
	return k
}

// ReduceScatterBlock is ReduceScatter with the same number of elements for each
// rank (MPI_Reduce_scatter_block).
func ReduceScatterBlock[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	return planReduceScatterBlock(c.now("ReduceScatterBlock"), send, recv, op, options).run()
}

// IreduceScatterBlock is ReduceScatterBlock that does not wait (MPI_IreduceScatterBlock).
func IreduceScatterBlock[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planReduceScatterBlock(c.later("IreduceScatterBlock"), send, recv, op, options).start()
}

// ReduceScatterBlockInit prepares ReduceScatterBlock to be started many times (MPI_Reduce_scatter_block_init).
func ReduceScatterBlockInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planReduceScatterBlock(c.often("ReduceScatterBlockInit"), send, recv, op, options).keep()
}

func planReduceScatterBlock[T Scalar](k *call, send, recv []T, op Op[T], options []OpOption) *call {
	if !reduction(k, op, options) {
		return k
	}
	if send == nil {
		send = recv
	}
	p := k.c.Size()
	if !k.whole(len(send), p) {
		return k
	}
	if len(recv) < len(send)/p {
		return k.refuse(ErrCount, "room for %d elements: this rank gets %d", len(recv), len(send)/p)
	}
	in := mem.BytesOf(send)
	return k.reduceScatter(in, k.s.Even(in, p), mem.BytesOf(recv[:len(send)/p]))
}
