package coll

import (
	"slices"
	"testing"
)

// turned gives members slots that take turns on two processors.
func turned(share func(t Team) Team) func(t Team) Team {
	return func(t Team) Team {
		t = share(t)
		t.Slots.Part([]int64{2, 1, 2, 1, 1, 2}[:t.Size], true)
		return t
	}
}

// On a tree those that take turns on a processor are side by side, the root at the beginning.
func TestTeam_grouped(t *testing.T) {
	for _, c := range []struct {
		n, root int
		want    []int32
	}{{2, 1, nil}, {3, 1, []int32{1, 0, 2}}, {4, 0, []int32{0, 2, 1, 3}}, {4, 3, []int32{3, 1, 0, 2}}, {6, 2, []int32{2, 0, 5, 1, 3, 4}}} {
		share := turned(slotted())
		for me := range c.n {
			var s Schedule
			got := share(Team{Me: me, Size: c.n}).grouped(&s, c.root)
			if !slices.Equal(got.Ranks, c.want) || got.rank(got.Me) != int32(me) {
				t.Errorf("%d members, root %d: %v, member %d is number %d; want %v", c.n, c.root, got.Ranks, me, got.Me, c.want)
			}
		}
	}
}

// Long vectors go up such a tree, and down.
func TestSlots_treesOfTurns(t *testing.T) {
	const length = 300 << 10
	share := turned(slotted())
	for n := 3; n <= 6; n++ {
		for root := range n {
			testBcast(t, func(s *Schedule, t Team, buf []byte, root int) {
				Bcast(s, share(t), buf, root)
			}, n, root, length)
			for _, red := range reductions {
				testReduce(t, func(s *Schedule, t Team, in, out []byte, root int) {
					Reduce(s, share(t), in, out, root)
				}, red, n, root, length/red.elem)
			}
		}
	}
}

// There is room for the longest vector of a Bcast: the root does not wait for others. A barrier, which is in lines, takes
// none of it.
func TestSlots_rootOfLongBcastDoesNotWait(t *testing.T) {
	const n = 4
	memory := words(SlotsSize(n))
	var slots [n]*Slots
	for me := range slots {
		slots[me] = NewSlots(memory, me, n, nobody{})
	}
	b := words(ringMost)
	run := func(plan func(s *Schedule, t Team)) (rootFirst bool) {
		var schedules [n]Schedule
		for me := range schedules {
			plan(&schedules[me], Team{Me: me, Size: n, Slots: slots[me]})
		}
		rootFirst = schedules[0].Advance(nil)
		ended := 0
		for me := range 2 * n { // a barrier needs two looks
			if schedules[me%n].Advance(nil) && me >= n {
				ended++
			}
		}
		if ended != n {
			t.Fatalf("%d of %d have come to the end", ended, n)
		}
		return rootFirst
	}
	for i := range 3 {
		if !run(func(s *Schedule, t Team) { Bcast(s, t, b, 0) }) {
			t.Errorf("the root waits for others in Bcast %d", i)
		}
		run(BarrierSlots)
	}
}

// A barrier before a Scan ends in the order of members: one that shares a processor with one below does not look for
// members on other processors.
func TestSlots_barrierBeforeScan(t *testing.T) {
	const n = 4
	memory := words(SlotsSize(n))
	for _, c := range []struct {
		name string
		plan func(s *Schedule, t Team)
		want [n]bool
	}{
		{"Bcast", func(s *Schedule, t Team) { Bcast(s, t, words(8), 0) }, [n]bool{true, true, false, true}},
		{"Scan", func(s *Schedule, t Team) { Scan(s, t, words(8), words(8), false) }, [n]bool{true, true, false, false}},
	} {
		clear(memory)
		var teams [n]Team
		for me := range teams {
			teams[me] = Team{Me: me, Size: n, Slots: NewSlots(memory, me, n, nobody{})}
			teams[me].Slots.Part([]int64{1, 2, 1, 2}, true)
		}
		for i, plan := range []func(s *Schedule, t Team){BarrierSlots, c.plan, BarrierSlots} {
			var schedules [n]Schedule
			for me := range schedules {
				schedules[me].Reduction(xor{}, 8, true)
				plan(&schedules[me], teams[me])
			}
			if i == 2 { // those of each processor have begun, and not all of the other one
				for _, me := range []int{2, 1, 3, 1} {
					schedules[me].Advance(nil)
				}
				schedules[0].Advance(nil)
				for me, want := range c.want {
					if apart := teams[me].Slots.Apart(); me%2 == 1 && apart != want {
						t.Errorf("barrier behind %s, member %d: it looks for another processor: %v, want %v", c.name, me, apart, want)
					}
				}
				break
			}
			for range n {
				for me := range schedules {
					schedules[me].Advance(nil)
				}
			}
		}
	}
}
