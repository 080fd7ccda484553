package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// A sender asks a receiver for a ring with a letter to its socket, and gets a
// letter back. Both are a few bytes and descriptors (SCM_RIGHTS):
//
//	call    0 magic, 4 version, 6 port, 8 address of the sender, IPv4 mapped to IPv6
//	        descriptor: one end of a socket pair, for the answer
//	answer  0 magic, 4 version, 6 status, 8 bytes of the ring, 12 largest payload
//	        with status ok, descriptors: the ring, the receiver's eventfd
//
// All numbers are big-endian.
const (
	magic     = 0x78_77_73_6d // "xwsm"
	version   = 2
	callLen   = 24
	answerLen = 16
)

// Statuses of an answer.
const (
	statusOK   = 0
	statusFull = 1 // as many senders as there are rings
)

func putCall(b []byte, from netip.AddrPort) {
	binary.BigEndian.PutUint32(b, magic)
	binary.BigEndian.PutUint16(b[4:], version)
	binary.BigEndian.PutUint16(b[6:], from.Port())
	addr := from.Addr().As16()
	copy(b[8:], addr[:])
}

func parseCall(b []byte) (from netip.AddrPort, ok bool) {
	if len(b) != callLen || !isOurs(b) {
		return from, false
	}
	from = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[6:]))
	return from, from.Port() != 0 && !from.Addr().IsUnspecified()
}

type answer struct {
	status uint16
	ring   int // bytes
	max    int // largest payload in bytes
}

func (a *answer) put(b []byte) {
	binary.BigEndian.PutUint32(b, magic)
	binary.BigEndian.PutUint16(b[4:], version)
	binary.BigEndian.PutUint16(b[6:], a.status)
	binary.BigEndian.PutUint32(b[8:], uint32(a.ring))
	binary.BigEndian.PutUint32(b[12:], uint32(a.max))
}

// parse reads an answer and accepts only rings that put can use.
func (a *answer) parse(b []byte) bool {
	if len(b) != answerLen || !isOurs(b) {
		return false
	}
	a.status = binary.BigEndian.Uint16(b[6:])
	ring, most := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	if ring < ringMin || ring > ringMax || ring&(ring-1) != 0 || most > mtuMax || depth(int(ring), int(most)) < 1 {
		return false
	}
	a.ring, a.max = int(ring), int(most)
	return true
}

func isOurs(b []byte) bool {
	return binary.BigEndian.Uint32(b) == magic && binary.BigEndian.Uint16(b[4:]) == version
}

// letter is what one recvmsg(2) got.
type letter struct {
	body []byte
	fds  []int
	uid  uint32 // of the user who sent it, as the kernel says
	pid  int    // likewise of the process, as its number is here; 0 if it has none
}

// errOpened says that a letter came from another user, or was cut.
var errOpened = errors.New("shm: letter is not whole, or of another user")

// receive takes a letter from a socket with SO_PASSCRED without waiting. The
// caller closes its descriptors. Letters of other users are refused: an
// abstract name has no owner and no permissions.
func receive(fd int) (letter, error) {
	var l letter
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
		return letter{}, errOpened
	}
	return l, nil
}

// discard closes the descriptors of a letter.
func (l *letter) discard() {
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
