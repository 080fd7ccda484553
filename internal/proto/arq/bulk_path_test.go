package arq

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// TestBurst_choices walks through a burst, datagram by datagram.
func TestBurst_choices(t *testing.T) {
	var s Sender
	s.Init(NewShared(Config{}, 256), 1)
	w := &BulkPath{}
	w.Ask(0)
	w.Answered()
	var r Burst
	for i, c := range []struct {
		whole, long bool
		want        PathChoice
	}{
		{true, false, FirstPath},
		{false, true, FirstPath},
		{false, true, FirstPath},
		{false, false, FirstPath}, // does not count
		{false, true, FirstPath},
		{false, true, LastFirst},
		{false, true, SecondPath},
		{false, false, SecondPath}, // overtakes nothing
		{true, true, FirstPath},
		{false, true, FirstPath},
	} {
		if got := r.Next(0, w, &s, c.whole, c.long); got != c.want {
			t.Fatalf("datagram %d goes %d, want %d", i, got, c.want)
		}
	}
}

// enter makes r a burst that has become one for the second path.
func enter(r *Burst, w *BulkPath, s *Sender) PathChoice {
	for range BurstAfter {
		r.Next(0, w, s, false, true)
	}
	return r.Next(0, w, s, false, true)
}

func TestBurst_unknownPath(t *testing.T) {
	var s Sender
	s.Init(NewShared(Config{}, 256), 1)
	var r Burst
	w := &BulkPath{}
	if got := enter(&r, w, &s); got != FirstPath || !r.Large() || r.Second() || !w.Wanting(0) {
		t.Fatalf("goes %d; large %v, wanting %v", got, r.Large(), w.Wanting(0))
	}
	w.Answered() // to nothing that was asked
	if w.found {
		t.Error("an answer counts that nobody has asked for")
	}
	w.Ask(0)
	if w.Answered(); r.Next(0, w, &s, false, true) != SecondPath || w.Wanting(0) {
		t.Error("the way was found and is not taken")
	}
}

// TestBulkPath_pauses: after a time-out, and after bursts of which much was lost, the path has
// to be found anew, later each time; one burst without loss forgives all.
func TestBulkPath_pauses(t *testing.T) {
	w := &BulkPath{}
	now := mono.Time(0)
	for i := range 30 {
		if !w.Wanting(now) {
			t.Fatalf("question %d is not due", i)
		}
		w.Ask(now)
		pause := min(askFirst<<min(i, 20), askMost)
		if w.Wanting(now.Add(pause - 1)) {
			t.Fatalf("question %d comes too soon", i+1)
		}
		now = now.Add(pause)
	}
	var s Sender
	s.Init(NewShared(Config{}, 256), 1)
	for _, c := range []struct {
		sent, resent int
		found        bool
		asks         uint8
	}{{10, 6, false, 30}, {10, 5, true, 30}, {10, 0, true, 0}} {
		w.Ask(now)
		w.Answered()
		w.asks = 30
		var r Burst
		enter(&r, w, &s)
		w.Sent(c.sent)
		w.Resent(c.resent)
		r.Next(now, w, &s, true, false)
		if w.found != c.found || w.asks != c.asks || !r.Idle() {
			t.Errorf("%d of %d sent again: found %v, asked %d times", c.resent, c.sent, w.found, w.asks)
		}
	}
	var r Burst
	enter(&r, w, &s)
	s.loss.backoff = 1
	if got := r.Next(now, w, &s, false, true); got != FirstPath || w.found {
		t.Errorf("after a time-out data goes %d", got)
	}
}
