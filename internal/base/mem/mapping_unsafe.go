package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapAligned maps a file to read and write, at a multiple of the size of a huge page if
// it has some: the kernel looks after that only where huge pages are what it was told to
// take. The caller unmaps it with unmap.
func mapAligned(fd, size, flags int) ([]byte, error) {
	if size < hugePage {
		p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|flags)
		return bytesAt(p, size, err)
	}
	room, err := unix.MmapPtr(-1, 0, nil, uintptr(size+hugePage), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	before := -uintptr(room) & (hugePage - 1)
	at := unsafe.Add(room, before)
	p, err := unix.MmapPtr(fd, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED|flags)
	if err != nil {
		_ = unix.MunmapPtr(room, uintptr(size+hugePage))
		return nil, err
	}
	if before > 0 {
		_ = unix.MunmapPtr(room, before)
	}
	end := uintptr(roundUp(size, FrameSize))
	_ = unix.MunmapPtr(unsafe.Add(at, end), uintptr(size)+hugePage-before-end)
	return bytesAt(p, size, nil)
}

func bytesAt(p unsafe.Pointer, size int, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func unmap(b []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}
