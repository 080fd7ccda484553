package mem

import (
	"sync/atomic"
	"unsafe"
)

// word returns the 8 bytes of b as a number in the byte order of this host.
// ok is false when b is not 8 bytes at a multiple of 8: processors are atomic
// within such a word only.
func word(b []byte) (w *uint64, ok bool) {
	if len(b) != 8 || AddressOf(b)%8 != 0 {
		return nil, false
	}
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(b))), true
}

// FetchAdd64 adds to the number in b and returns what was there before
// (RFC 7306, section 5.1.1). A 1 in mask ends a field: nothing is carried out
// of that bit, so that one addition serves several counters.
//
// It is atomic with package sync/atomic and its like in whatever thread or
// process has the memory too. ok is false when b is not 8 bytes at an address
// that is a multiple of 8; then nothing has changed.
func FetchAdd64(b []byte, add, mask uint64) (old uint64, ok bool) {
	w, ok := word(b)
	if !ok {
		return 0, false
	}
	if mask == 0 {
		return atomic.AddUint64(w, add) - add, true
	}
	for {
		old = atomic.LoadUint64(w)
		// Without the last bit of each field nothing is carried over; that
		// bit alone is an exclusive or.
		sum := (old&^mask + add&^mask) ^ (old^add)&mask
		if atomic.CompareAndSwapUint64(w, old, sum) {
			return old, true
		}
	}
}

// Swap64 replaces the bits of the number in b that have a 1 in mask by those
// of swap, and returns what was there before (RFC 7306, section 5.1.2).
// Atomicity and ok are as for FetchAdd64.
func Swap64(b []byte, swap, mask uint64) (old uint64, ok bool) {
	w, ok := word(b)
	if !ok {
		return 0, false
	}
	if mask == ^uint64(0) {
		return atomic.SwapUint64(w, swap), true
	}
	for {
		old = atomic.LoadUint64(w)
		if atomic.CompareAndSwapUint64(w, old, old&^mask|swap&mask) {
			return old, true
		}
	}
}

// CompareSwap64 does as Swap64 does, if those bits of the number in b that have
// a 1 in compareMask are equal to those of compare (RFC 7306, section 5.1.3).
// Whether they were, old tells.
func CompareSwap64(b []byte, compare, swap, compareMask, swapMask uint64) (old uint64, ok bool) {
	w, ok := word(b)
	if !ok {
		return 0, false
	}
	for {
		old = atomic.LoadUint64(w)
		if (old^compare)&compareMask != 0 || atomic.CompareAndSwapUint64(w, old, old&^swapMask|swap&swapMask) {
			return old, true
		}
	}
}
