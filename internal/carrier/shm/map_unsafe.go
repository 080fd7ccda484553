package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// word returns the eight bytes of mem at off as an atomic word. off is a
// multiple of 8, and mem starts at one.
func word(mem []byte, off uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&mem[off : off+8][0]))
}

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// mapOver maps bytes of a file in place of the memory over, which is whole
// pages. With fd -1 it becomes private memory.
func mapOver(over []byte, fd int, offset int64) error {
	flags := unix.MAP_FIXED | unix.MAP_SHARED
	if fd < 0 {
		flags = unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	}
	_, err := unix.MmapPtr(fd, offset, unsafe.Pointer(unsafe.SliceData(over)), uintptr(len(over)), readWrite, flags)
	if err != nil {
		return fmt.Errorf("shm: cannot map %d bytes of the arena anew: %w", len(over), err)
	}
	return nil
}

// populate takes all pages of b, which begins with one, in one go, and looks at each: otherwise
// the first touch of each costs a fault, or two where a hypervisor shadows the page tables (20 us).
// Kernels before 5.14 cannot: EINVAL.
func populate(b []byte) error {
	err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	for at := 0; err == nil && at < len(b); at += unix.Getpagesize() {
		(*atomic.Uint64)(unsafe.Pointer(&b[at])).Load() // a page is there as a whole, also if b ends in it
	}
	return err
}
