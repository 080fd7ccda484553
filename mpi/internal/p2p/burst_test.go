package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

func TestBurstDetector(t *testing.T) {
	const alone = 0 // a message that nothing follows; else so many do, or share its batch
	for _, c := range []struct {
		name string
		past []int
		want bool
	}{
		{"nothing yet", nil, false},
		{"one window", []int{63}, false},
		{"windows", []int{63, 63}, true},
		{"many windows", []int{63, 63, 64, 64, 64}, true},
		{"few follow", []int{63, 63, windowLeast - 1}, false},
		{"a single one between windows", []int{63, alone, 63}, false},
		{"a single one after windows", []int{63, 63, alone}, false},
		{"windows again", []int{63, 63, alone, 63, 63}, true},
	} {
		var h burstDetector
		for _, n := range c.past {
			switch {
			case h.waits():
				h.flushed(max(n, 1))
			case n > 0:
				h.flushed(n)
			}
		}
		if got := h.waits(); got != c.want {
			t.Errorf("%s: the first message waits: %v, want %v", c.name, got, c.want)
		}
	}
}

// From the third window on the first message shares its Send with the others. Flush
// lets all of them go.
func TestBatch_windows(t *testing.T) {
	w := newCrew(t, 2, Config{})
	env := match.Envelope{Source: 0, Tag: 1}
	ep, buf := w.eps[0], make([]byte, 8)
	for round := range 5 {
		var sends []*Request
		for i := range windowLeast + 1 {
			sends = append(sends, ep.Isend(env, 1, buf))
			if waits := ep.net.batch.to != nil; i == 0 && waits != (round >= windowsLeast) {
				t.Errorf("window %d: the first message waits: %v", round, waits)
			}
		}
		if ep.Flush(); ep.net.batch.to != nil {
			t.Error("the batch is still open")
		}
		for range sends {
			r := w.eps[1].Irecv(env, buf)
			w.until(r.Done, 0, 1)
			if _, err := r.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range sends {
			if _, err := r.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.drain()
}
