package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Allgather gives the vectors send of all ranks, which are equally long, to all
// of them, one after the other in recv (MPI_Allgather). In place a rank's vector
// is in its part of recv. On an intercommunicator recv has those of the other
// group.
func Allgather[T Scalar](c *Comm, send, recv []T) error {
	if k := blocksFast(c, planOfAllgather, send, recv); k != nil {
		return k.run()
	}
	return planAllgather(c.beginCached("Allgather", planOfAllgather), Slice(send), Slice(recv)).run()
}

// Iallgather is Allgather that does not wait (MPI_Iallgather).
func Iallgather[T Scalar](c *Comm, send, recv []T) (Request, error) {
	return planAllgather(c.beginNonblocking("Iallgather"), Slice(send), Slice(recv)).start()
}

// AllgatherInit prepares Allgather to be started many times (MPI_Allgather_init).
func AllgatherInit[T Scalar](c *Comm, send, recv []T) (*Persistent, error) {
	return planAllgather(c.beginPersistent("AllgatherInit"), Slice(send), Slice(recv)).keep()
}

func planAllgather(k *call, send, recv Data) *call {
	k.signs(recv.size())
	switch {
	case !k.ok() || !k.whole(recv.count, k.c.size) || sameBlocks(k, planOfAllgather, send, recv, 0) || !k.disjoint(send, recv):
	case k.c.Inter():
		if mine, all := k.read(send), k.write(recv); k.ok() {
			k.inter().Allgather(&k.s, mine, all)
		}
	default:
		if mine, all := k.gathered(send, recv); k.ok() {
			coll.Allgather(&k.s, k.team(), mine, all)
		}
	}
	return k
}

// Allgatherv is Allgather of vectors of different lengths (MPI_Allgatherv):
// counts[i] elements of rank i go to recv from displs[i] on. All ranks give the
// same counts. displs nil: one vector comes after the other.
func Allgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) error {
	if k := partsFast(c, planOfAllgatherv, send, recv, 0, len(send), counts, displs); k != nil {
		return k.run()
	}
	return planAllgatherv(c.beginCached("Allgatherv", planOfAllgatherv), Slice(send), Slice(recv), counts, displs).run()
}

// Iallgatherv is Allgatherv that does not wait (MPI_Iallgatherv).
func Iallgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) (Request, error) {
	return planAllgatherv(c.beginNonblocking("Iallgatherv"), Slice(send), Slice(recv), counts, displs).start()
}

// AllgathervInit prepares Allgatherv to be started many times (MPI_Allgatherv_init).
func AllgathervInit[T Scalar](c *Comm, send, recv []T, counts, displs []int) (*Persistent, error) {
	return planAllgatherv(c.beginPersistent("AllgathervInit"), Slice(send), Slice(recv), counts, displs).keep()
}

func planAllgatherv(k *call, send, recv Data, counts, displs []int) *call {
	switch {
	case !k.ok():
	case k.c.Inter():
		mine, list := k.read(send), k.parts(k.blocks(recv, counts, displs))
		if k.ok() {
			k.inter().Exchange(&k.s, everywhere(&k.s, mine, k.c.size), list)
		}
	case sameParts(k, planOfAllgatherv, send, recv, 0, counts, displs):
	default:
		if mine, list := k.gatheredv(send, recv, counts, displs); k.ok() {
			coll.Allgatherv(&k.s, k.team(), mine, list)
		}
	}
	return k
}
