package coll

import (
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Block is what one message of a schedule has: bytes that lie side by side, or what a
// cursor moves over, which messages take from memory and put there without a copy
// between. Algorithms that pass on just what they were given work on blocks; those
// that cut, join or reduce want bytes.
type Block struct {
	b      []byte
	cursor int32 // 1 + its place in the schedule; 0: b
}

// Flat is the block of bytes that lie side by side.
func Flat(b []byte) Block { return Block{b: b} }

// Over returns the block of the bytes before a cursor.
func (s *Schedule) Over(cur dtype.Cursor) Block {
	s.cursors = append(s.cursors, cur)
	return Block{cursor: int32(len(s.cursors))}
}

// Len returns how many bytes a block of this schedule has.
func (s *Schedule) Len(b Block) int {
	if b.cursor == 0 {
		return len(b.b)
	}
	return s.cursors[b.cursor-1].Rest()
}

// Parts returns room for a list of n blocks that is the schedule's.
func (s *Schedule) Parts(n int) []Block {
	at := len(s.parts)
	s.parts = slices.Grow(s.parts, n)[:at+n]
	fresh := s.parts[at : at+n : at+n]
	clear(fresh)
	return fresh
}

// EvenParts returns the n equal blocks that b consists of.
func (s *Schedule) EvenParts(b []byte, n int) []Block {
	list, each := s.Parts(n), len(b)/n
	for i := range list {
		list[i].b = b[i*each : (i+1)*each]
	}
	return list
}

func (s *Schedule) sendBlock(t Team, to int, b Block) {
	if b.cursor == 0 {
		s.send(t, to, b.b)
		return
	}
	s.steps = append(s.steps, step{what: sendOver, peer: t.rank(to), other: b.cursor - 1})
}

func (s *Schedule) recvBlock(t Team, from int, b Block) {
	if b.cursor == 0 {
		s.recv(t, from, b.b)
		return
	}
	s.steps = append(s.steps, step{what: recvOver, peer: t.rank(from), other: b.cursor - 1})
}

// copyBlock copies src to dst, which is as long.
func (s *Schedule) copyBlock(dst, src Block) {
	switch {
	case dst.cursor == 0 && src.cursor == 0:
		s.Copy(dst.b, src.b)
	case s.Len(src) > 0:
		s.steps = append(s.steps, step{what: copyTyped, peer: s.place(src), other: s.place(dst)})
	}
}

// place returns where a cursor over the block is.
func (s *Schedule) place(b Block) int32 {
	if b.cursor == 0 {
		cur, err := dtype.Byte.Cursor(b.b, 0, len(b.b))
		if err != nil {
			panic("coll: " + err.Error()) // bytes are always inside themselves
		}
		b = s.Over(cur)
	}
	return b.cursor - 1
}
