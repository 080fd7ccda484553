package p2p

import (
	"math/bits"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// message is a message that came before its receive.
type message struct {
	entry  match.Entry[message]
	next   *message // in the pool
	kind   kind     // how it came
	id     uint32   // RTS and sync: the sender's request; large message to the own rank: which use of it
	size   uint64   // bytes of the whole message
	offer  offer    // RTS: where it lies, if a neighbour has it
	data   []byte   // eager and head: what was sent, in memory of the pool
	filled int      // head: how much of it has come
	self   *Request // large message to the own rank: the send
}

// messagePool keeps messages and their memory for reuse, a list for each power
// of two, so that a program in its steady state allocates nothing. Its size is
// what the unexpected messages, and copies of those that MPI_Bsend could not send at once, took at their worst.
type messagePool struct {
	idle [32]*message
}

// smallest is the least memory of a message.
const smallest = 64

func class(n int) int {
	if n == 0 {
		return 0
	}
	return bits.Len(uint(max(n, smallest) - 1))
}

// get returns a message with n bytes of data. n is an eager limit, or copyMax, at most.
func (p *messagePool) get(n int) *message {
	c := class(n)
	m := p.idle[c]
	if m == nil {
		m = &message{}
		m.entry.Owner = m
		if n > 0 {
			m.data = make([]byte, 1<<c)
		}
	} else {
		p.idle[c] = m.next
		m.next = nil
	}
	m.data = m.data[:n]
	return m
}

func (p *messagePool) put(m *message) {
	c := class(len(m.data))
	m.self = nil
	m.next, p.idle[c] = p.idle[c], m
}
