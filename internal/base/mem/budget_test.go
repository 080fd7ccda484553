package mem

import (
	"errors"
	"strings"
	"testing"
)

func sample() Budget {
	return Budget{
		{Name: "FILL ring", Frames: 64, Why: "2 x RX ring", Knob: "Config.RxDepth"},
		{Name: "TX ring", Frames: 32, Why: "one per buffer", Knob: "Config.TxDepth"},
		{Name: "lent", Frames: 100, Why: "unexpected messages", Knob: "XWARP_TEST_LEND"},
	}
}

func TestBudget_fits(t *testing.T) {
	b := sample()
	if b.Frames() != 196 {
		t.Fatalf("sum %d", b.Frames())
	}
	if err := b.Check(196); err != nil {
		t.Error(err)
	}
	if err := (Budget)(nil).Check(0); err != nil {
		t.Error(err)
	}
}

// The error names the first term that does not fit and how to change that.
func TestBudget_namesTheTerm(t *testing.T) {
	for _, c := range []struct {
		room int
		name string
		left int
		knob string
	}{
		{195, "lent", 99, "XWARP_TEST_LEND"},
		{96, "lent", 0, "XWARP_TEST_LEND"},
		{95, "TX ring", 31, "Config.TxDepth"},
		{0, "FILL ring", 0, "Config.RxDepth"},
	} {
		err := sample().Check(c.room)
		if e, ok := errors.AsType[*BudgetError](err); !ok || !errors.Is(err, ErrNoMemory) || e.Term.Name != c.name || e.Left != c.left || e.Need != 196 {
			t.Errorf("room for %d: %v", c.room, err)
			continue
		}
		for _, want := range []string{c.name, c.knob, "196"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not mention %s", err, want)
			}
		}
	}
}

func TestBudget_negativeTerm(t *testing.T) {
	b := Budget{{Name: "credits", Frames: -5, Why: "peers x window", Knob: "Config.Window"}}
	if err := b.Check(100); err == nil || !strings.Contains(err.Error(), "Config.Window") {
		t.Errorf("a negative term: %v", err)
	}
}

func TestBudget_String(t *testing.T) {
	s := sample().String()
	for _, want := range []string{"FILL ring", "2 x RX ring", "XWARP_TEST_LEND", "196  in all: 784 KiB"} {
		if !strings.Contains(s, want) {
			t.Errorf("table lacks %q:\n%s", want, s)
		}
	}
}
