package shm

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A long message is copied by both ends at once, where both have nothing else to do (Chakraborty, Bayatpour, Hashmi,
// Subramoni, Panda: Cooperative rendezvous protocols for improved performance and overlap, SC 2018): the receiver
// pulls pieces from the front, and the sender pushes pieces from the back with process_vm_writev(2), until
// they meet. Each takes a piece before it copies it, by a word in the ring's control memory that both may write, so an
// end that is away holds nothing up. A channel has room for two messages that are shared in that way, so that one begins while
// the last piece of the other is being pushed. Each has, from 256 and from 384 on:
//
//	0     word: flags (4 bits), turn (12), pieces that were pushed (16), and taken from the back (16) and from the front (16)
//	64    requests: the sender's, and the receiver's
//	72    addr: of the receiver's memory
//	80    size: of the message in bytes
//
// Only the receiver opens a share, when nothing is being pushed any more of the one before. What is at 64 is for the present turn;
// a sender that takes a piece knows by the turn that what it has read was meant still.
const (
	shareAt   = 256
	shareSize = 128
	shares    = 2

	shareFront  = 1 // in the word
	shareBack   = 1 << 16
	sharePushed = 1 << 32
	shareTurn   = 1 << 48
	shareOpen   = 1 << 60
	shareAwaits = 1 << 61 // the receiver has copied its pieces, and is to be told when the rest is there
	shareFailed = 1 << 62 // a piece could not be pushed

	shareCount = 1<<16 - 1 // of what is counted
	shareTurns = 0xfff * shareTurn

	pieceLeast = 64 << 10 // bytes
	pieceShort = 128 << 10
	pieceMost  = 512 << 10

	// ShareLeast is the length in bytes from which on messages are shared.
	ShareLeast = 2 * pieceLeast
)

// share is one of them, in control memory.
type share struct {
	word, requests, addr, size *atomic.Uint64
}

func (r *ring) share(i int) share {
	at := uint64(shareAt + i*shareSize)
	return share{word(r.control, at), word(r.control, at+64), word(r.control, at+72), word(r.control, at+80)}
}

// pushing reports whether pieces were taken from the back that are not there yet.
func pushing(w uint64) bool { return w/shareBack&shareCount != w/sharePushed&shareCount }

// Piece is a part of a message: N bytes from an offset on.
type Piece struct{ Off, N uint64 }

// pieceOf returns how long the pieces of a message are: half of it, and from 1 MiB on an eighth. A piece more takes a
// system call, and an end that has nothing left to do waits for half a piece on average.
func pieceOf(size uint64) uint64 {
	return max(min(max(size/2, pieceLeast), pieceShort), min(size/8, pieceMost))
}

// take takes the next piece from the front or from the back of a message of size bytes. w is what the caller
// has read of the word. None, so N is 0, where all are taken, or what was read is not meant any more.
func (s share) take(w, size, from uint64) Piece {
	each := pieceOf(size)
	all := (size + each - 1) / each
	for turn := w & (shareTurns | shareOpen); w&(shareTurns|shareOpen) == turn; w = s.word.Load() {
		front, back := w/shareFront&shareCount, w/shareBack&shareCount
		if front+back >= all {
			break
		}
		if s.word.CompareAndSwap(w, w+from) {
			at := front
			if from == shareBack {
				at = all - 1 - back
			}
			return Piece{at * each, min(each, size-at*each)}
		}
	}
	return Piece{}
}

// Share lets the neighbour push pieces of what it sends, size bytes for its request, to addr in this process. The memory is
// lent to it until Settle returns Whole or Failed, or Unshare true. It returns the number of the share, from 1 on, or 0
// where that is not possible now. The calls for it are Front, until there is no piece, and Settle.
func (n *Channel) Share(request, receive uint32, addr, size uint64) int {
	if n.in == nil || size < ShareLeast || size > shareCount*pieceMost {
		return 0
	}
	for i := range shares {
		s := n.in.share(i)
		w := s.word.Load()
		if w&shareOpen != 0 || pushing(w) {
			continue
		}
		s.requests.Store(uint64(request)<<32 | uint64(receive))
		s.addr.Store(addr)
		s.size.Store(size)
		s.word.Store(shareOpen | (w+shareTurn)&shareTurns)
		return i + 1
	}
	return 0
}

// Front takes the next piece of a share, of a message of size bytes, for the caller to pull.
func (n *Channel) Front(number int, size uint64) Piece {
	s := n.in.share(number - 1)
	return s.take(s.word.Load(), size, shareFront)
}

// Settled is how a share has ended.
type Settled uint8

const (
	Whole   Settled = iota // the message is there
	Awaited                // not yet: the neighbour will tell, and then Settle is to be called again
	Failed                 // the neighbour cannot push: some of it is missing
)

// Settle ends a share of which all pieces are taken, and the caller's are copied.
func (n *Channel) Settle(number int) Settled {
	s := n.in.share(number - 1)
	for {
		w := s.word.Load()
		next, how := w&^(shareOpen|shareAwaits), Whole
		switch {
		case pushing(w):
			next, how = w|shareAwaits, Awaited
		case w&shareFailed != 0:
			how = Failed
		}
		if s.word.CompareAndSwap(w, next) {
			return how
		}
	}
}

// Unshare ends a share at any time. false means that the neighbour is pushing a piece: call it again.
func (n *Channel) Unshare(number int) bool {
	w := n.in.share(number - 1).word.And(^uint64(shareOpen | shareAwaits))
	return !pushing(w) || n.in.alive.gone.Load()
}

// Shared is a message that the neighbour, which receives it, shares with this process.
type Shared struct {
	Request, Receive uint32 // of this process, and of the neighbour
	Size             uint64 // bytes

	share share
	addr  uint64
	word  uint64
}

// Shared returns a message that the neighbour shares and of which there may be pieces to push.
func (n *Channel) Shared() (m Shared, ok bool) {
	if n.out == nil || n.out.stays || n.in == nil || n.in.pid == 0 {
		return m, false
	}
	for i := range shares {
		s := n.out.share(i)
		w := s.word.Load()
		if w&(shareOpen|shareAwaits) != shareOpen {
			continue
		}
		requests := s.requests.Load()
		return Shared{uint32(requests >> 32), uint32(requests), s.size.Load(), s, s.addr.Load(), w}, true
	}
	return m, false
}

// Push copies the next piece of data, which is the whole message, to the neighbour. It returns how many bytes that has, and
// whether the neighbour is to be told that all are there.
func (n *Channel) Push(m *Shared, data []byte) (pushed int, tell bool) {
	p := m.share.take(m.word, m.Size, shareBack)
	if p.N == 0 {
		return 0, false
	}
	if n.channels.pull.write(n.in.pid, data[p.Off:][:p.N], m.addr+p.Off) != nil {
		n.out.stays = true
		m.share.word.Or(shareFailed)
	}
	w := m.share.word.Add(sharePushed)
	return int(p.N), w&shareAwaits != 0 && !pushing(w)
}

// write copies b into the memory of a process.
func (p *puller) write(pid int, b []byte, addr uint64) error {
	for len(b) > 0 {
		p.local[0].Base = &b[0]
		p.local[0].SetLen(len(b))
		p.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
		n, err := unix.ProcessVMWritev(pid, p.local[:1], p.remote[:1], 0)
		p.local[0].Base = nil
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return unix.EFAULT
		default: // cut short by a signal
			b, addr = b[n:], addr+uint64(n)
		}
	}
	return nil
}
