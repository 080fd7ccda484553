package hosttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/testbed"
)

// FloodBridge makes the bridge of the testbed called name a hub: every host sees all frames.
func FloodBridge(name string) error {
	return testbed.DoIn(name+"-sw", func() error {
		link, err := netlink.LinkByName("br0")
		if err != nil {
			return fmt.Errorf("bridge of %s: %w", name, err)
		}
		never := uint32(0)
		return netlink.LinkModify(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", Index: link.Attrs().Index, TxQLen: -1}, AgeingTime: &never})
	})
}

// Tap records what passes a device of a host, and sends it again.
type Tap struct {
	fd  int
	buf [70_000]byte
}

// tapRoom is how many bytes may wait to be looked at.
const tapRoom = 64 << 20

// OpenTap opens one at the device dev of the host called name. The caller closes it.
func OpenTap(name, dev string) (t *Tap, err error) {
	err = testbed.DoIn(name, func() error {
		link, err := net.InterfaceByName(dev)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		proto := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff})
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", name, os.NewSyscallError("socket", err))
		}
		t = &Tap{fd: fd}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapRoom); err != nil {
			return fmt.Errorf("%s: %w", name, os.NewSyscallError("setsockopt", err))
		}
		return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: link.Index}))
	})
	if err != nil && t != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, err
}

// Close closes the tap.
func (t *Tap) Close() error { return unix.Close(t.fd) }

// Datagrams returns the frames with UDP over IPv4 to a port from first to last that have passed
// since it was called before, as they can be sent again: what a device has yet to
// cut is left out, and there are no checksums of UDP, which it may have had yet to compute.
func (t *Tap) Datagrams(first, last uint16) (frames [][]byte, err error) {
	const most, ip, udp = 9014, 14, 34
	for {
		n, _, err := unix.Recvfrom(t.fd, t.buf[:], unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			return frames, nil
		case err != nil:
			return nil, os.NewSyscallError("recvfrom", err)
		}
		b := t.buf[:n]
		if n < udp+8 || n > most || b[ip] != 0x45 || b[ip+9] != unix.IPPROTO_UDP {
			continue
		}
		if to := binary.BigEndian.Uint16(b[udp+2:]); to >= first && to <= last {
			b[udp+6], b[udp+7] = 0, 0
			frames = append(frames, slices.Clone(b))
		}
	}
}

// Send sends frames as they are.
func (t *Tap) Send(frames ...[]byte) error {
	for _, f := range frames {
		if _, err := unix.Write(t.fd, f); err != nil && err != unix.ENOBUFS {
			return os.NewSyscallError("write", err)
		}
	}
	return nil
}
