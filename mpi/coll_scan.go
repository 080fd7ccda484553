package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Scan reduces, on each rank, the vectors send of the ranks up to this one to recv
// (MPI_Scan). All ranks call it with the same length, operation and options. In
// place the vector is in recv.
func Scan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	if k := reductionFast(c, planOfScan, 0, send, recv, op, options); k != nil {
		return k.run()
	}
	return planScan(c.beginCached("Scan", planOfScan), Slice(send), Slice(recv), by(op, options)).run()
}

// Iscan is Scan that does not wait (MPI_Iscan).
func Iscan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planScan(c.beginNonblocking("Iscan"), Slice(send), Slice(recv), by(op, options)).start()
}

// ScanInit prepares Scan to be started many times (MPI_Scan_init).
func ScanInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planScan(c.beginPersistent("ScanInit"), Slice(send), Slice(recv), by(op, options)).keep()
}

func planScan(k *call, send, recv Data, r reduction) *call {
	return planPrefix(k, planOfScan, send, recv, r)
}

// Exscan is Scan without the rank itself (MPI_Exscan): on rank 0 recv stays as it
// is.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) error {
	if k := reductionFast(c, planOfExscan, 0, send, recv, op, options); k != nil {
		return k.run()
	}
	return planExscan(c.beginCached("Exscan", planOfExscan), Slice(send), Slice(recv), by(op, options)).run()
}

// Iexscan is Exscan that does not wait (MPI_Iexscan).
func Iexscan[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (Request, error) {
	return planExscan(c.beginNonblocking("Iexscan"), Slice(send), Slice(recv), by(op, options)).start()
}

// ExscanInit prepares Exscan to be started many times (MPI_Exscan_init).
func ExscanInit[T Scalar](c *Comm, send, recv []T, op Op[T], options ...OpOption) (*Persistent, error) {
	return planExscan(c.beginPersistent("ExscanInit"), Slice(send), Slice(recv), by(op, options)).keep()
}

func planExscan(k *call, send, recv Data, r reduction) *call {
	return planPrefix(k, planOfExscan, send, recv, r)
}

func planPrefix(k *call, kind planKind, send, recv Data, r reduction) *call {
	if !k.intra() {
		return k
	}
	again := sameReduction(k, kind, send, recv, 0, &r)
	if !k.reduces(&r, recv, send) || !send.none() && !k.sameLength(send, recv) || again || !k.disjoint(send, recv) {
		return k
	}
	exclusive := kind == planOfExscan
	var v, in []byte
	switch {
	case !exclusive || k.c.rank > 0:
		v, in = k.apart(recv, send)
	case send.none():
		in = k.operand(recv)
	default:
		in = k.operand(send) // recv stays as it is
	}
	if k.ok() {
		coll.Scan(&k.s, k.team(), in, v, exclusive)
	}
	return k
}
