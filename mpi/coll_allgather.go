package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Allgather gives the vectors send of all ranks, which are equally long, to all
// of them, one after the other in recv (MPI_Allgather). In place a rank's vector
// is in its part of recv. On an intercommunicator recv has those of the other
// group.
func Allgather[T Scalar](c *Comm, send, recv []T) error {
	return planAllgather(c.now("Allgather"), send, recv).run()
}

// Iallgather is Allgather that does not wait (MPI_Iallgather).
func Iallgather[T Scalar](c *Comm, send, recv []T) (Request, error) {
	return planAllgather(c.later("Iallgather"), send, recv).start()
}

// AllgatherInit prepares Allgather to be started many times (MPI_Allgather_init).
func AllgatherInit[T Scalar](c *Comm, send, recv []T) (*Persistent, error) {
	return planAllgather(c.often("AllgatherInit"), send, recv).keep()
}

func planAllgather[T Scalar](k *call, send, recv []T) *call {
	switch {
	case !k.ok():
	case k.c.Inter():
		if k.whole(len(recv), k.c.size) {
			k.inter().Allgather(&k.s, mem.BytesOf(send), mem.BytesOf(recv))
		}
	default:
		if mine, ok := ownPart(k, send, recv, true); ok {
			coll.Allgather(&k.s, k.team(), mem.BytesOf(mine), mem.BytesOf(recv))
		}
	}
	return k
}

// Allgatherv is Allgather of vectors of different lengths (MPI_Allgatherv):
// counts[i] elements of rank i go to recv from displs[i] on. All ranks give the
// same counts. displs nil: one vector comes after the other.
func Allgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) error {
	return planAllgatherv(c.now("Allgatherv"), send, recv, counts, displs).run()
}

// Iallgatherv is Allgatherv that does not wait (MPI_Iallgatherv).
func Iallgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) (Request, error) {
	return planAllgatherv(c.later("Iallgatherv"), send, recv, counts, displs).start()
}

// AllgathervInit prepares Allgatherv to be started many times (MPI_Allgatherv_init).
func AllgathervInit[T Scalar](c *Comm, send, recv []T, counts, displs []int) (*Persistent, error) {
	return planAllgatherv(c.often("AllgathervInit"), send, recv, counts, displs).keep()
}

func planAllgatherv[T Scalar](k *call, send, recv []T, counts, displs []int) *call {
	if !k.ok() {
		return k
	}
	mine, list := mem.BytesOf(send), blocks(k, recv, counts, displs)
	if k.c.Inter() {
		if k.ok() {
			k.inter().Exchange(&k.s, k.everywhere(mine, k.c.size), list)
		}
		return k
	}
	if mine = ownBlock(k, send, mine, list); k.ok() {
		coll.Allgatherv(&k.s, k.team(), mine, list)
	}
	return k
}
