package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// A sender asks a receiver for a ring with a handshake to its socket, and gets a handshake
// back: a call and an answer, with their fields in this order and big-endian, and
// descriptors (SCM_RIGHTS). Those of a call are one end of a socket pair, for the
// answer, and from a channel the sender's eventfd, to tell it that there is room again.
// Those of an answer with status ok are the ring, the receiver's eventfd, and for a
// channel the receiver's bitmap.
const (
	magic   = 0x78_77_73_6d // "xwsm"
	version = 5

	nonceLen = 16
)

// call names the sender.
type call struct {
	Magic   uint32
	Version uint16
	Port    uint16         // of an endpoint
	Addr    [16]byte       // likewise, IPv4 mapped to IPv6
	Rank    uint64         // of a channel
	At      uint64         // likewise, address of the nonce in its memory
	Nonce   [nonceLen]byte // likewise; its name is made of it
}

// from returns the address of an endpoint, which is none when the call is of a channel.
func (c *call) from() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(c.Addr).Unmap(), c.Port)
}

// Statuses of an answer.
const (
	statusOK   = 0
	statusFull = 1 // as many senders as there are rings
)

// answer says what the sender gets.
type answer struct {
	Magic   uint32
	Version uint16
	Status  uint16
	Ring    uint32 // bytes
	At      uint32 // where the ring begins in the memory
	Memory  uint32 // bytes
	Most    uint32 // longest payload in bytes
	Slot    uint32
	Pulls   uint32 // to a channel: 1 when the receiver can read the sender's memory
	Fences  uint32 // likewise: 1 when the receiver has the sender execute a fence before it sleeps for long
}

// usable accepts only rings that a sender can write to.
func (a *answer) usable() bool {
	if a.At%dataAt != 0 || uint64(a.At)+dataAt+uint64(a.Ring) > uint64(a.Memory) {
		return false
	}
	return a.Ring >= ringMin && a.Ring <= ringMax && a.Ring&(a.Ring-1) == 0 && a.Slot < channelPeers && depth(int(a.Ring), int(a.Most)) >= 1
}

// several reports whether the memory is for more rings than this one.
func (a *answer) several() bool { return a.Memory > dataAt+a.Ring }

// bodyOf returns a call or an answer as it is sent.
func bodyOf(l any) []byte {
	b, _ := binary.Append(nil, binary.BigEndian, l) // all of its fields have a size
	binary.BigEndian.PutUint32(b, magic)
	binary.BigEndian.PutUint16(b[4:], version)
	return b
}

// parse reads a call or an answer. false means that it is none of our version.
func parse(b []byte, l any) bool {
	if len(b) != binary.Size(l) || binary.BigEndian.Uint32(b) != magic || binary.BigEndian.Uint16(b[4:]) != version {
		return false
	}
	_, err := binary.Decode(b, binary.BigEndian, l)
	return err == nil
}

// handshake is what one recvmsg(2) got.
type handshake struct {
	body []byte
	fds  []int
	uid  uint32 // of the sender's user, from the kernel
	pid  int    // likewise of the process, as its number is here; 0 if it has none
}

// errOpened says that a handshake came from another user, or was cut.
var errOpened = errors.New("shm: handshake is not whole, or of another user")

// receive takes a handshake from a socket with SO_PASSCRED without waiting. The
// caller closes its descriptors. Handshakes of other users are refused: an
// abstract name has no owner and no permissions.
func receive(fd int) (handshake, error) {
	var l handshake
	body := make([]byte, 64)
	oob := make([]byte, unix.CmsgSpace(8*4)+unix.CmsgSpace(unix.SizeofUcred))
	n, oobn, flags, _, err := unix.Recvmsg(fd, body, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return l, err
	}
	l.body, l.uid = body[:n], ^uint32(0)
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range msgs {
		m := &msgs[i]
		switch m.Header.Type {
		case unix.SCM_RIGHTS:
			fds, _ := unix.ParseUnixRights(m)
			l.fds = append(l.fds, fds...)
		case unix.SCM_CREDENTIALS:
			if c, err := unix.ParseUnixCredentials(m); err == nil {
				l.uid, l.pid = c.Uid, int(c.Pid)
			}
		}
	}
	if err != nil || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || n > 0 && l.uid != uint32(os.Getuid()) {
		l.discard()
		return handshake{}, errOpened
	}
	return l, nil
}

// receiveAnswer is receive for the socket of an answer, where a message may be behind the end: Linux looks first
// whether there is a message and then whether the other end is closed, and the other end may send and
// close in between. When the end is seen nothing more can come, so that one more look is enough. No
// body: the other end is closed, or its process has ended, and there is no answer.
func receiveAnswer(fd int) (handshake, error) {
	l, err := receive(fd)
	if err == nil && len(l.body) == 0 {
		l.discard()
		l, err = receive(fd)
	}
	return l, err
}

// discard closes the descriptors of a handshake.
func (l *handshake) discard() {
	for _, fd := range l.fds {
		unix.Close(fd)
	}
	l.fds = nil
}

// rendezvous makes a socket with the abstract name of an endpoint.
func rendezvous(at *unix.SockaddrUnix) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("shm: %w", os.NewSyscallError("socket", err))
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err == nil {
		err = unix.Bind(fd, at)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// name returns the abstract address of an endpoint.
func name(a netip.AddrPort) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@xwarp-shm/" + a.String()}
}
