package netstack

import (
	"unsafe"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// offload is a packet socket (packet(7)) by which segments of more than a frame leave as one. The device cuts
// them, or the kernel does for it, and a veth passes them on whole, as it does those of the kernel's TCP. Where
// AF_XDP copies, a frame costs the sender more than the copy of its bytes.
type offload struct {
	fd     int
	vnet   virtioNet
	head   [inet.EthernetLen + inet.IPv6Len + header.TCPHeaderMaximumSize]byte
	pieces [offloadPieces]unix.Iovec
	msg    unix.Msghdr
}

// offloadPieces is the most pieces of memory that a packet may be: its headers, and views of gVisor's.
const offloadPieces = 16

// virtioNet is struct virtio_net_hdr of linux/virtio_net.h, which is in front of each packet: how it is to be cut.
type virtioNet struct {
	flags, kind                   uint8
	head, segment, sumFrom, sumAt uint16 // bytes of the headers, and of a segment's payload; where the checksum begins, and is behind there
}

const (
	needsSum  = 1 // flags: the device is to complete the checksum
	cutTCP4   = 1
	cutTCP6   = 4
	virtioLen = 10
)

// openOffload opens the socket on c's device, or returns nil where all goes in frames: without a copy there is
// nothing to gain, a device of several queues would not keep the order, and not each process may have such sockets.
func openOffload(c *Config) *offload {
	if caps := c.Port.Caps(); c.Ifindex == 0 || caps.ZeroCopy || caps.VLAN != 0 || caps.Queues > 1 || caps.MaxBufs < fabric.MaxBufs {
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
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: c.Ifindex})
	}
	o := &offload{fd: fd}
	if err != nil {
		_ = o.close()
		return nil
	}
	return o
}

func (o *offload) close() error {
	if o == nil {
		return nil
	}
	return unix.Close(o.fd)
}

// add makes b the next piece of what is sent. false: there are too many.
func (o *offload) add(b []byte) bool {
	n := int(o.msg.Iovlen)
	if n == len(o.pieces) {
		return false
	}
	o.pieces[n].Base = unsafe.SliceData(b)
	o.pieces[n].SetLen(len(b))
	o.msg.SetIovlen(n + 1)
	return true
}

// whole sends a packet that is more than a frame as it is, behind the frames that were before it. false: it has to be cut.
func (s *Stack) whole(p *stack.PacketBuffer, to inet.MAC) bool {
	o := s.out.offload
	ip, tcp := p.NetworkHeader().Slice(), p.TransportHeader().Slice()
	from := inet.EthernetLen + len(ip)
	n := from + len(tcp)
	if n > len(o.head) {
		return false
	}
	inet.PutEthernet(o.head[:], to, s.mac, s.family.ether)
	copy(o.head[inet.EthernetLen:], ip)
	copy(o.head[from:], tcp)
	s.number(p, o.head[inet.EthernetLen:from], o.head[from:n], 0, p.Data().Size()).PutSum(o.head[from+tcpChecksumAt:])
	o.vnet = virtioNet{flags: needsSum, kind: cutTCP4, head: uint16(n), segment: p.GSOOptions.MSS, sumFrom: uint16(from), sumAt: tcpChecksumAt}
	if s.family.ether == inet.EtherIPv6 {
		o.vnet.kind = cutTCP6
	}
	o.msg = unix.Msghdr{Iov: &o.pieces[0]}
	o.add(unsafe.Slice((*byte)(unsafe.Pointer(&o.vnet)), virtioLen))
	o.add(o.head[:n])
	views, skip := p.AsViewList()
	skip += len(ip) + len(tcp)
	for v := views.Front(); v != nil; v = v.Next() {
		if b := bytesFrom(v, &skip); len(b) > 0 && !o.add(b) {
			return false
		}
	}
	s.push()
	s.port.Flush()
	// RawSyscall: it never sleeps. What does not go now, as when memory is short, goes in frames.
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(o.fd), uintptr(unsafe.Pointer(&o.msg)), unix.MSG_DONTWAIT)
	return errno == 0
}
