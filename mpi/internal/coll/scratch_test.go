package coll

import (
	"errors"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// What a schedule has touched is there for the next one: the second call of a program would touch as many pages for
// the first time as the first.
func TestScratch_secondCall(t *testing.T) {
	var s Schedule
	var first [3]*byte
	for call := range 3 {
		s.Reset()
		for i, n := range []int{64, 4 << 20, 1 << 20} {
			b := s.Temp(n)
			if len(b) != n {
				t.Fatalf("%d bytes of scratch memory where %d were asked for", len(b), n)
			}
			if call == 0 {
				first[i] = &b[0]
			} else if &b[0] != first[i] {
				t.Errorf("call %d has another memory than the one before", call)
			}
		}
	}
}

// Long scratch memory is kept while it is used.
func TestScratch_kept(t *testing.T) {
	const long = 3 * scratchKept * 8
	var s Schedule
	used := &s.Temp(long)[0]
	for range scratchIdle {
		s.Reset()
		s.Temp(64)
	}
	s.Reset()
	s.Temp(long / 2)
	s.Reset()
	if again := &s.Temp(long)[0]; again != used {
		t.Error("scratch memory that was used is not the same any more")
	}
	for range scratchIdle + 2 {
		s.Reset()
		s.Temp(64)
	}
	if s.Reset(); kept(&s.scratch) > scratchKept {
		t.Errorf("%d words are kept that are no more used", kept(&s.scratch))
	}
}

// Schedules that need more and more do not keep what was too short.
func TestScratch_growing(t *testing.T) {
	var s Schedule
	for n := 1000; n < 100_000; n += 1000 {
		s.Temp(n)
		if s.Reset(); kept(&s.scratch)*8 > n+scratchAlign {
			t.Fatalf("%d words are kept of %d bytes", kept(&s.scratch), n)
		}
	}
}

// Memory is lent to one schedule at a time, if that needs much and has none, and not any more once a message may be written to it.
func TestScratch_lent(t *testing.T) {
	const long, short = lentLeast * 8, lentLeast * 4
	b := mem.BytesOf(make([]uint64, 3*lentLeast))
	m := NewMemory(b)
	s, other := Schedule{Memory: m}, Schedule{Memory: m}
	lent := func(s *Schedule, n int) bool {
		at := mem.AddressOf(s.Temp(n)) - mem.AddressOf(b)
		return at < uint64(len(b))
	}
	if lent(&s, short) || lent(&s, len(b)+1) {
		t.Error("memory was lent for what is short, or longer than it")
	}
	s.Reset()
	for range 2 {
		if s = (Schedule{Memory: m}); !lent(&s, long) || !lent(&s, short) || !lent(&s, long) {
			t.Error("a schedule has not what was there for it")
		}
		if lent(&other, long) {
			t.Error("two schedules have the same memory")
		}
		other = Schedule{Memory: m}
		s.Reset()
	}
	lent(&s, long)
	s.scratch.leave()
	s.Reset()
	if lent(&other, long) {
		t.Error("a schedule has memory that a message may be written to")
	}
}

type lostWaiter struct{ Waiter }

func (lostWaiter) Begin() error { return errors.New("a member is lost") }

// A receive that has not ended may write to memory of a schedule that has failed: no other one gets it.
func TestScratch_left(t *testing.T) {
	var s Schedule
	left := s.Temp(1 << 20)
	s.pending = append(s.pending, pending{})
	s.steps = append(s.steps, step{what: slotGive})
	s.slots = &Slots{waiter: lostWaiter{}}
	if done := s.Advance(nil); !done || s.Err() == nil {
		t.Fatalf("done %v, error %v", done, s.Err())
	}
	s.Reset()
	if again := s.Temp(1 << 20); &again[0] == &left[0] {
		t.Error("the next schedule has the memory that a message may be written to")
	}
}

func kept(m *scratch) (n int) {
	for i := range m.pieces {
		n += len(m.pieces[i].words)
	}
	return n
}
