package arq

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// newSpread returns a sender on two networks, the first of which is in use, that knows
// both: a round trip takes 10 us on the first and far on the second.
func newSpread(t *testing.T, far mono.Duration) *script {
	s := newScript(t)
	s.pass(mono.Second)
	s.snd.SetNetworks(0, 0b11)
	for via, d := range []mono.Duration{10 * mono.Microsecond, far} {
		s.take(via, 1)
		s.pass(d)
		s.arrive(via)
		s.ack()
	}
	if s.snd.InFlight() != 0 || s.snd.network(1).rtt.smoothed != far {
		t.Fatalf("%d in flight, round trip %v on the second network", s.snd.InFlight(), s.snd.network(1).rtt.smoothed)
	}
	return s
}

// take sends n units on a network.
func (s *script) take(via, n int) {
	s.Helper()
	s.snd.via = unitState(via) << viaShift
	s.send(n)
	s.snd.Gather()
}

func TestSpread_slowerNetworkIsNoLoss(t *testing.T) {
	s := newSpread(t, mono.Millisecond)
	s.take(1, 1) // unit 2
	s.pass(mono.Microsecond)
	for i := range 20 {
		s.take(0, 1)
		s.pass(10 * mono.Microsecond)
		s.arrive(3 + i)
		s.ack()
		s.resends()
	}
	s.pass(780 * mono.Microsecond)
	s.arrive(2)
	s.ack()
	if s.snd.InFlight() != 0 || s.snd.TimedOut() != 0 {
		t.Errorf("%d in flight", s.snd.InFlight())
	}
	if a, b := s.snd.network(0).rtt.lowest, s.snd.network(1).rtt.lowest; a != 10*mono.Microsecond || b < 900*mono.Microsecond {
		t.Errorf("shortest round trips %v and %v", a, b)
	}
}

func TestSpread_lossStaysWhereItWas(t *testing.T) {
	s := newSpread(t, 10*mono.Microsecond)
	first, second := s.snd.network(0), s.snd.network(1)
	first.latest, second.latest = mono.Millisecond, mono.Millisecond // more than bad luck
	a, b := first.cwnd, second.cwnd
	s.take(1, 1) // unit 2, lost
	s.pass(mono.Microsecond)
	s.take(0, 1)
	s.pass(50 * mono.Microsecond)
	s.take(1, 1)
	s.pass(10 * mono.Microsecond)
	s.arrive(3, 4)
	s.ack()
	if got := s.snd.Via(start.Add(2)); got != 0 {
		t.Errorf("what was lost on network 1 is sent again on %d", got)
	}
	s.resends(2)
	if first.cwnd != a || second.cwnd >= b {
		t.Errorf("after a loss on the second network the windows are %d and %d, before they were %d and %d", first.cwnd, second.cwnd, a, b)
	}
	s.pass(10 * mono.Microsecond)
	s.arrive(2)
	s.ack()
	if s.snd.InFlight() != 0 || first.pipe != 0 || second.pipe != 0 {
		t.Errorf("%d in flight, %d and %d bytes on the wire", s.snd.InFlight(), first.pipe, second.pipe)
	}
}

func TestSpread_deadNetwork(t *testing.T) {
	s := newSpread(t, 10*mono.Microsecond)
	s.take(1, 3) // units 2 to 4, lost
	for range 3 {
		s.take(0, 1)
	}
	s.pass(10 * mono.Microsecond)
	s.arrive(5, 6, 7)
	s.ack()
	s.resends()
	window := s.snd.cwnd
	s.timer()
	if s.snd.Via(start.Add(4)) != 1 {
		t.Error("a probe does not go where it is to find something out")
	}
	s.resends(4)
	s.timer()
	if got := s.snd.TimedOut(); got != 0b10 {
		t.Errorf("networks %b had a time-out", got)
	}
	s.snd.SetNetworks(0, 0b01)
	s.resends(2, 3, 4)
	if s.snd.pipe != 3*unitOverhead || s.snd.network(1).pipe != 0 || s.snd.cwnd != window {
		t.Errorf("%d and %d bytes on the wire, window %d, was %d", s.snd.pipe, s.snd.network(1).pipe, s.snd.cwnd, window)
	}
	s.pass(10 * mono.Microsecond)
	s.arrive(2, 3, 4)
	s.ack()
	if s.snd.InFlight() != 0 || s.snd.TimeOuts() != 0 || s.snd.Deadline() != mono.Never {
		t.Errorf("%d in flight, %d time-outs, timer %v", s.snd.InFlight(), s.snd.TimeOuts(), s.snd.Deadline())
	}
}

// spreads returns which network Spread chooses.
func (s *script) spreads() int {
	s.snd.Spread()
	defer s.snd.Gather()
	return int(s.snd.via >> viaShift)
}

func TestSpread_chooses(t *testing.T) {
	s := newSpread(t, 10*mono.Microsecond)
	if s.spreads() != 0 || s.snd.Spreads() {
		t.Error("of two that are empty it is not the first")
	}
	s.take(0, 20)
	if s.spreads() != 1 {
		t.Error("not the one on which nothing is under way")
	}
	s.snd.SetNetworks(0, 0b01)
	if s.spreads() != 0 {
		t.Error("one that is dead")
	}
	s.snd.SetNetworks(0, 0b11)
	first, second := s.snd.network(0), s.snd.network(1)
	first.cwnd = 1
	if s.snd.CanPush(0) || !s.snd.CanSpread() || s.spreads() != 1 {
		t.Error("not the one that has room")
	}
	first.cwnd, first.pipe = 10*first.segment, 10*first.segment
	second.empty, second.latest = 100*mono.Millisecond, 100*mono.Millisecond
	if s.snd.CanSpread() {
		t.Error("one that is so slow that the other would stand still")
	}
	second.empty, second.latest = 15*mono.Microsecond, 15*mono.Microsecond
	if !s.snd.CanSpread() {
		t.Error("not one that is a little slower")
	}
}

func TestAllocs_spread(t *testing.T) {
	s := newSpread(t, 10*mono.Microsecond)
	at := 2
	if n := testing.AllocsPerRun(100, func() {
		for range 8 {
			s.snd.Spread()
			s.send(1)
			s.snd.Gather()
		}
		s.pass(10 * mono.Microsecond)
		for range 8 {
			s.rcv.Mark(start.Add(int32(at)))
			at++
		}
		s.ack()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
