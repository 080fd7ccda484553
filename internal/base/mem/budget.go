package mem

import (
	"fmt"
	"strings"
)

// Term is one consumer's share of the frames of a pool.
type Term struct {
	Name   string // of the consumer: "FILL ring"
	Frames int    // most frames that it ever holds
	Why    string // where the number comes from: "2 x RX ring"
	Knob   string // what makes it smaller: "Config.RxDepth"
}

// Budget is the buffer budget of a device as code: one term for each consumer
// that can hold frames. While their sum fits the pool, no consumer can starve
// another for ever. It is checked once, when the device opens.
//
// Put the terms that others build on first: the error names the first one that
// does not fit.
type Budget []Term

// BudgetError says which consumer does not get its frames. It wraps
// [ErrNoMemory].
type BudgetError struct {
	Term Term
	Left int // frames that the terms before leave
	Room int // frames in all
	Need int // frames of all terms
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("buffer budget: %s needs %d frames (%s), %d of %d are left: make %s smaller, or provide %d frames in all",
		e.Term.Name, e.Term.Frames, e.Term.Why, e.Left, e.Room, e.Term.Knob, e.Need)
}

// Unwrap returns ErrNoMemory.
func (e *BudgetError) Unwrap() error { return ErrNoMemory }

// Frames returns the sum of all terms.
func (b Budget) Frames() int {
	sum := 0
	for _, t := range b {
		sum += t.Frames
	}
	return sum
}

// Check returns a [BudgetError] unless room frames are enough for all terms.
func (b Budget) Check(room int) error {
	left := room
	for _, t := range b {
		if t.Frames < 0 {
			return fmt.Errorf("buffer budget: %s has %d frames (%s): check %s", t.Name, t.Frames, t.Why, t.Knob)
		}
		if t.Frames > left {
			return &BudgetError{Term: t, Left: left, Room: room, Need: b.Frames()}
		}
		left -= t.Frames
	}
	return nil
}

// String returns the budget as a table, for people.
func (b Budget) String() string {
	var s strings.Builder
	for _, t := range b {
		fmt.Fprintf(&s, "%7d  %-20s %s (%s)\n", t.Frames, t.Name, t.Why, t.Knob)
	}
	fmt.Fprintf(&s, "%7d  in all: %d KiB\n", b.Frames(), b.Frames()*(FrameSize>>10))
	return s.String()
}
