package ring

import (
	"sync/atomic"
	"unsafe"
)

// word returns the eight bytes of mem at off as an atomic word. The caller has
// checked that they are inside of mem and aligned. This is all that is unsafe
// in the package.
func word(mem []byte, off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&mem[off : off+8][0]))
}

// aligned reports whether mem starts at a multiple of n.
func aligned(mem []byte, n uintptr) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%n == 0
}
