package coll

import (
	"bytes"
	"testing"
)

func TestSchedule_errorEndsTheRound(t *testing.T) {
	var a, b Schedule
	team := Team{Me: 0, Size: 2}
	a.send(team, 1, []byte{1, 2, 3})
	a.fence()
	in, later := make([]byte, 2), make([]byte, 1)
	team.Me = 1
	b.recv(team, 0, in)
	b.fence()
	b.Copy(later, []byte{9})
	b.fence()
	err := newNet(1).run([]*Schedule{&a, &b})
	if err == nil || b.Err() == nil || !bytes.Equal(later, []byte{0}) {
		t.Errorf("error %v, %v; it went on: %v", err, b.Err(), later)
	}
}

func TestAllocs_Schedule(t *testing.T) {
	var s Schedule
	v, network := words(64), newNet(1)
	var transport Transport = card{network, 0}
	run := func() {
		s.Reset()
		s.Reduction(xor{}, 4, true)
		s.Copy(s.Temp(64), v)
		for range 5 {
			s.combine(v, s.Temp(64), true)
			s.fence()
		}
		s.Even(v, 4)
		if !s.Advance(transport) {
			t.Fatal("it waits")
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations to write and run a schedule", n)
	}
}

// Long scratch memory is kept while it is used: its pages would be touched for the first time by each call.
func TestSchedule_keepsScratch(t *testing.T) {
	const long = 3 * scratchKept * 8
	var s Schedule
	s.Temp(long)
	s.Reset()
	kept := &s.Temp(long)[0]
	for range scratchIdle {
		s.Reset()
		s.Temp(64)
	}
	s.Reset()
	s.Temp(long / 2)
	s.Reset()
	if again := &s.Temp(long)[0]; again != kept {
		t.Error("scratch memory that was used is not the same any more")
	}
	for range scratchIdle + 2 {
		s.Reset()
		s.Temp(64)
	}
	if s.Reset(); len(s.scratch) != 64/8 && s.scratch != nil {
		t.Errorf("%d words are kept that are no more used", len(s.scratch))
	}
}
