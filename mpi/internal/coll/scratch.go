package coll

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// scratch is memory for schedules, which is kept from one to the next: to touch 10 MiB for the first time
// takes longer than to reduce them. It is in pieces, so that what one schedule has touched is there for the next one,
// however much it has asked for.
type scratch struct {
	pieces []piece
	grown  bool // by this schedule
	idle   int  // how many schedules in a row have needed little of much
}

type piece struct {
	memory *mem.Words
	words  []uint64 // of memory
	taken  int
}

// Of more than scratchKept words (8 MiB) scratch memory is given up when scratchIdle schedules in a row have
// not needed a quarter of it. A piece has pieceLeast words at least.
const (
	scratchKept = 1 << 20
	scratchIdle = 64
	pieceLeast  = 64
)

// take returns n words.
func (m *scratch) take(n int) []uint64 {
	for i := range m.pieces {
		if p := &m.pieces[i]; len(p.words)-p.taken >= n {
			return p.take(n)
		}
	}
	m.grown = true
	memory := mem.NewWords(max(n, pieceLeast))
	m.pieces = append(m.pieces, piece{memory: memory, words: memory.Slice()})
	return m.pieces[len(m.pieces)-1].take(n)
}

func (p *piece) take(n int) []uint64 {
	p.taken += n
	return p.words[p.taken-n : p.taken : p.taken]
}

// reset makes all of it free for the next schedule. Where one has made new pieces those that it has not used
// are too short for such schedules.
func (m *scratch) reset() {
	have, need := 0, 0
	for i := range m.pieces {
		have += len(m.pieces[i].words)
		need += m.pieces[i].taken
	}
	switch {
	case m.grown:
		m.pieces = slices.DeleteFunc(m.pieces, func(p piece) bool { return p.taken == 0 })
		m.idle = 0
	case have <= scratchKept || need > have/4:
		m.idle = 0
	case m.idle < scratchIdle:
		m.idle++
	default:
		m.pieces, m.idle = nil, 0
	}
	for i := range m.pieces {
		m.pieces[i].taken = 0
	}
	m.grown = false
}

// leave gives all of it up to messages that are still under way, and may come at any time.
func (m *scratch) leave() {
	for _, p := range m.pieces {
		p.memory.Keep()
	}
	m.pieces = nil
}
