package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapAligned maps a file to read and write, at a multiple of the size of a huge page if
// it has some: the kernel looks after that only where huge pages are what it was told to
// take. The address is only proposed, so that nothing of another thread is ever replaced: where one
// has taken the place meanwhile, the kernel chooses. The caller unmaps it with Unmap.
func MapAligned(fd, size, flags int) ([]byte, error) {
	var at unsafe.Pointer
	if size >= HugePage {
		room, err := unix.MmapPtr(-1, 0, nil, uintptr(size+HugePage), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return nil, err
		}
		if err := unix.MunmapPtr(room, uintptr(size+HugePage)); err != nil {
			return nil, err
		}
		at = unsafe.Add(room, -uintptr(room)&(HugePage-1))
	}
	p, err := unix.MmapPtr(fd, 0, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|flags)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// Unmap takes out what MapAligned has mapped.
func Unmap(b []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}

// Collapse makes the whole huge pages in b, memory of a memfd that is mapped, huge ones, for all that map it where
// the kernel does that (Linux 6.1) and has room. It needs no rights. It returns how many bytes they are, 0
// where one of them at least cannot be had.
func Collapse(b []byte) int {
	first := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (HugePage - 1)
	if uintptr(len(b)) < first+HugePage {
		return 0
	}
	b = b[first : first+(uintptr(len(b))-first)&^(HugePage-1)]
	for at := 0; at < len(b); at += HugePage {
		// Of nothing the kernel makes no huge page.
		if unix.Madvise(b[at:at+FrameSize], unix.MADV_POPULATE_WRITE) != nil {
			return 0
		}
	}
	if unix.Madvise(b, unix.MADV_COLLAPSE) != nil {
		return 0
	}
	return len(b)
}

// mapPrivate maps whole huge pages of memory of this process alone. The caller unmaps it with Unmap.
func mapPrivate(size int) ([]byte, error) {
	all := uintptr(size + HugePage)
	p, err := unix.MmapPtr(-1, 0, nil, all, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	before := -uintptr(p) & (HugePage - 1)
	at := unsafe.Add(p, before)
	if before > 0 {
		_ = unix.MunmapPtr(p, before) // what stays is never touched
	}
	_ = unix.MunmapPtr(unsafe.Add(at, size), HugePage-before)
	return unsafe.Slice((*byte)(at), size), nil
}
