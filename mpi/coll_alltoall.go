package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Alltoall gives rank j the j-th of the equal parts of send; what rank i gives
// this rank becomes the i-th part of recv (MPI_Alltoall). In place the parts of
// recv are exchanged.
func Alltoall[T Scalar](c *Comm, send, recv []T) error {
	if k := blocksFast(c, planOfAlltoall, send, recv); k != nil {
		return k.run()
	}
	return planAlltoall(c.beginCached("Alltoall", planOfAlltoall), Slice(send), Slice(recv)).run()
}

// Ialltoall is Alltoall that does not wait (MPI_Ialltoall).
func Ialltoall[T Scalar](c *Comm, send, recv []T) (Request, error) {
	return planAlltoall(c.beginNonblocking("Ialltoall"), Slice(send), Slice(recv)).start()
}

// AlltoallInit prepares Alltoall to be started many times (MPI_Alltoall_init).
func AlltoallInit[T Scalar](c *Comm, send, recv []T) (*Persistent, error) {
	return planAlltoall(c.beginPersistent("AlltoallInit"), Slice(send), Slice(recv)).keep()
}

func planAlltoall(k *call, send, recv Data) *call {
	if k.signs(recv.size()); !k.ok() || !k.whole(recv.count, k.c.size) || !k.whole(send.count, k.c.size) {
		return k
	}
	if sameBlocks(k, planOfAlltoall, send, recv, 0) || !k.disjoint(send, recv) {
		return k
	}
	in := k.write(recv)
	switch {
	case k.c.Inter():
		if out := k.read(send); k.ok() {
			k.inter().Exchange(&k.s, k.s.EvenParts(out, k.c.size), k.s.EvenParts(in, k.c.size))
		}
	case send.none():
		if out := k.aside(recv); k.ok() {
			coll.Alltoall(&k.s, k.team(), out, in)
		}
	case send.size() != recv.size():
		k.refuse(ErrCount, "%d bytes to send and room for %d: want the same", send.size(), recv.size())
	default:
		if out := k.read(send); k.ok() {
			coll.Alltoall(&k.s, k.team(), out, in)
		}
	}
	return k
}

// Alltoallv is Alltoall with parts of different lengths (MPI_Alltoallv): rank j
// gets sendCounts[j] elements of send from sendDispls[j] on, and what rank i
// gives, recvCounts[i] elements, goes to recv from recvDispls[i] on. Displacements
// nil: one part comes after the other. In place, which is nil as send and as
// sendCounts, the parts of recv are exchanged. (A rank with nothing to send may
// well have nil as send, but it has counts.)
func Alltoallv[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	if k := partsFast(c, planOfAlltoallv, send, recv, 0, min(len(send), len(recv)), sendCounts, sendDispls, recvCounts, recvDispls); k != nil {
		return k.run()
	}
	return planAlltoallv(c.beginCached("Alltoallv", planOfAlltoallv), Slice(send), sendCounts, sendDispls, Slice(recv), recvCounts, recvDispls).run()
}

// Ialltoallv is Alltoallv that does not wait (MPI_Ialltoallv).
func Ialltoallv[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (Request, error) {
	return planAlltoallv(c.beginNonblocking("Ialltoallv"), Slice(send), sendCounts, sendDispls, Slice(recv), recvCounts, recvDispls).start()
}

// AlltoallvInit prepares Alltoallv to be started many times (MPI_Alltoallv_init).
func AlltoallvInit[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Persistent, error) {
	return planAlltoallv(c.beginPersistent("AlltoallvInit"), Slice(send), sendCounts, sendDispls, Slice(recv), recvCounts, recvDispls).keep()
}

func planAlltoallv(k *call, send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) *call {
	if !k.ok() || !k.c.Inter() && sameParts(k, planOfAlltoallv, send, recv, 0, sendCounts, sendDispls, recvCounts, recvDispls) {
		return k
	}
	in := k.blocks(recv, recvCounts, recvDispls)
	if send.none() && sendCounts == nil && !k.c.Inter() {
		return k.exchange(nil, in)
	}
	return k.exchange(k.blocks(send, sendCounts, sendDispls), in)
}

// exchange gives rank j parts[j] and gets room[i] from rank i. Without parts, those
// of room are exchanged.
func (k *call) exchange(parts, room []Data) *call {
	var out []coll.Block
	if parts == nil { // in place
		out = k.copies(room)
	} else {
		out = k.parts(parts)
	}
	in, me := k.parts(room), k.c.rank
	switch {
	case !k.ok():
	case k.c.Inter():
		k.inter().Exchange(&k.s, out, in)
	case k.s.Len(out[me]) != k.s.Len(in[me]):
		k.refuse(ErrCount, "this rank gives itself %d bytes and expects %d", k.s.Len(out[me]), k.s.Len(in[me]))
	case apart(k, parts, room):
		coll.Alltoallv(&k.s, k.team(), out, in)
	}
	return k
}

// apart is disjoint of what each rank is given and what comes from it.
func apart(k *call, parts, room []Data) bool {
	for i := range parts {
		if !k.disjoint(parts[i], room[i]) {
			return false
		}
	}
	return true
}

// Alltoallw is Alltoall with parts anywhere in memory (MPI_Alltoallw): rank j gets
// send[j], and what rank i gives goes to recv[i]. In place, which is nil as send,
// the parts of recv are exchanged.
func Alltoallw[T Scalar](c *Comm, send, recv [][]T) error {
	k := c.beginCached("Alltoallw", planOfAlltoallw)
	if !k.ok() || !c.Inter() && sameSlices(k, planOfAlltoallw, send, recv) {
		return k.run()
	}
	return planAlltoallw(k, slicesOf(k, send), slicesOf(k, recv)).run()
}

// Ialltoallw is Alltoallw that does not wait (MPI_Ialltoallw).
func Ialltoallw[T Scalar](c *Comm, send, recv [][]T) (Request, error) {
	k := c.beginNonblocking("Ialltoallw")
	return planAlltoallw(k, slicesOf(k, send), slicesOf(k, recv)).start()
}

// AlltoallwInit prepares Alltoallw to be started many times (MPI_Alltoallw_init).
func AlltoallwInit[T Scalar](c *Comm, send, recv [][]T) (*Persistent, error) {
	k := c.beginPersistent("AlltoallwInit")
	return planAlltoallw(k, slicesOf(k, send), slicesOf(k, recv)).keep()
}

func planAlltoallw(k *call, send, recv []Data) *call {
	switch {
	case !k.ok():
	case len(recv) != k.c.size || len(send) != k.c.size && (send != nil || k.c.Inter()):
		k.refuse(ErrArg, "%d parts to send and room for %d, for %d ranks", len(send), len(recv), k.c.size)
	default:
		k.exchange(send, recv)
	}
	return k
}

// slicesOf is a list of slices as data; nil stays nil.
func slicesOf[T Scalar](k *call, list [][]T) []Data {
	if list == nil {
		return nil
	}
	parts := k.room(len(list))
	for i, v := range list {
		parts[i] = Slice(v)
	}
	return parts
}
