package adapt

import (
	"slices"
	"testing"
)

// What ranks of a host want, and whether they do anything, is what others hear an interval later.
func TestExchange(t *testing.T) {
	here, there := []int32{1, 3}, []int32{0, 2}
	a, b := NewExchange(4, 2), NewExchange(4, 2) // a is of the host of 1 and 3
	type rank struct {
		want  State
		calls uint32
	}
	for i, c := range []struct {
		says [2]rank
		off  []int32 // as both have it
	}{
		{[2]rank{}, nil},                               // nobody has said anything
		{[2]rank{{Off, 2}, {On, 4}}, []int32{1}},       // between two calls
		{[2]rank{{Off, 6}, {Off, 7}}, []int32{1, 3}},   // the second one in a call
		{[2]rank{{Off, 6}, {Off, 7}}, []int32{3}},      // the first one computes, and the second one waits in the call
		{[2]rank{{Off, 7}, {Off, 7}}, []int32{1, 3}},   // the first one has come back
		{[2]rank{{Probe, 9}, {Off, 7}}, nil},           // and asks for a probe, of all
		{[2]rank{{On, 11}, {Off, 9}}, nil},             // which lasts for another interval
		{[2]rank{{Off, 13}, {Off, 11}}, []int32{1, 3}}, // and no longer
		{[2]rank{{Probe, 15}, {Off, 11}}, nil},         // another one
		{[2]rank{{Probe, 17}, {Off, 11}}, nil},         // is the same as long as the rank has not seen that it has begun
		{[2]rank{{Probe, 19}, {Off, 11}}, []int32{3}},
	} {
		a.Begin()
		b.Begin()
		for i, rank := range here {
			a.Look(rank, i, c.says[i].want, c.says[i].calls)
		}
		if !b.Hear(here, a.Say(nil, here)) || !a.Hear(there, b.Say(nil, there)) {
			t.Fatal("what one says the other one does not understand")
		}
		for _, x := range []*Exchange{a, b} {
			for rank := range int32(4) {
				if x.On(rank) == slices.Contains(c.off, rank) {
					t.Errorf("interval %d: rank %d is On: %v, want %v to be Off", i, rank, x.On(rank), c.off)
				}
			}
		}
	}
	if a.Probes() != 2 || b.Probes() != 2 {
		t.Errorf("%d and %d probes, want 2", a.Probes(), b.Probes())
	}
	if b.Hear(here, []byte{0, byte(Probe) + 1}) || b.Hear(here, make([]byte, 3)) {
		t.Error("it understands what no ghost says")
	}
}

// A message that is not sent, because the last one was not answered yet, loses no probe.
func TestExchange_missesAMessage(t *testing.T) {
	here := []int32{1}
	a, b := NewExchange(2, 1), NewExchange(2, 1)
	for i, c := range []struct {
		says   State
		missed bool
		probes uint32 // that the other one knows of
	}{{Off, false, 0}, {Probe, true, 0}, {On, false, 1}, {Off, false, 1}, {Off, false, 1}, {Probe, false, 2}, {On, true, 2}, {Off, false, 2}} {
		a.Begin()
		b.Begin()
		a.Look(1, 0, c.says, uint32(2*i+1))
		if said := a.Say(nil, here); !c.missed && !b.Hear(here, said) {
			t.Fatal("what one says the other one does not understand")
		}
		if got := b.Probes(); got != c.probes {
			t.Errorf("interval %d: %d probes, want %d", i, got, c.probes)
		}
	}
	if b.On(1) {
		t.Error("the last probe does not end")
	}
}
