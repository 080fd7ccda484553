package kudp

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// message is struct mmsghdr of sendmmsg(2) and recvmmsg(2).
type message struct {
	unix.Msghdr
	len uint32 // bytes sent or received
	_   uint32
}

// control is room for one control message with a value of up to 8 bytes, in
// the machine's byte order.
type control struct {
	unix.Cmsghdr
	value [8]byte
}

const controlLen = uint64(unsafe.Sizeof(control{}))

// rawAddr is room for struct sockaddr_in6, or sockaddr_in, which is shorter.
type rawAddr struct{ unix.RawSockaddrInet6 }

func (a *rawAddr) v4() *unix.RawSockaddrInet4 { return (*unix.RawSockaddrInet4)(unsafe.Pointer(a)) }

// rawAddrOf returns an address as the kernel takes it.
func rawAddrOf(a netip.AddrPort) (r rawAddr) {
	port := bits.ReverseBytes16(a.Port())
	if a.Addr().Is4() {
		*r.v4() = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: a.Addr().As4()}
		return r
	}
	return rawAddr{unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: a.Addr().As16()}}
}

// remote returns the address that the kernel has written.
func (a *rawAddr) remote() fabric.Remote {
	port := bits.ReverseBytes16(a.Port) // at the same place in both
	if a.Family == unix.AF_INET {
		return fabric.Remote4(binary.BigEndian.Uint32(a.v4().Addr[:]), port)
	}
	return fabric.Remote6(binary.BigEndian.Uint64(a.Addr[:8]), binary.BigEndian.Uint64(a.Addr[8:]), port)
}

// setName makes m use a as the other end's address.
func (m *message) setName(a *rawAddr) {
	m.Name = (*byte)(unsafe.Pointer(a))
	m.Namelen = unix.SizeofSockaddrInet6 // the kernel looks at as much as the family needs
}

// setControl makes m use c; nil takes it away.
func (m *message) setControl(c *control) {
	m.Control = (*byte)(unsafe.Pointer(c))
	m.Controllen = 0
	if c != nil {
		m.Controllen = controlLen
	}
}

// sendmmsg sends msgs without blocking and returns how many were sent. The
// system call is a raw one: it does not block, and telling the scheduler of it
// costs more than sending a small datagram.
func sendmmsg(fd int, msgs []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(msgs))), uintptr(len(msgs)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return count(n, errno), errno
}

// recvmmsg receives up to len(msgs) datagrams without blocking.
func recvmmsg(fd int, msgs []message) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(msgs))), uintptr(len(msgs)), unix.MSG_DONTWAIT, 0, 0)
	return count(n, errno)
}

func count(n uintptr, errno unix.Errno) int {
	if errno != 0 {
		return 0
	}
	return int(n)
}

// memInfo is what SO_MEMINFO tells (linux/sock_diag.h).
type memInfo [9]uint32

// Indices of memInfo.
const (
	memInfoRcvbuf = 1
	memInfoDrops  = 8
)

// getMemInfo reads the socket's memory counters. They stay 0 on an error,
// which only a closed socket can give.
func getMemInfo(fd int) (m memInfo) {
	size := uint32(unsafe.Sizeof(m))
	_, _, _ = unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&size)), 0)
	return m
}
