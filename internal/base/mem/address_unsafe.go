package mem

import "unsafe"

// AddressOf returns the virtual address of the first byte of b as a number,
// 0 when b is empty. The number names memory in a remote key; it is never
// turned back into a pointer.
func AddressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// Find returns the address of b in the arena when all of b lies inside it.
func (a *Arena) Find(b []byte) (Addr, bool) {
	off := AddressOf(b) - AddressOf(a.b)
	if len(b) == 0 || off >= uint64(len(a.b)) || uint64(len(b)) > uint64(len(a.b))-off {
		return 0, false
	}
	return Addr(off), true
}

// Scalar is every type whose memory may be sent as it is: fixed size, no
// pointers.
type Scalar interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// BytesOf returns the memory of s as bytes. Both name the same memory.
func BytesOf[T Scalar](s []T) []byte { return PlainBytes(s) }

// ScalarsOf returns the memory of b, which lies in the arena or was made by
// BytesOf, as a slice of T. It panics when b is not aligned for T or not a
// whole number of T long.
func ScalarsOf[T Scalar](b []byte) []T { return PlainOf[T](b) }

// SliceOf returns a slice of the one element at p.
func SliceOf[T Scalar](p *T) []T { return unsafe.Slice(p, 1) }

// AlignOf returns what addresses of elements of a type are multiples of.
func AlignOf[T Scalar]() int {
	var zero T
	return int(unsafe.Alignof(zero))
}

// Joined returns a and b as one, and whether b begins where a ends. Both are of one allocation, or of none of Go's.
func Joined(a, b []byte) (both []byte, ok bool) {
	if len(a) == 0 || len(b) == 0 || AddressOf(a)+uint64(len(a)) != AddressOf(b) {
		return a, false
	}
	return unsafe.Slice(unsafe.SliceData(a), len(a)+len(b)), true
}
