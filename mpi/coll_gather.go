package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Gather collects the vectors send of all ranks, which are equally long, at the
// rank root, one after the other in recv (MPI_Gather). Others may give nil as
// recv. In place the root's own vector is in its part of recv.
func Gather[T Scalar](c *Comm, send, recv []T, root int) error {
	return planGather(c.now("Gather"), send, recv, root).run()
}

// Igather is Gather that does not wait (MPI_Igather).
func Igather[T Scalar](c *Comm, send, recv []T, root int) (Request, error) {
	return planGather(c.later("Igather"), send, recv, root).start()
}

// GatherInit prepares Gather to be started many times (MPI_Gather_init).
func GatherInit[T Scalar](c *Comm, send, recv []T, root int) (*Persistent, error) {
	return planGather(c.often("GatherInit"), send, recv, root).keep()
}

func planGather[T Scalar](k *call, send, recv []T, root int) *call {
	if !k.root(root) {
		return k
	}
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		if k.whole(len(recv), c.size) {
			k.inter().Exchange(&k.s, nil, k.s.Even(mem.BytesOf(recv), c.size))
		}
	case c.Inter():
		k.inter().Send(&k.s, mem.BytesOf(send), root)
	default:
		if mine, ok := ownPart(k, send, recv, c.rank == root); ok {
			coll.Gather(&k.s, k.team(), mem.BytesOf(mine), mem.BytesOf(recv), root)
		}
	}
	return k
}

// whole refuses n elements that are not the same number for each of p ranks.
func (k *call) whole(n, p int) bool {
	if n%p != 0 {
		k.refuse(ErrCount, "%d elements are not the same number for each of %d ranks", n, p)
	}
	return k.ok()
}

// ownPart returns what this rank gives where all has a part for each rank, which
// counts if atRoot. When send is nil that is its part of all.
func ownPart[T Scalar](k *call, send, all []T, atRoot bool) (mine []T, ok bool) {
	p := k.c.size
	switch {
	case !atRoot:
		return send, true
	case !k.whole(len(all), p):
	case send == nil:
		each := len(all) / p
		return all[k.c.rank*each : (k.c.rank+1)*each], true
	case len(send)*p != len(all):
		k.refuse(ErrCount, "%d elements of each of %d ranks, and room for %d: want %d", len(send), p, len(all), len(send)*p)
	}
	return send, k.ok()
}

// Gatherv is Gather of vectors of different lengths (MPI_Gatherv). counts and
// displs count at the root only: counts[i] elements of rank i go to recv from
// displs[i] on. displs nil: one vector comes after the other.
func Gatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return planGatherv(c.now("Gatherv"), send, recv, counts, displs, root).run()
}

// Igatherv is Gatherv that does not wait (MPI_Igatherv).
func Igatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (Request, error) {
	return planGatherv(c.later("Igatherv"), send, recv, counts, displs, root).start()
}

// GathervInit prepares Gatherv to be started many times (MPI_Gatherv_init).
func GathervInit[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (*Persistent, error) {
	return planGatherv(c.often("GathervInit"), send, recv, counts, displs, root).keep()
}

func planGatherv[T Scalar](k *call, send, recv []T, counts, displs []int, root int) *call {
	if !k.root(root) {
		return k
	}
	c, mine := k.c, mem.BytesOf(send)
	if c.Inter() {
		switch {
		case root == Root:
			k.inter().Exchange(&k.s, nil, blocks(k, recv, counts, displs))
		case root != ProcNull:
			k.inter().Send(&k.s, mine, root)
		}
		return k
	}
	var list [][]byte
	if c.rank == root {
		list = blocks(k, recv, counts, displs)
		mine = ownBlock(k, send, mine, list)
	}
	if k.ok() {
		coll.GatherLinear(&k.s, k.team(), mine, list, root)
	}
	return k
}

// blocks returns the parts of v that counts and displs name, one for each rank;
// nil when they are wrong.
func blocks[T Scalar](k *call, v []T, counts, displs []int) [][]byte {
	return blocksOf(k, k.c.size, v, counts, displs)
}

// blocksOf is blocks for p ranks.
func blocksOf[T Scalar](k *call, p int, v []T, counts, displs []int) [][]byte {
	if len(counts) != p || displs != nil && len(displs) != p {
		k.refuse(ErrArg, "%d counts and %d displacements for %d ranks", len(counts), len(displs), p)
		return nil
	}
	list, at := k.s.Blocks(p), 0
	for i, n := range counts {
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > len(v) || at > len(v)-n {
			k.refuse(ErrCount, "%d elements from %d on, which rank %d has to do with, do not lie in a buffer of %d", n, at, i, len(v))
			return nil
		}
		list[i] = mem.BytesOf(v[at : at+n])
		at += n
	}
	return list
}

// ownBlock returns what this rank gives where list has a block for each rank.
// When send is nil that is its own.
func ownBlock[T Scalar](k *call, send []T, mine []byte, list [][]byte) []byte {
	switch {
	case !k.ok():
	case send == nil:
		return list[k.c.rank]
	case len(mine) != len(list[k.c.rank]):
		k.refuse(ErrCount, "this rank gives %d bytes, and there are %d in its count", len(mine), len(list[k.c.rank]))
	}
	return mine
}
