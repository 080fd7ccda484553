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
