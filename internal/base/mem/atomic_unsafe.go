package mem

import (
	"sync/atomic"
	"unsafe"
)

// Load64 loads the 8 bytes at b at once. ok is false when they do not lie on
// an 8-byte boundary.
func Load64(b []byte) (v uint64, ok bool) {
	p := unsafe.Pointer(&b[:8][0])
	if uintptr(p)%8 != 0 {
		return 0, false
	}
	return atomic.LoadUint64((*uint64)(p)), true
}

// CompareAndSwap64 replaces the 8 bytes at b, which lie on an 8-byte boundary,
// if they hold old.
func CompareAndSwap64(b []byte, old, new uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(unsafe.Pointer(&b[:8][0])), old, new)
}

// Words32 returns b, which begins at a multiple of 4, as atomic words of 4 bytes.
func Words32(b []byte) []atomic.Uint32 {
	if AddressOf(b)%4 != 0 {
		panic("mem: words that are not aligned")
	}
	return unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// Word64 returns the first 8 bytes of b, which begins at a multiple of 8, as an atomic word.
func Word64(b []byte) *atomic.Uint64 {
	if AddressOf(b)%8 != 0 {
		panic("mem: a word that is not aligned")
	}
	return (*atomic.Uint64)(unsafe.Pointer(&b[:8][0]))
}

// Word32 returns the aligned word of 4 bytes that the first byte of b, which is not empty,
// lies in, and where in it that is. The whole word is memory that may be touched.
func Word32(b []byte) (w *atomic.Uint32, at int) {
	p := unsafe.Pointer(&b[0])
	at = int(uintptr(p) % 4)
	return (*atomic.Uint32)(unsafe.Add(p, -at)), at
}
