package xdp

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openEthtool returns what asks the network card of a device in the network
// namespace of the calling thread, wherever it is called. The caller closes it.
func openEthtool(name string) (card ethtool, close func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socket", err)
	}
	return func(request []byte) error { return ethtoolIoctl(fd, name, request) }, func() { unix.Close(fd) }, nil
}

// ifreq is a struct ifreq of linux/if.h with ifr_data.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

func ethtoolIoctl(fd int, name string, request []byte) error {
	r := ifreq{data: unsafe.Pointer(unsafe.SliceData(request))}
	if len(name) >= len(r.name) {
		return unix.ENODEV
	}
	copy(r.name[:], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(request)
	return errnoOf(errno)
}
