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
