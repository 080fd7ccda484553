package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/xwarp/xwarp/internal/base/mem"
	"golang.org/x/sys/unix"
)

// udpBatch is how many datagrams one system call moves in streams.
const udpBatch = 32

// Sizes of struct mmsghdr and struct iovec on 64-bit machines, and the place
// of msg_iov and msg_iovlen in the former; all words are 8 bytes.
const (
	mmsghdrSize   = 64
	mmsghdrIov    = 16
	mmsghdrIovLen = 24
	iovecSize     = 16
)

// udpReceiveBuffer is what the kernel is asked for, in bytes.
const udpReceiveBuffer = 8 << 20

// udpBench is the baseline: a connected kernel UDP socket, both ends spinning,
// batched system calls for streams. See stream.go for the little protocol that
// tells what was lost.
type udpBench struct {
	rawBench
	s     *socket
	out   batch // of which slot 0 also serves single datagrams
	in    batch
	size  int // of the datagrams of a burst, in bytes
	rcvr  streamReceiver
	limit int // bytes that the receiver's kernel buffers
	dice  *rand.Rand
}

// batch is a vector of datagrams in the arena for sendmmsg and recvmmsg.
type batch struct {
	s     *socket
	heads int // offset of the first struct mmsghdr
	slots int // offset of the first buffer
	slot  int // size of a buffer
}

func openUDP(e *End) (Bench, error) {
	slot := (max(slices.Max(e.Spec.Sizes), confirmSize) + 63) &^ 63
	half := udpBatch * (mmsghdrSize + iovecSize + slot)
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.Addr, 0)))
	if err != nil {
		return nil, fmt.Errorf("data socket: %w", err)
	}
	here := conn.LocalAddr().String()
	s, err := newSocket(conn, 2*half)
	if err != nil {
		return nil, err
	}
	u := &udpBench{rawBench: rawBench{End: e}, s: s, dice: rand.New(rand.NewPCG(e.Pair.Key(), uint64(e.Pair.Rank())))}
	u.link = u
	u.out, u.in = newBatch(s, 0, slot), newBatch(s, half, slot)
	if err := u.connect(here); err != nil {
		return nil, errors.Join(fmt.Errorf("data socket: %w", err), s.close())
	}
	return u, nil
}

// connect connects the socket, whose address is here, with that of the other end.
func (u *udpBench) connect(here string) error {
	// Beyond the limit for ordinary users where that is allowed.
	fd := u.s.fd
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, udpReceiveBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, udpReceiveBuffer); err != nil {
			return fmt.Errorf("SO_RCVBUF: %w", err)
		}
	}
	limit, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return fmt.Errorf("SO_RCVBUF: %w", err)
	}
	err = errors.Join(u.Pair.Put("address", here), u.Pair.Put("receive buffer", strconv.Itoa(limit)), u.Pair.Fence())
	if err != nil {
		return err
	}
	if u.limit, err = said(u.Pair, "receive buffer", strconv.Atoi); err != nil {
		return err
	}
	peer, err := u.peerAddr()
	if err != nil {
		return err
	}
	var to unix.Sockaddr = &unix.SockaddrInet6{Addr: peer.Addr().As16(), Port: int(peer.Port())}
	if peer.Addr().Is4() {
		to = &unix.SockaddrInet4{Addr: peer.Addr().As4(), Port: int(peer.Port())}
	}
	if err := unix.Connect(fd, to); err != nil {
		return fmt.Errorf("connect to %v: %w", peer, err)
	}
	return nil
}

// newBatch lays out udpBatch datagrams at off: headers, vectors, buffers.
func newBatch(s *socket, off, slot int) batch {
	b := batch{s: s, heads: off, slots: off + udpBatch*(mmsghdrSize+iovecSize), slot: slot}
	for i := range udpBatch {
		iov := b.iov(i)
		head := s.arena.At(mem.Addr(off+i*mmsghdrSize), mmsghdrSize)
		binary.NativeEndian.PutUint64(head[mmsghdrIov:], uint64(s.base)+uint64(iov))
		binary.NativeEndian.PutUint64(head[mmsghdrIovLen:], 1)
		binary.NativeEndian.PutUint64(s.arena.At(mem.Addr(iov), 8), uint64(s.base)+uint64(b.slots+i*slot))
	}
	b.length(slot)
	return b
}

