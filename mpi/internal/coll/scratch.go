package coll

import (
	"slices"
	"sync/atomic"

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
	lent   *Memory  // that has lent it in place of memory; or nil
	words  []uint64 // of either
	taken  int
}

// Memory is what a process has for its schedules beforehand: it is touched already, which new memory is not. It is
// lent, whole, to one that needs much, until that is reset: calls come one after the other as a rule.
type Memory struct {
	words []uint64
	taken atomic.Bool
}

// NewMemory makes b such memory.
func NewMemory(b []byte) *Memory { return &Memory{words: mem.ScalarsOf[uint64](b)} }

// lend reports whether the memory is there, and has n words. It is the caller's then.
func (m *Memory) lend(n int) bool {
	return m != nil && n >= lentLeast && n <= len(m.words) && m.taken.CompareAndSwap(false, true)
}

// Of more than scratchKept words (8 MiB) scratch memory is given up when scratchIdle schedules in a row have
// not needed a quarter of it. A piece has pieceLeast words at least.
const (
	scratchKept = 1 << 20
	scratchIdle = 64
	pieceLeast  = 64

	// lentLeast is how many words are borrowed at least: a schedule that is kept for the next call needs less.
	lentLeast = 128 << 10 / 8
)

// take returns n words, which common may lend.
func (m *scratch) take(common *Memory, n int) []uint64 {
	for i := range m.pieces {
		if p := &m.pieces[i]; len(p.words)-p.taken >= n {
			return p.take(n)
		}
	}
	if common.lend(n) {
		m.pieces = append(m.pieces, piece{lent: common, words: common.words})
	} else {
		m.grown = true
		memory := mem.NewWords(max(n, pieceLeast))
		m.pieces = append(m.pieces, piece{memory: memory, words: memory.Slice()})
	}
	return m.pieces[len(m.pieces)-1].take(n)
}

func (p *piece) take(n int) []uint64 {
	p.taken += n
	return p.words[p.taken-n : p.taken : p.taken]
}

// reset makes all of it free for the next schedule. Where one has made new pieces those that it has not used
// are too short for such schedules.
func (m *scratch) reset() {
	m.pieces = slices.DeleteFunc(m.pieces, piece.back)
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

// back gives p back to the memory that has lent it, and reports whether one has.
func (p piece) back() bool {
	if p.lent != nil {
		p.lent.taken.Store(false)
	}
	return p.lent != nil
}

// leave gives all of it up to messages that are still under way, and may come at any time. What was lent is not given
// back any more.
func (m *scratch) leave() {
	for _, p := range m.pieces {
		if p.lent == nil {
			p.memory.Keep()
		}
	}
	m.pieces = nil
}
