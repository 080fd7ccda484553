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
// end that is away holds nothing up. A channel has room for two such joint copies, so that one begins while
// the last piece of the other is being pushed. Each has, from 256 and from 384 on:
//
//	0     word: flags (4 bits), turn (12), pieces that were pushed (16), and taken from the back (16) and from the front (16)
//	64    requests: the sender's, and the receiver's
//	72    addr: of the receiver's memory
//	80    size: of the message in bytes
//
// Only the receiver begins one, when nothing is being pushed any more of the one before. What is at 64 is of the present turn:
// a sender that takes a piece learns from the turn whether what it has read still holds.
const (
	jointAt   = 256
	jointSize = 128
	joints    = 2

	jointFront  = 1 // in the word
	jointBack   = 1 << 16
	jointPushed = 1 << 32
	jointTurn   = 1 << 48
	jointOpen   = 1 << 60
	jointAwaits = 1 << 61 // the receiver has copied its pieces, and is to be told when the rest is there
	jointFailed = 1 << 62 // a piece could not be pushed

	jointCount = 1<<16 - 1 // of what is counted
	jointTurns = 0xfff * jointTurn

	pieceLeast = 128 << 10 // bytes
	pieceMost  = 512 << 10

	// JointLeast is the length in bytes from which on both ends copy. What is pushed is in the cache of the sender's
	// core, from where a receiver that uses it at once has to fetch it: for less than this that takes longer than
	// the copy.
	JointLeast = 512 << 10
)

// joint is a joint copy, in control memory.
type joint struct {
	word, requests, addr, size *atomic.Uint64
}

func (r *ring) joint(i int) joint {
	at := uint64(jointAt + i*jointSize)
	return joint{word(r.control, at), word(r.control, at+64), word(r.control, at+72), word(r.control, at+80)}
}

// pushing reports whether pieces were taken from the back that are not there yet.
func pushing(w uint64) bool { return w/jointBack&jointCount != w/jointPushed&jointCount }

// Piece is a part of a message: N bytes from an offset on.
type Piece struct{ Off, N uint64 }

// pieceOf returns how long the pieces of a message are. Each takes a system call, and an end that has nothing left to do
// waits for half a piece on average.
func pieceOf(size uint64) uint64 { return min(max(size/8, pieceLeast), pieceMost) }

// take takes the next piece from the front or from the back of a message of size bytes. w is what the caller
// has read of the word. None, so N is 0, where all are taken, or what was read is not meant any more.
func (j joint) take(w, size, from uint64) Piece {
	each := pieceOf(size)
	all := (size + each - 1) / each
	for turn := w & (jointTurns | jointOpen); w&(jointTurns|jointOpen) == turn; w = j.word.Load() {
		front, back := w/jointFront&jointCount, w/jointBack&jointCount
		if front+back >= all {
			break
		}
		if j.word.CompareAndSwap(w, w+from) {
			at := front
			if from == jointBack {
				at = all - 1 - back
			}
			return Piece{at * each, min(each, size-at*each)}
		}
	}
	return Piece{}
}

// Join lets the neighbour push pieces of what it sends, size bytes for its request, to addr in this process. The memory is
// lent to it until Settle returns Whole or Failed, or Leave true. It returns the number of the joint copy, from 1 on, or 0
// where there can be none now. The calls for it are Front, until there is no piece, and Settle.
func (n *Channel) Join(request, receive uint32, addr, size uint64) int {
	if n.in == nil || size < JointLeast || size > jointCount*pieceMost {
		return 0
	}
	for i := range joints {
		s := n.in.joint(i)
		w := s.word.Load()
		if w&jointOpen != 0 || pushing(w) {
			continue
		}
		s.requests.Store(uint64(request)<<32 | uint64(receive))
		s.addr.Store(addr)
		s.size.Store(size)
		s.word.Store(jointOpen | (w+jointTurn)&jointTurns)
		return i + 1
	}
	return 0
}

// Front takes the next piece of a joint copy, of a message of size bytes, for the caller to pull.
func (n *Channel) Front(number int, size uint64) Piece {
	s := n.in.joint(number - 1)
	return s.take(s.word.Load(), size, jointFront)
}

// Settled is how a joint copy has ended.
type Settled uint8

const (
	Whole   Settled = iota // the message is there
	Awaited                // not yet: the neighbour will tell, and then Settle is to be called again
	Failed                 // the neighbour cannot push: some of it is missing
)

// Settle ends a joint copy of which all pieces are taken, and the caller's are copied.
func (n *Channel) Settle(number int) Settled {
	s := n.in.joint(number - 1)
	for {
		w := s.word.Load()
		next, how := w&^(jointOpen|jointAwaits), Whole
		switch {
		case pushing(w):
			next, how = w|jointAwaits, Awaited
		case w&jointFailed != 0:
			how = Failed
		}
		if s.word.CompareAndSwap(w, next) {
			return how
		}
	}
}

// Leave ends a joint copy at any time. false means that the neighbour is pushing a piece: call it again.
func (n *Channel) Leave(number int) bool {
	w := n.in.joint(number - 1).word.And(^uint64(jointOpen | jointAwaits))
	return !pushing(w) || n.in.alive.gone.Load()
}

// Joint is a message that the neighbour receives, and of which this process may push pieces.
type Joint struct {
	Request, Receive uint32 // of this process, and of the neighbour
	Size             uint64 // bytes

	joint joint
	addr  uint64
	word  uint64
}

// Joint returns one of which there may be pieces left; false: there is none.
func (n *Channel) Joint() (m Joint, ok bool) {
	if n.out == nil || n.out.stays || n.in == nil || n.in.pid == 0 {
		return m, false
	}
	for i := range joints {
		s := n.out.joint(i)
		w := s.word.Load()
		if w&(jointOpen|jointAwaits) != jointOpen {
			continue
		}
		requests := s.requests.Load()
		return Joint{uint32(requests >> 32), uint32(requests), s.size.Load(), s, s.addr.Load(), w}, true
	}
	return m, false
}

// Push copies the next piece of data, which is the whole message, to the neighbour. It returns how many bytes that has, and
// whether the neighbour is to be told that all are there.
func (n *Channel) Push(m *Joint, data []byte) (pushed int, tell bool) {
	p := m.joint.take(m.word, m.Size, jointBack)
	if p.N == 0 {
		return 0, false
	}
	if n.channels.pull.write(n.in.pid, data[p.Off:][:p.N], m.addr+p.Off) != nil {
		n.out.stays = true
		m.joint.word.Or(jointFailed)
	}
	w := m.joint.word.Add(jointPushed)
	return int(p.N), w&jointAwaits != 0 && !pushing(w)
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
