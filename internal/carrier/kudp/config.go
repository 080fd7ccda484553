// Package kudp is the carrier that needs no rights: datagrams over the kernel's UDP
// sockets. It needs no privileges and works on every network device, loopback
// included; what AF_XDP wins is measured against it.
//
// System calls are made for whole batches (recvmmsg, sendmmsg), and aggregates of
// datagrams of one size to one destination are handed over as one large one
// that the kernel cuts (UDP_SEGMENT) where that helps.
package kudp

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// DefaultFrames is the default of Config.Frames.
const DefaultFrames = 512

// Config describes a socket. Arena and Local must be given.
type Config struct {
	// Arena holds the buffers. The caller keeps it.
	Arena *mem.Arena
	// Local is the address and port that peers send to: an IPv4 or IPv6 address
	// of this host; all peers are of the same family. With port 0 the kernel
	// chooses one.
	Local netip.AddrPort
	// MTU is the largest IP packet in bytes to send and to receive; default,
	// and at most, that of the device that has Local. All peers must accept it.
	MTU int
	// Frames is how many frames there are for sending; default 512.
	Frames int
	// Pool is where frames to send come from, which the caller keeps; default
	// one of Frames frames of the socket's own.
	Pool *mem.Pool
	// RxSlots is how many datagrams may be received and not yet released;
	// default 128, or fewer when they would take more than 4 MiB of the arena.
	RxSlots int
	// SocketBuffer is what the kernel is asked to buffer in bytes, each way;
	// default 8 MiB. It grants less to users without privileges (sysctl
	// net.core.rmem_max and wmem_max).
	SocketBuffer int
	// NoGSO does without handing aggregates of equal datagrams to the kernel as one, which
	// halves their cost or better. Default: that is done where the kernel has it (Linux 4.18).
	NoGSO bool
	// NoGRO does without taking such aggregates from the kernel as one, where they were sent
	// with GSO on this machine or merged by the NIC; together they make a datagram
	// of a batch of 32 ten times cheaper, and leave a lone one as it is
	// (BenchmarkBatch). Receive buffers are 64 KiB with it. Default: that is done where the
	// kernel has it (Linux 5.0).
	NoGRO bool
	// Mark is that of all packets (SO_MARK, socket(7)), if this process may set one; default none.
	Mark int
	// Track checks every move of a frame, as mem.NewPool does.
	Track bool
}

const (
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8
	minMTU      = 68                           // RFC 791
	minMTU6     = 1280                         // RFC 8200, section 5
	maxPacket   = 65535                        // the IPv4 total length field
	maxDatagram = maxPacket - ipv4Len - udpLen // IPv6 could have 20 bytes more
)

// Errors that Open and Resolve wrap.
var (
	// ErrPortInUse says that another socket has the port.
	ErrPortInUse = errors.New("port is in use")
	// ErrNotLocal says that no device of this host has the address.
	ErrNotLocal = errors.New("not an address of this host")
	// ErrNoRoute says that the kernel does not know how to reach a host.
	ErrNoRoute = errors.New("no route")
	// ErrPathMTU says that packets of the socket's size do not reach a host
	// in one piece.
	ErrPathMTU = errors.New("MTU of the path is too small")
	// ErrLinkLocal says that an IPv6 address is of one link only (fe80::/10).
	// Without the name of the device it means nothing, and that differs from host
	// to host, so peers cannot tell it to each other.
	ErrLinkLocal = errors.New("link-local IPv6 addresses are not supported: give the devices addresses of a network (ip addr add fd00::1/64 dev DEVICE)")
)

// withDefaults checks c and fills in what is missing. device is the MTU of the
// device that has the address.
func (c Config) withDefaults(device int) (Config, error) {
	device = min(device, maxPacket)
	c.MTU = cmp.Or(c.MTU, device)
	least := minMTU
	if c.Local.Addr().Is6() {
		least = minMTU6
	}
	if c.MTU < least || c.MTU > device {
		return c, fmt.Errorf("kudp: MTU %d: want %d to %d, the MTU of the device that has %s", c.MTU, least, device, c.Local.Addr())
	}
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{{"Frames", &c.Frames, DefaultFrames}, {"RxSlots", &c.RxSlots, 0}, {"SocketBuffer", &c.SocketBuffer, 8 << 20}} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < 0 {
			return c, fmt.Errorf("kudp: Config.%s is %d: it cannot be negative", f.name, *f.value)
		}
	}
	return c, nil
}

// deviceOf returns the device that has the address, in the network namespace of the
// calling thread.
func deviceOf(local netip.Addr) (net.Interface, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, fmt.Errorf("kudp: %w", err)
	}
	for _, d := range devices {
		if local.IsLoopback() && d.Flags&net.FlagLoopback != 0 {
			return d, nil // all of 127.0.0.0/8 is on it
		}
		addrs, err := d.Addrs()
		if err != nil {
			return d, fmt.Errorf("kudp: addresses of %s: %w", d.Name, err)
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(local.AsSlice()) {
				return d, nil
			}
		}
	}
	return net.Interface{}, fmt.Errorf("kudp: %s: %w; ip addr shows those there are", local, ErrNotLocal)
}

// bindError says what is wrong with an address that cannot be bound.
func bindError(local netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("kudp: UDP %w: %s belongs to another program (ss -ulpn 'sport = %d' shows it); choose another port: %w",
			ErrPortInUse, local, local.Port(), err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("kudp: %s: %w; ip addr shows those there are: %w", local.Addr(), ErrNotLocal, err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("kudp: port %d is for privileged programs: choose one from 1024 on: %w", local.Port(), err)
	}
	return fmt.Errorf("kudp: bind to %s: %w", local, err)
}
