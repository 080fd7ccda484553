package coll

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// Each rank has blocks of no byte, of few, of as many as go through slots and of more for others, some of them with gaps, on one
// host and on several, which have as many ranks each or not.
func TestAlltoallParts_mixedLengths(t *testing.T) {
	oneHost := func(int) int { return 0 }
	uneven := func(r int) int { return r / 5 }
	for i, place := range append(slices.Clone(placements), oneHost, inPairs, uneven) {
		for _, n := range []int{3, 4, 5, 6, 7, 8, 9, 12, 30} {
			share := slotted()
			team := func(t Team) Team { return share(hosted(t, place)) }
			short := team(Team{Size: n}).partMost()
			lengths := func(from, to int) int {
				return []int{0, 5, 100, max(short, 0), short + 1, 3000}[(3*from+5*to+from*to)%6]
			}
			out, in := make([][][]byte, n), make([][][]byte, n)
			for me := range n {
				for r := range n {
					out[me] = append(out[me], filled(lengths(me, r), n*me+r))
					in[me] = append(in[me], make([]byte, lengths(r, me)))
				}
			}
			flat := func(s *Schedule, list [][]byte) []Block {
				blocks := s.Parts(len(list))
				for i := range list {
					blocks[i] = Flat(list[i])
				}
				return blocks
			}
			err := world(n, func(s *Schedule, t Team) {
				Alltoallv(s, team(t), overSome(s, t.Me, flat(s, out[t.Me])), overSome(s, t.Me/2, flat(s, in[t.Me])))
			}, func(r int) error {
				for _, b := range in[r] {
					clear(b)
				}
				return nil
			}, func(r int) (err error) {
				for from := range n {
					err = errors.Join(err, same(in[r][from], out[from][r]))
				}
				return err
			})
			if err != nil {
				t.Fatalf("%d ranks, placement %d, short is %d: %v", n, i, short, err)
			}
		}
	}
}

// Between two hosts that have as many ranks each rank sends one message, on one host none, up to the length that goes through slots.
func TestAlltoallParts_messages(t *testing.T) {
	for _, c := range []struct {
		n, each, perHost int
		choose           string
		want             int
	}{
		{4, 16 << 10, 2, "", 1}, {4, 16<<10 + 1, 2, "", 3}, {8, 4 << 10, 4, "", 1}, {7, 100, 4, "", 1},
		{4, 4 << 10, 4, "", 0}, {4, tableMost / 3, 4, "", 0}, {4, tableMost/3 + 1, 4, "", 3}, {4, 100, 2, "alltoall.hosts=linear", 3}, {4, 100, 4, "alltoall=linear", 3}, {2, slotMost, 2, "", 0}, {2, slotMost + 1, 2, "", 1},
	} {
		share, place := slotted(), func(r int) int { return r / c.perHost }
		for me := range c.n {
			var s Schedule
			team := share(hosted(Team{Me: me, Size: c.n}, place))
			if c.choose != "" {
				team.Tables, _ = ParseTables(c.choose, nil)
			}
			Alltoallv(&s, team, s.EvenParts(words(c.n*c.each), c.n), s.EvenParts(words(c.n*c.each), c.n))
			messages, want := messagesOf(&s), c.want
			if c.n == 7 && me >= 3 { // the host with three ranks sends to four: the first of it twice, to the first and the last
				want = []int{0, 2, 1, 1}[me-3]
			}
			if messages != want {
				t.Errorf("%+v: rank %d sends %d messages, want %d", c, me, messages, want)
			}
		}
	}
}

func messagesOf(s *Schedule) (n int) {
	for _, st := range s.steps {
		if st.what == send || st.what == slotBundle && len(st.a) > 0 {
			n++
		}
	}
	return n
}

// Alltoall takes the same way where its blocks would be messages that all are sent at once.
func TestAlltoallParts_even(t *testing.T) {
	for each, want := range map[int]int{16 << 10: 1, 16<<10 + 4: 3} {
		var s Schedule
		Alltoall(&s, slotted()(hosted(Team{Size: 4}, inPairs)), words(4*each), words(4*each))
		if n := messagesOf(&s); n != want {
			t.Errorf("blocks of %d bytes: %d messages, want %d", each, n, want)
		}
	}
}

// Lengths that the two ends do not agree about are an error, and so is a table of blocks that is none.
func TestAlltoallParts_lengthsDiffer(t *testing.T) {
	for _, c := range []struct{ given, expected int }{{8, 16}, {16, 8}, {0, 8}, {8, 0}, {30 << 10, 8}, {8, 30 << 10}} {
		share := slotted()
		var schedules [3]*Schedule
		for me := range schedules {
			s := &Schedule{}
			lengths := func(from, to int) (given, expected int) {
				if from == 2 && to == 1 {
					return c.given, c.expected
				}
				return 8, 8
			}
			out, in := s.Parts(3), s.Parts(3)
			for r := range 3 {
				given, _ := lengths(me, r)
				_, expected := lengths(r, me)
				out[r], in[r] = Flat(words(given)), Flat(words(expected))
			}
			Alltoallv(s, share(Team{Me: me, Size: 3}), out, in)
			schedules[me] = s
		}
		_ = newNet(1).run(schedules[:])
		if err := schedules[1].Err(); !errors.Is(err, errDisagrees) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	sl := NewSlots(words(SlotsSize(2)), 1, 2, nobody{})
	sl.begin(sl.most(), false)
	copy(sl.parted(0, 0, 4), []byte{200, 0, 200, 0})
	if b := sl.bundle(&step{other: partOf(0, 2), b: words(2 * 100)}); len(b) != 0 || sl.err == nil {
		t.Error(fmt.Sprint("a block longer than a bundle has room for: ", len(b), sl.err))
	}
}