func (b *batch) iov(i int) int { return b.heads + udpBatch*mmsghdrSize + i*iovecSize }

// length sets the length of all datagrams.
func (b *batch) length(n int) {
	for i := range udpBatch {
		binary.NativeEndian.PutUint64(b.s.arena.At(mem.Addr(b.iov(i)+8), 8), uint64(n))
	}
}

// at returns the offset and the first bytes of the i-th datagram.
func (b *batch) at(i int) (off int, head []byte) {
	off = b.slots + i*b.slot
	return off, b.s.arena.At(mem.Addr(off), confirmSize)
}

// drop reports whether a datagram that has arrived is to be lost on purpose.
func (u *udpBench) drop() bool { return u.Spec.Loss > 0 && u.dice.Float64() < u.Spec.Loss }

func (u *udpBench) Carrier() string { return "kernel UDP" }

func (u *udpBench) Close() error { return u.s.close() }

// Progress has nothing to do: the kernel does it.
func (u *udpBench) Progress() {}

func (u *udpBench) prepare(size int) {
	u.size = size
	u.out.length(size)
}

// window: a datagram takes up to twice its size, and its descriptor, of the
// receiver's buffer.
func (u *udpBench) window(size int) int { return u.limit / (2*size + 1280) }

func (u *udpBench) ping(n uint64) error {
	out, head := u.out.at(0)
	binary.LittleEndian.PutUint64(head, n)
	if u.s.send(out, u.size) < 0 {
		return u.s.failure("send")
	}
	return nil
}

func (u *udpBench) echoed(n uint64) (bool, error) {
	in, head := u.in.at(0)
	r := u.s.recv(in, u.size)
	if r < 0 {
		return false, u.s.failure("recv")
	}
	return r >= streamHeader && binary.LittleEndian.Uint64(head) == n && !u.drop(), nil
}

func (u *udpBench) echo(size int) error {
	in, _ := u.in.at(0)
	var turns spin
	for {
		r := u.s.recv(in, size)
		if r < 0 || r > 0 && !u.drop() && u.s.send(in, r) < 0 {
			return u.s.failure("echo")
		}
		if r == 0 && turns.idle() && u.Pair.Spoken() {
			return nil
		}
	}
}

func (u *udpBench) fill(s *streamSender, room int) (sent bool, err error) {
	room = min(room, udpBatch)
	if room == 0 {
		return false, nil
	}
	for i := range room {
		_, head := u.out.at(i)
		binary.LittleEndian.PutUint64(head, s.word(i))
	}
	n := u.s.sendBatch(u.out.heads, room)
	if n < 0 {
		return false, u.s.failure("sendmmsg")
	}
	s.sent(n)
	return true, nil
}

func (u *udpBench) repeat(word uint64) {
	_, head := u.out.at(0)
	binary.LittleEndian.PutUint64(head, word)
	u.s.sendBatch(u.out.heads, 1)
}

// confirmed takes one answer, if there is any.
func (u *udpBench) confirmed(s *streamSender) (got bool, err error) {
	in, head := u.in.at(0)
	r := u.s.recv(in, confirmSize)
	if r < 0 {
		return false, u.s.failure("recv")
	}
	if r == confirmSize && !u.drop() {
		s.confirm(head, u.Clock.Now())
	}
	return r > 0, nil
}

func (u *udpBench) swallow() error {
	out, answer := u.out.at(0)
	var turns spin
	for {
		n := u.s.recvBatch(u.in.heads, udpBatch)
		if n < 0 {
			return u.s.failure("recvmmsg")
		}
		confirm := false
		for i := range n {
			if _, head := u.in.at(i); !u.drop() {
				confirm = u.rcvr.frame(head) || confirm
			}
		}
		if confirm {
			u.rcvr.answer(answer)
			if u.s.send(out, confirmSize) < 0 {
				return u.s.failure("send")
			}
		}
		if n == 0 && turns.idle() && u.Pair.Spoken() {
			return nil
		}
	}
}
