package coll

import (
	"bytes"
	"testing"
)

// Blocks of any length are where partsAt says, in the line alone if there is room, for many members too, whose table is in
// the ring; behind them is what is longer, as messages.
func TestSlots_parts(t *testing.T) {
	for _, c := range []struct {
		name            string
		n, each, uneven int
		inLine          bool
	}{
		{"line", 4, 8, 5, true},
		{"table in the line", 4, 100, 30, false},
		{"no bytes", 3, 0, 0, true},
		{"full line", 4, (lineMost - 4*partWord) / 3, 0, true},
		{"more than a line", 4, (lineMost-4*partWord)/3 + 1, 0, false},
		{"table in the ring", 40, 3, 7, false},
		{"longest", 4, tableMost / 3, 0, false},
	} {
		memory := words(SlotsSize(c.n))
		var teams []Team
		for me := range c.n {
			teams = append(teams, Team{Me: me, Size: c.n, Slots: NewSlots(memory, me, c.n, nobody{})})
		}
		for root := range 3 {
			blocks, scattered, gathered := make([][]byte, c.n), make([][]byte, c.n), make([][]byte, c.n)
			for i := range blocks {
				n := c.each
				if c.uneven > 0 {
					n += i % c.uneven
				}
				blocks[i], scattered[i], gathered[i] = filled(n, i), words(n), words(n)
			}
			schedules := make([]Schedule, c.n)
			for me := range schedules {
				out, in := [][]byte(nil), [][]byte(nil)
				if me == root {
					out, in = blocks, gathered
				}
				Scatterv(&schedules[me], teams[me], out, scattered[me], root)
				Gatherv(&schedules[me], teams[me], blocks[me], in, root)
				BarrierSlots(&schedules[me], teams[me])
			}
			for range 2 * c.n {
				for me := range schedules {
					schedules[me].Advance(nil)
				}
			}
			for me := range schedules {
				if s := &schedules[me]; s.at != len(s.steps) || s.Err() != nil {
					t.Fatalf("%s, root %d: member %d is at step %d of %d: %v", c.name, root, me, s.at, len(s.steps), s.Err())
				}
				if !bytes.Equal(scattered[me], blocks[me]) || !bytes.Equal(gathered[me], blocks[me]) {
					t.Errorf("%s, root %d: member %d has other bytes", c.name, root, me)
				}
			}
		}
		if used := bytes.ContainsFunc(teams[0].Slots.memory[ringAt:teams[0].Slots.stride()], func(r rune) bool { return r != 0 }); used == c.inLine {
			t.Errorf("%s: something is in the ring: %v", c.name, used)
		}
	}
}

// Blocks that lie side by side are given in one step, and of two members only the one that is for the other one.
func TestSlots_whatIsGiven(t *testing.T) {
	const each = 24
	for _, c := range []struct {
		n, root, steps, bytes int
	}{{4, 0, 1, 3*each + 4*partWord}, {4, 1, 2, 3*each + 4*partWord}, {2, 1, 0, each}} {
		var s Schedule
		team := Team{Me: c.root, Size: c.n, Slots: NewSlots(words(SlotsSize(c.n)), c.root, c.n, nobody{})}
		Scatterv(&s, team, s.Even(words(c.n*each), c.n), words(each), c.root)
		steps := 0
		for _, st := range s.steps {
			if st.what == slotPut {
				steps++
			}
		}
		if steps != c.steps || s.Sends() != c.bytes {
			t.Errorf("%+v: %d bytes in %d steps", c, s.Sends(), steps)
		}
		if c.n == 2 {
			s.Reset()
			if Scatter(&s, team, words(c.n*each), words(each), c.root); s.Sends() != c.bytes {
				t.Errorf("Scatter gives %d bytes, want %d", s.Sends(), c.bytes)
			}
		}
	}
}

// A member that gives up before it has given its parts says so at once: others would wait for them.
func TestSlots_partsGivenUp(t *testing.T) {
	memory, blocks := words(SlotsSize(2)), [][]byte{filled(8, 0), filled(8, 1)}
	var schedules [2]Schedule
	for me := range schedules {
		team := Team{Me: me, Size: 2, Slots: NewSlots(memory, me, 2, nobody{})}
		schedules[me].slots = team.Slots
		scatterParts(&schedules[me], team, blocks, words(8), 0)
	}
	schedules[0].err = ErrLengths
	abandon(&schedules[0], nil, false)
	if other := &schedules[1]; !other.Advance(nil) || other.Err() == nil {
		t.Errorf("the other member is at step %d of %d: %v", other.at, len(other.steps), other.Err())
	}
}

// A table that is none, of members that do not do the same, names no bytes outside of what was given.
func TestSlots_partsNonsense(t *testing.T) {
	sl := NewSlots(words(SlotsSize(2)), 1, 2, nobody{})
	sl.begin(sl.most(), false)
	const end = 50000
	copy(sl.parted(0, 0, 2*partWord), []byte{end & 0xff, end >> 8, 8, 0})
	if sl.pick(&step{what: slotPick, other: partOf(0, 2), b: words(end)}); sl.err == nil {
		t.Errorf("a block ends at %d of 8 bytes", end)
	}
}
