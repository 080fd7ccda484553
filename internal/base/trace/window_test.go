package trace

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestRecord_windows(t *testing.T) {
	b, r := newRecord(t, 0, 3)
	want := []WindowCount{
		{Name: "table", Context: 6, Ranks: 4, Fences: 1, Starts: 2, Posts: 3, Locks: 4, LockAlls: 5, WaitedNanoseconds: 60, WaitedMost: 50, WaitedFor: 2},
		{Name: strings.Repeat("x", nameLen), Context: 1<<16 - 2, Ranks: 1 << 24, WaitedFor: -1},
	}
	r.SetWindow(0, want[0])
	r.SetDone(0, 0, 0, 0, 0, 0)
	r.SetDone(0, 1, 2, 7, 8, 9)
	r.SetDone(0, MaxServed-1, 3, 1, 0, 0)
	r.SetDone(0, MaxServed, 4, 1, 1, 1) // no room
	long := want[1]
	long.Name += "y"
	r.SetWindow(MaxWindows-1, long)
	want[0].Served = []Done{{By: "target", Puts: 7, Gets: 8, Accumulates: 9, who: 2}, {By: "ghost 0", Puts: 1, who: 3}}
	if got := read(t, b).Windows; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// Ranks are summed up, but for whom each has waited.
func TestSummarize_windows(t *testing.T) {
	window := func(waited uint64, who int, served ...Done) []WindowCount {
		return []WindowCount{{Name: "table", Context: 6, Ranks: 2, Locks: 1, WaitedNanoseconds: waited, WaitedMost: waited, WaitedFor: who, Served: served}}
	}
	s := Summarize([]*Report{
		{Rank: 0, Windows: window(3000, 1, Done{By: "target", Puts: 1})},
		{Rank: 1, Windows: window(0, -1, Done{By: "target", Puts: 2}, Done{By: "ghost 1", Gets: 3})},
	}, 2)
	want := []WindowCount{{
		Name: "table", Context: 6, Ranks: 2, Locks: 2, WaitedNanoseconds: 3000, WaitedMost: 3000, WaitedFor: -1,
		Served: []Done{{By: "target", Puts: 3}, {By: "ghost 1", Gets: 3}},
	}}
	if !reflect.DeepEqual(s.Windows, want) {
		t.Errorf("got %+v\nwant %+v", s.Windows, want)
	}
	var text bytes.Buffer
	if err := s.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, "ghost 1") || !strings.Contains(got, "rank 0 has waited 3µs in window table, of that 3µs for its rank 1\n") || strings.Contains(got, "rank 1 has waited") {
		t.Errorf("table\n%s", got)
	}
}
