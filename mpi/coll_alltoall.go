package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Alltoall gives rank j the j-th of the equal parts of send; what rank i gives
// this rank becomes the i-th part of recv (MPI_Alltoall). In place the parts of
// recv are exchanged.
func Alltoall[T Scalar](c *Comm, send, recv []T) error {
	return planAlltoall(c.now("Alltoall"), send, recv).run()
}

// Ialltoall is Alltoall that does not wait (MPI_Ialltoall).
func Ialltoall[T Scalar](c *Comm, send, recv []T) (Request, error) {
	return planAlltoall(c.later("Ialltoall"), send, recv).start()
}

// AlltoallInit prepares Alltoall to be started many times (MPI_Alltoall_init).
func AlltoallInit[T Scalar](c *Comm, send, recv []T) (*Persistent, error) {
	return planAlltoall(c.often("AlltoallInit"), send, recv).keep()
}

func planAlltoall[T Scalar](k *call, send, recv []T) *call {
	if !k.ok() || !k.whole(len(recv), k.c.size) {
		return k
	}
	out, in := mem.BytesOf(send), mem.BytesOf(recv)
	switch {
	case k.c.Inter():
		if k.whole(len(send), k.c.size) {
			k.inter().Exchange(&k.s, k.s.Even(out, k.c.size), k.s.Even(in, k.c.size))
		}
		return k
	case send == nil:
		out = k.s.Temp(len(in))
		k.s.Copy(out, in)
	case len(send) != len(recv):
		return k.refuse(ErrCount, "%d elements to send and room for %d: want the same", len(send), len(recv))
	}
	coll.Alltoall(&k.s, k.team(), out, in)
	return k
}

// Alltoallv is Alltoall with parts of different lengths (MPI_Alltoallv): rank j
// gets sendCounts[j] elements of send from sendDispls[j] on, and what rank i
// gives, recvCounts[i] elements, goes to recv from recvDispls[i] on. Displacements
// nil: one part comes after the other. In place, which is nil as send and as
// sendCounts, the parts of recv are exchanged. (A rank with nothing to send may
// well have nil as send, but it has counts.)
func Alltoallv[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return planAlltoallv(c.now("Alltoallv"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).run()
}

// Ialltoallv is Alltoallv that does not wait (MPI_Ialltoallv).
func Ialltoallv[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (Request, error) {
	return planAlltoallv(c.later("Ialltoallv"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).start()
}

// AlltoallvInit prepares Alltoallv to be started many times (MPI_Alltoallv_init).
func AlltoallvInit[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Persistent, error) {
	return planAlltoallv(c.often("AlltoallvInit"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).keep()
}

func planAlltoallv[T Scalar](k *call, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) *call {
	if !k.ok() {
		return k
	}
	in := blocks(k, recv, recvCounts, recvDispls)
	if send == nil && sendCounts == nil && !k.c.Inter() {
		return k.exchange(k.aside(in), in)
	}
	return k.exchange(blocks(k, send, sendCounts, sendDispls), in)
}

// aside copies blocks to where they are not overwritten.
func (k *call) aside(in [][]byte) [][]byte {
	out := k.s.Blocks(len(in))
	for i, b := range in {
		out[i] = k.s.Temp(len(b))
		k.s.Copy(out[i], b)
	}
	return out
}

// exchange gives rank j out[j] and gets in[i] from rank i.
func (k *call) exchange(out, in [][]byte) *call {
	switch {
	case !k.ok():
	case k.c.Inter():
		k.inter().Exchange(&k.s, out, in)
	case len(out[k.c.rank]) != len(in[k.c.rank]):
		k.refuse(ErrCount, "this rank gives itself %d bytes and expects %d", len(out[k.c.rank]), len(in[k.c.rank]))
	default:
		coll.Alltoallv(&k.s, k.team(), out, in)
	}
	return k
}

// Alltoallw is Alltoall with parts anywhere in memory (MPI_Alltoallw): rank j gets
// send[j], and what rank i gives goes to recv[i]. In place, which is nil as send,
// the parts of recv are exchanged.
func Alltoallw[T Scalar](c *Comm, send, recv [][]T) error {
	return planAlltoallw(c.now("Alltoallw"), send, recv).run()
}

// Ialltoallw is Alltoallw that does not wait (MPI_Ialltoallw).
func Ialltoallw[T Scalar](c *Comm, send, recv [][]T) (Request, error) {
	return planAlltoallw(c.later("Ialltoallw"), send, recv).start()
}

// AlltoallwInit prepares Alltoallw to be started many times (MPI_Alltoallw_init).
func AlltoallwInit[T Scalar](c *Comm, send, recv [][]T) (*Persistent, error) {
	return planAlltoallw(c.often("AlltoallwInit"), send, recv).keep()
}

func planAlltoallw[T Scalar](k *call, send, recv [][]T) *call {
	if !k.ok() {
		return k
	}
	in := parts(k, recv)
	if send == nil && !k.c.Inter() {
		return k.exchange(k.aside(in), in)
	}
	return k.exchange(parts(k, send), in)
}

// parts returns a list that has a part for each rank as bytes.
func parts[T Scalar](k *call, list [][]T) [][]byte { return partsOf(k, k.c.size, list) }

// partsOf is parts for p ranks.
func partsOf[T Scalar](k *call, p int, list [][]T) [][]byte {
	if len(list) != p {
		k.refuse(ErrArg, "%d parts for %d ranks", len(list), p)
		return nil
	}
	b := k.s.Blocks(len(list))
	for i, v := range list {
		b[i] = mem.BytesOf(v)
	}
	return b
}
