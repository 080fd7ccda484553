// Package hosttest makes hosts of a testbed for a test and does to them what only tests want:
// it lets them send what nobody honest would, and runs commands there for what they print.
package hosttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/testbed"
)

// ForgeTooBig lets the host send what a router sends that finds a packet larger than
// mtu: "fragmentation needed" of ICMP, or "packet too big" of ICMPv6. It goes to the
// host of from and quotes a UDP datagram from there to to, for tests of what those do
// whom somebody lies to.
func ForgeTooBig(h *testbed.Host, from, to netip.AddrPort, mtu int) error {
	msg := make([]byte, 8)
	family, proto := unix.AF_INET, unix.IPPROTO_ICMP
	if from.Addr().Is4() {
		ip := make([]byte, 20)
		ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
		binary.BigEndian.PutUint16(ip[2:], 28)
		copy(ip[12:], from.Addr().AsSlice())
		copy(ip[16:], to.Addr().AsSlice())
		msg[0], msg[1] = 3, 4 // RFC 792, RFC 1191
		binary.BigEndian.PutUint16(msg[6:], uint16(mtu))
		msg = append(msg, ip...)
	} else {
		family, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
		ip := make([]byte, 40)
		ip[0], ip[6], ip[7] = 0x60, unix.IPPROTO_UDP, 64
		binary.BigEndian.PutUint16(ip[4:], 8)
		copy(ip[8:], from.Addr().AsSlice())
		copy(ip[24:], to.Addr().AsSlice())
		msg[0] = 2 // RFC 4443; the kernel fills in the checksum
		binary.BigEndian.PutUint32(msg[4:], uint32(mtu))
		msg = append(msg, ip...)
	}
	msg = binary.BigEndian.AppendUint16(msg, from.Port())
	msg = binary.BigEndian.AppendUint16(msg, to.Port())
	msg = append(msg, 0, 8, 0, 0)
	if from.Addr().Is4() {
		binary.BigEndian.PutUint16(msg[2:], onesComplement(msg))
	}
	return h.Do(func() error {
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, os.NewSyscallError("socket", err))
		}
		defer unix.Close(fd)
		var sa unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte(from.Addr().AsSlice()[:4])}
		if from.Addr().Is6() {
			sa = &unix.SockaddrInet6{Addr: from.Addr().As16()}
		}
		return os.NewSyscallError("sendto", unix.Sendto(fd, msg, 0, sa))
	})
}

// onesComplement is the checksum of the Internet protocols (RFC 1071).
func onesComplement(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// Gullible has the kernel of a host believe each of several lies about a neighbour that come
// at a time, and for longer than a test takes: by itself it would find out in ten seconds, if
// nobody lied meanwhile.
func Gullible(h *testbed.Host) error {
	family := "ipv4"
	if h.Addr.Is6() {
		family = "ipv6"
	}
	of := "/proc/sys/net/" + family + "/neigh/" + h.Dev
	return h.Do(func() error {
		return errors.Join(os.WriteFile(of+"/locktime", []byte("0"), 0), os.WriteFile(of+"/delay_first_probe_time", []byte("10000"), 0))
	})
}

// ForgeNeighbour lets the host say to everybody on the link that who has the Ethernet
// address mac, 6 bytes, has the IP address whose: a gratuitous ARP reply, or an
// unsolicited neighbour advertisement.
func ForgeNeighbour(h *testbed.Host, whose netip.Addr, mac []byte) error {
	frame := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac...)
	if whose.Is4() { // RFC 826
		frame = append(frame, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 2)
		frame = append(append(frame, mac...), whose.AsSlice()...)
		frame = append(frame, mac...) // else the kernel does not take it for gratuitous
		frame = append(frame, whose.AsSlice()...)
	} else { // RFC 4861, section 4.4
		all := netip.IPv6LinkLocalAllNodes().As16()
		copy(frame, []byte{0x33, 0x33, 0, 0, 0, 1})
		na := append([]byte{136, 0, 0, 0, 0x20, 0, 0, 0}, whose.AsSlice()...)
		na = append(append(na, 2, 1), mac...)
		pseudo := append(append(append([]byte{}, whose.AsSlice()...), all[:]...), 0, 0, 0, byte(len(na)), 0, 0, 0, unix.IPPROTO_ICMPV6)
		binary.BigEndian.PutUint16(na[2:], onesComplement(append(pseudo, na...)))
		frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(na)), unix.IPPROTO_ICMPV6, 255)
		frame = append(append(append(frame, whose.AsSlice()...), all[:]...), na...)
	}
	return SendFrames(h, frame)
}

// SendFrames lets the host send Ethernet frames as they are.
func SendFrames(h *testbed.Host, frames ...[]byte) error {
	return h.Do(func() error {
		link, err := net.InterfaceByName(h.Dev)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, os.NewSyscallError("socket", err))
		}
		defer unix.Close(fd)
		to := &unix.SockaddrLinklayer{Ifindex: link.Index}
		for _, f := range frames {
			if err := unix.Sendto(fd, f, 0, to); err != nil {
				return fmt.Errorf("%s: %w", h.Name, os.NewSyscallError("sendto", err))
			}
		}
		return nil
	})
}
