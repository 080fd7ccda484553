package xdp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket options of AF_XDP whose values are structures.

func registerUMEM(fd int, umem []byte, chunk int) error {
	reg := unix.XDPUmemReg{
		Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(umem)))),
		Len:  uint64(len(umem)),
		Size: uint32(chunk),
	}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	return errnoOf(errno)
}

func mmapOffsets(fd int) (off unix.XDPMmapOffsets, err error) {
	err = getsockopt(fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&off), unsafe.Sizeof(off))
	return off, err
}

func statistics(fd int) (st unix.XDPStatistics, err error) {
	err = getsockopt(fd, unix.XDP_STATISTICS, unsafe.Pointer(&st), unsafe.Sizeof(st))
	return st, err
}

func getsockopt(fd, opt int, value unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(opt),
		uintptr(value), uintptr(unsafe.Pointer(&length)), 0)
	return errnoOf(errno)
}

func errnoOf(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
