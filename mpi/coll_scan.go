package mpi

import (
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Scan reduces, on each rank, the vectors send of the ranks up to this one to recv
// (MPI_Scan). All ranks call it with the same length, operation and options. In
// place the vector is in recv.
func Scan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	return planScan(c.now("Scan"), send, recv, op, options).run()
}

// Iscan is Scan that does not wait (MPI_Iscan).
func Iscan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planScan(c.later("Iscan"), send, recv, op, options).start()
}

// ScanInit prepares Scan to be started many times (MPI_Scan_init).
func ScanInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planScan(c.often("ScanInit"), send, recv, op, options).keep()
}

func planScan[T Scalar](k *call, send, recv []T, op Op[T], options []OpOption) *call {
	return planPrefix(k, send, recv, op, options, false)
}

// Exscan is Scan without the rank itself (MPI_Exscan): on rank 0 recv stays as it
// is.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	return planExscan(c.now("Exscan"), send, recv, op, options).run()
}

// Iexscan is Exscan that does not wait (MPI_Iexscan).
func Iexscan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planExscan(c.later("Iexscan"), send, recv, op, options).start()
}

// ExscanInit prepares Exscan to be started many times (MPI_Exscan_init).
func ExscanInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planExscan(c.often("ExscanInit"), send, recv, op, options).keep()
}

func planExscan[T Scalar](k *call, send, recv []T, op Op[T], options []OpOption) *call {
	return planPrefix(k, send, recv, op, options, true)
}

func planPrefix[T Scalar](k *call, send, recv []T, op Op[T], options []OpOption, exclusive bool) *call {
	if !k.intra() || !reduction(k, op, options) || send != nil && !sameLength(k, send, recv) {
		return k
	}
	v := mem.BytesOf(recv)
	if exclusive && k.c.rank == 0 && send != nil {
		v = mem.BytesOf(send) // which stays as it is, as recv does
	} else {
		k.s.Copy(v, mem.BytesOf(send))
	}
	coll.Scan(&k.s, k.team(), v, exclusive)
	return k
}
