package llp

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
)

// What was noted of an association that has ended since is nobody's: its Index may be
// another's by then.
func TestNextNoted_isNotOver(t *testing.T) {
	var s Assocs
	var a, b Assoc
	s.Init(arq.Config{}, 64, 0)
	for _, x := range []*Assoc{&a, &b} {
		s.Add(0, x, 1, 1, mono.Time(mono.Second))
		s.Note(x, 1, 64, 0)
	}
	s.Remove(&a)
	if got := s.NextNoted(); got != &b {
		t.Fatalf("%p is noted, want %p", got, &b)
	}
	if got := s.NextNoted(); got != nil {
		t.Errorf("%p is noted too", got)
	}
}

// An acknowledgement that was overtaken does not take back the one that is noted, and the
// data that came with it is acknowledged once that is applied.
func TestOnAck_overtaken(t *testing.T) {
	var s Assocs
	var a Assoc
	s.Init(arq.Config{}, 64, 0)
	s.Add(0, &a, 1, 1, mono.Time(mono.Second))
	for range 3 {
		a.Snd.Push(0, 0, 0, 8, true)
	}
	s.Arrived(0, &a)
	a.Rcv.Mark(1)
	s.Note(&a, 3, 64, 0)
	s.Note(&a, 2, 64, 0)
	s.ScheduleAck(0, &a, false, true)
	if a.Rcv.Deadline() != mono.Never {
		t.Error("the data is to be acknowledged before an answer could do it")
	}
	if from, to := s.OnAck(&a, 2, 64, 0, nil); from != 1 || to != 3 || a.Snd.InFlight() != 1 {
		t.Errorf("%d to %d have arrived, %d are in flight", from, to, a.Snd.InFlight())
	}
	if at := a.Rcv.Deadline(); at != mono.Time(s.Config().AckSoon) {
		t.Errorf("the data is acknowledged at %v", at)
	}
	if from, to := s.Apply(&a); from != to {
		t.Errorf("%d to %d have arrived twice", from, to)
	}
}
