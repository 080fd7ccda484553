package coll

import (
	"bytes"
	"slices"
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

// stepper notes how much of a copy is done whenever messages are moved.
type stepper struct {
	card
	dst    []byte
	copied []int
}

func (t *stepper) Step() {
	t.copied = append(t.copied, bytes.Count(t.dst, []byte{1}))
	t.card.Step()
}

// A long copy is cut into pieces, between which messages of the round go on, if there are some.
func TestSchedule_copyMovesMessages(t *testing.T) {
	for name, c := range map[string]struct {
		n             int
		pending, wait bool
		want          []int
	}{
		"long":                        {3*copyPiece + 5, true, true, []int{copyPiece, 2 * copyPiece, 3 * copyPiece}},
		"short":                       {copyPiece, true, true, nil},
		"no messages":                 {3 * copyPiece, false, true, nil},
		"a caller that must not wait": {3 * copyPiece, true, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s Schedule
			src := bytes.Repeat([]byte{1}, c.n)
			transport := &stepper{card: card{newNet(1), 0}, dst: make([]byte, c.n)}
			card{transport.net, 1}.Isend([]byte{7}, 0, 0)
			if c.pending {
				s.recv(Team{Size: 2}, 1, make([]byte, 1))
			}
			s.Copy(transport.dst, src)
			s.fence()
			for done := false; !done; {
				if c.wait {
					done = s.Run(transport) == nil
				} else if done = s.Advance(transport); !done {
					transport.deliver()
				}
			}
			if !slices.Equal(transport.copied, c.want) || !bytes.Equal(transport.dst, src) {
				t.Errorf("messages are moved at bytes %v, want %v", transport.copied, c.want)
			}
		})
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
