package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Scatter gives rank i the i-th of the equal parts of the vector send of the rank
// root (MPI_Scatter). Others may give nil as send. In place, which is nil as recv
// at the root, the root's part stays where it is.
func Scatter[T Scalar](c *Comm, send, recv []T, root int) error {
	return planScatter(c.now("Scatter"), send, recv, root).run()
}

// Iscatter is Scatter that does not wait (MPI_Iscatter).
func Iscatter[T Scalar](c *Comm, send, recv []T, root int) (Request, error) {
	return planScatter(c.later("Iscatter"), send, recv, root).start()
}

// ScatterInit prepares Scatter to be started many times (MPI_Scatter_init).
func ScatterInit[T Scalar](c *Comm, send, recv []T, root int) (*Persistent, error) {
	return planScatter(c.often("ScatterInit"), send, recv, root).keep()
}

func planScatter[T Scalar](k *call, send, recv []T, root int) *call {
	if !k.root(root) {
		return k
	}
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		if k.whole(len(send), c.size) {
			k.inter().Exchange(&k.s, k.s.Even(mem.BytesOf(send), c.size), nil)
		}
	case c.Inter():
		k.inter().Recv(&k.s, mem.BytesOf(recv), root)
	default:
		if mine, ok := ownPart(k, recv, send, c.rank == root); ok {
			coll.Scatter(&k.s, k.team(), mem.BytesOf(send), mem.BytesOf(mine), root)
		}
	}
	return k
}

// Scatterv is Scatter of parts of different lengths (MPI_Scatterv). counts and
// displs count at the root only: rank i gets counts[i] elements of send from
// displs[i] on. displs nil: one part comes after the other.
func Scatterv[T Scalar](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	return planScatterv(c.now("Scatterv"), send, counts, displs, recv, root).run()
}

// Iscatterv is Scatterv that does not wait (MPI_Iscatterv).
func Iscatterv[T Scalar](c *Comm, send []T, counts, displs []int, recv []T, root int) (Request, error) {
	return planScatterv(c.later("Iscatterv"), send, counts, displs, recv, root).start()
}

// ScattervInit prepares Scatterv to be started many times (MPI_Scatterv_init).
func ScattervInit[T Scalar](c *Comm, send []T, counts, displs []int, recv []T, root int) (*Persistent, error) {
	return planScatterv(c.often("ScattervInit"), send, counts, displs, recv, root).keep()
}

func planScatterv[T Scalar](k *call, send []T, counts, displs []int, recv []T, root int) *call {
	if !k.root(root) {
		return k
	}
	c, mine := k.c, mem.BytesOf(recv)
	if c.Inter() {
		switch {
		case root == Root:
			k.inter().Exchange(&k.s, blocks(k, send, counts, displs), nil)
		case root != ProcNull:
			k.inter().Recv(&k.s, mine, root)
		}
		return k
	}
	var list [][]byte
	if c.rank == root {
		list = blocks(k, send, counts, displs)
		mine = ownBlock(k, recv, mine, list)
	}
	if k.ok() {
		coll.ScatterLinear(&k.s, k.team(), list, mine, root)
	}
	return k
}
