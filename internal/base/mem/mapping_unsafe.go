package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapAligned maps a file to read and write, at a multiple of the size of a huge page if
// it has some: the kernel looks after that only where huge pages are what it was told to
// take. The address is only proposed, so that nothing of another thread is ever replaced: where one
// has taken the place meanwhile, the kernel chooses. The caller unmaps it with unmap.
func mapAligned(fd, size, flags int) ([]byte, error) {
	var at unsafe.Pointer
	if size >= hugePage {
		room, err := unix.MmapPtr(-1, 0, nil, uintptr(size+hugePage), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return nil, err
		}
		if err := unix.MunmapPtr(room, uintptr(size+hugePage)); err != nil {
			return nil, err
		}
		at = unsafe.Add(room, -uintptr(room)&(hugePage-1))
	}
	p, err := unix.MmapPtr(fd, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|flags)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func unmap(b []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}

// mapPrivate maps whole huge pages of memory of this process alone. The caller unmaps it with unmap.
func mapPrivate(size int) ([]byte, error) {
	all := uintptr(size + hugePage)
	p, err := unix.MmapPtr(-1, 0, nil, all, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	before := -uintptr(p) & (hugePage - 1)
	at := unsafe.Add(p, before)
	if before > 0 {
		_ = unix.MunmapPtr(p, before) // what stays is never touched
	}
	_ = unix.MunmapPtr(unsafe.Add(at, size), hugePage-before)
	return unsafe.Slice((*byte)(at), size), nil
}
