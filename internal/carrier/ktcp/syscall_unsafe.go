package ktcp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls below are raw ones: none of them blocks, and telling the
// scheduler of Go about them costs as much as receiving a small message.

// recv receives up to len(dst) bytes, of which there is at least one.
func recv(fd int, dst []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(len(dst)), unix.MSG_DONTWAIT, 0, 0)
	return count(n, errno), errno
}

// recvmsg receives into what the first iovs of s name, of which there is at least one.
func (s *Streams) recvmsg(fd, iovs int) (int, unix.Errno) {
	s.msg.Iov = &s.iovs[0]
	s.msg.SetIovlen(iovs)
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&s.msg)), unix.MSG_DONTWAIT)
	return count(n, errno), errno
}

// sendmsg sends what the first iovs of s name, of which there is at least one.
func (s *Streams) sendmsg(fd, iovs int) (int, unix.Errno) {
	var n uintptr
	var errno unix.Errno
	if v := &s.iovs[0]; iovs == 1 {
		n, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(v.Base)), uintptr(v.Len), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	} else {
		s.msg.Iov = v
		s.msg.SetIovlen(iovs)
		n, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd),
			uintptr(unsafe.Pointer(&s.msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	return count(n, errno), errno
}

// epollWait returns how many events there are, and does not wait for any.
func epollWait(fd int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	return count(n, errno)
}

func count(n uintptr, errno unix.Errno) int {
	if errno != 0 {
		return 0
	}
	return int(n)
}
