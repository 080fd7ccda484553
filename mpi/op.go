package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Op is a reduction (MPI_Op): it sets inout[i] to in[i] op inout[i] for all i.
// It must be associative, and commutative where the call does not say
// [NonCommutative]. It must not keep the slices, and not call this package.
type Op[T Scalar] func(in, inout []T)

// OpOption says more about the operation of a reduction.
type OpOption uint8

// NonCommutative says that the order of operands matters: the result is that of
// rank 0 op rank 1 op ... (commute = false of MPI_Op_create).
const NonCommutative OpOption = 1

// sizeOf returns the size of T in bytes.
func sizeOf[T Scalar]() int {
	var one [1]T
	return len(mem.BytesOf(one[:]))
}

// Integer is every integer type.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint
}

// Ordered is every type whose values can be compared.
type Ordered interface {
	Integer | ~float32 | ~float64
}

// Sum adds (MPI_SUM).
func Sum[T Scalar](in, inout []T) { dtype.SumOf(in, inout) }

// Prod multiplies (MPI_PROD).
func Prod[T Scalar](in, inout []T) { dtype.ProdOf(in, inout) }

// Max takes the larger one (MPI_MAX).
func Max[T Ordered](in, inout []T) { dtype.MaxOf(in, inout) }

// Min takes the smaller one (MPI_MIN).
func Min[T Ordered](in, inout []T) { dtype.MinOf(in, inout) }

// BAnd is the bitwise and (MPI_BAND).
func BAnd[T Integer](in, inout []T) { dtype.BandOf(in, inout) }

// BOr is the bitwise or (MPI_BOR).
func BOr[T Integer](in, inout []T) { dtype.BorOf(in, inout) }

// BXor is the bitwise exclusive or (MPI_BXOR).
func BXor[T Integer](in, inout []T) { dtype.BxorOf(in, inout) }

// LAnd is 1 where both are not 0, else 0 (MPI_LAND).
func LAnd[T Integer](in, inout []T) {
	for i, v := range in[:len(inout)] {
		inout[i] = truth[T](v != 0 && inout[i] != 0)
	}
}

// LOr is 1 where one of them is not 0, else 0 (MPI_LOR).
func LOr[T Integer](in, inout []T) {
	for i, v := range in[:len(inout)] {
		inout[i] = truth[T](v != 0 || inout[i] != 0)
	}
}

// LXor is 1 where exactly one of them is not 0, else 0 (MPI_LXOR).
func LXor[T Integer](in, inout []T) {
	for i, v := range in[:len(inout)] {
		inout[i] = truth[T]((v != 0) != (inout[i] != 0))
	}
}

func truth[T Integer](b bool) T {
	if b {
		return 1
	}
	return 0
}
