package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Gather collects the vectors send of all ranks, which are equally long, at the
// rank root, one after the other in recv (MPI_Gather). Others may give nil as
// recv. In place the root's own vector is in its part of recv.
func Gather[T Scalar](c *Comm, send, recv []T, root int) error {
	if k := gatherFast(c, planOfGather, send, recv, root); k != nil {
		return k.run()
	}
	return planGather(c.beginCached("Gather", planOfGather), Slice(send), Slice(recv), root).run()
}

// Igather is Gather that does not wait (MPI_Igather).
func Igather[T Scalar](c *Comm, send, recv []T, root int) (Request, error) {
	return planGather(c.beginNonblocking("Igather"), Slice(send), Slice(recv), root).start()
}

// GatherInit prepares Gather to be started many times (MPI_Gather_init).
func GatherInit[T Scalar](c *Comm, send, recv []T, root int) (*Persistent, error) {
	return planGather(c.beginPersistent("GatherInit"), Slice(send), Slice(recv), root).keep()
}

func planGather(k *call, send, recv Data, root int) *call {
	if !k.root(root) {
		return k
	}
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		if k.whole(recv.count, c.size) {
			if b := k.write(recv); k.ok() {
				k.inter().Exchange(&k.s, nil, k.s.EvenParts(b, c.size))
			}
		}
	case c.Inter():
		if b := k.read(send); k.ok() {
			k.inter().Send(&k.s, b, root)
		}
	case c.rank != root:
		k.signs(send.size())
		if sameBlocks(k, planOfGather, send, Data{}, root) {
			return k
		}
		if b := k.read(send); k.ok() {
			coll.Gather(&k.s, k.team(), b, nil, root)
		}
	case k.whole(recv.count, c.size):
		if k.signs(recv.size() / c.size); sameBlocks(k, planOfGather, send, recv, root) || !k.disjoint(send, recv) {
			return k
		}
		if mine, all := k.gathered(send, recv); k.ok() {
			coll.Gather(&k.s, k.team(), mine, all, root)
		}
	}
	return k
}

// gathered returns what this rank gives and the room for what all give, which is whole. In
// place the former is in the latter.
func (k *call) gathered(send, recv Data) (mine, all []byte) {
	all = k.write(recv)
	switch {
	case !k.ok():
	case send.none():
		mine = k.own(all)
		k.load(mine, k.ownOf(recv))
	case send.size()*k.c.size != len(all):
		k.refuse(ErrCount, "%d bytes of each of %d ranks, and room for %d: want %d", send.size(), k.c.size, len(all), send.size()*k.c.size)
	default:
		mine = k.read(send)
	}
	return mine, all
}

// Gatherv is Gather of vectors of different lengths (MPI_Gatherv). counts and
// displs count at the root only: counts[i] elements of rank i go to recv from
// displs[i] on. displs nil: one vector comes after the other.
func Gatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) error {
	if k := gatherFast(c, planOfGatherv, send, recv, root, counts, displs); k != nil {
		return k.run()
	}
	return planGatherv(c.beginCached("Gatherv", planOfGatherv), Slice(send), Slice(recv), counts, displs, root).run()
}

// Igatherv is Gatherv that does not wait (MPI_Igatherv).
func Igatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (Request, error) {
	return planGatherv(c.beginNonblocking("Igatherv"), Slice(send), Slice(recv), counts, displs, root).start()
}

// GathervInit prepares Gatherv to be started many times (MPI_Gatherv_init).
func GathervInit[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (*Persistent, error) {
	return planGatherv(c.beginPersistent("GathervInit"), Slice(send), Slice(recv), counts, displs, root).keep()
}

func planGatherv(k *call, send, recv Data, counts, displs []int, root int) *call {
	if !k.root(root) {
		return k
	}
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		if in := k.parts(k.blocks(recv, counts, displs)); k.ok() {
			k.inter().Exchange(&k.s, nil, in)
		}
	case c.Inter():
		if b := k.read(send); k.ok() {
			k.inter().Send(&k.s, b, root)
		}
	case c.rank != root:
		if sameParts(k, planOfGatherv, send, Data{}, root) {
			return k
		}
		if b := k.read(send); k.ok() {
			coll.Gatherv(&k.s, k.team(), b, nil, root)
		}
	default:
		if sameParts(k, planOfGatherv, send, recv, root, counts, displs) {
			return k
		}
		if mine, list := k.gatheredv(send, recv, counts, displs); k.ok() {
			coll.Gatherv(&k.s, k.team(), mine, list, root)
		}
	}
	return k
}

// gatheredv is gathered for parts of different lengths.
func (k *call) gatheredv(send, recv Data, counts, displs []int) (mine []byte, list [][]byte) {
	parts := k.blocks(recv, counts, displs)
	if list = k.each(parts, (*call).write); !k.ok() {
		return nil, nil
	}
	switch own := list[k.c.rank]; {
	case send.none():
		mine = own
		k.load(mine, parts[k.c.rank])
	case send.size() != len(own):
		k.refuse(ErrCount, "this rank gives %d bytes, and there are %d in its count", send.size(), len(own))
	case k.disjoint(send, parts[k.c.rank]):
		mine = k.read(send)
	}
	return mine, list
}
