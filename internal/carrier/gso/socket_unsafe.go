// Package gso sends packets of more than a frame beside AF_XDP, for the device or the kernel to cut: generic segmentation offload.
package gso

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Socket is a packet socket (packet(7)) by which segments, or datagrams, of more than a frame leave as one packet. The device
// cuts it, or the kernel does for it, and a veth passes it on whole, as it does those of the kernel's TCP. Where
// AF_XDP copies, a frame costs the sender more than the copy of its bytes.
//
// Owner: engine.
type Socket struct {
	fd     int
	vnet   virtioNet
	pieces [MaxPieces]unix.Iovec
	msg    unix.Msghdr

	refused int // packets in a row
}

// MaxPieces is the most pieces of memory that a packet may be: two for its headers, and its payload.
const MaxPieces = 64

// virtioNet is struct virtio_net_hdr of linux/virtio_net.h, which is in front of each packet: how it is to be cut.
type virtioNet struct {
	flags, kind                   uint8
	head, segment, sumFrom, sumAt uint16 // bytes of the headers, and of a segment's payload; where the checksum begins, and is behind there
}

// Kind is what a packet is cut into: VIRTIO_NET_HDR_GSO_*.
type Kind uint8

// The kinds of packets.
const (
	TCP4 Kind = 1
	TCP6 Kind = 4
	UDP  Kind = 5 // of both families; Linux 6.2
)

const (
	needsSum  = 1 // flags: the device is to complete the checksum
	virtioLen = 10
)

// Open opens the socket on the device with number ifindex that port is on, or returns nil where all goes in frames: without a copy there is
// nothing to gain, a device of several queues would not keep the order, and not each process may have such sockets. 0 as ifindex:
// none is wanted. The caller owns it.
func Open(port fabric.PortCaps, ifindex int) *Socket {
	if ifindex == 0 || port.ZeroCopy || port.VLAN != 0 || port.Queues > 1 || port.MaxBufs < fabric.MaxBufs {
		return nil
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // of no protocol: nothing arrives
	if err != nil {
		return nil
	}
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_QDISC_BYPASS} {
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1)
		}
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifindex})
	}
	s := To(fd)
	if err != nil {
		_ = s.Close()
		return nil
	}
	return s
}

// To returns one that sends to fd, which it owns: for tests.
func To(fd int) *Socket { return &Socket{fd: fd} }

// Close closes the socket, if s is one.
func (s *Socket) Close() error {
	if s == nil {
		return nil
	}
	return unix.Close(s.fd)
}

// Begin begins a packet with all its headers: they are cut off and put in front of each segment of so many bytes of payload.
// In the last of them, which begins at from, the checksum is at offset sumAt, and is the sum of the pseudo header yet.
func (s *Socket) Begin(kind Kind, headers []byte, segment, from, sumAt int) {
	s.vnet = virtioNet{flags: needsSum, kind: uint8(kind), head: uint16(len(headers)), segment: uint16(segment), sumFrom: uint16(from), sumAt: uint16(sumAt)}
	s.msg = unix.Msghdr{Iov: &s.pieces[0]}
	s.Add(unsafe.Slice((*byte)(unsafe.Pointer(&s.vnet)), virtioLen))
	s.Add(headers)
}

// Flat has the kernel make the first n bytes of the packet, headers included, of one piece of memory, and not the headers alone.
func (s *Socket) Flat(n int) { s.vnet.head = uint16(n) }

// Add makes b the next piece of what is sent. false: there are too many.
func (s *Socket) Add(b []byte) bool {
	n := int(s.msg.Iovlen)
	if n == len(s.pieces) {
		return false
	}
	s.pieces[n].Base = unsafe.SliceData(b)
	s.pieces[n].SetLen(len(b))
	s.msg.SetIovlen(n + 1)
	return true
}

// Send sends the packet; the pieces are the caller's again. false: it did not go, as when memory is short, and has to go in frames.
func (s *Socket) Send() bool {
	// RawSyscall: it never sleeps.
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), unix.MSG_DONTWAIT)
	if errno != 0 {
		s.refused++
		return false
	}
	s.refused = 0
	return true
}

// refusedMost is how many packets are refused in a row before none is tried any more: a device that does not cut packets itself
// refuses each, and a veth does when a program for XDP is attached to the other end.
const refusedMost = 8

// Works reports whether s is a socket, and packets may leave by it.
func (s *Socket) Works() bool { return s != nil && s.refused < refusedMost }
