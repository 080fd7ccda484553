package coll

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Members that come through slots run ahead of one another, as far as they can: nobody
// overwrites what another one has not read.
func TestSlots_manyInARow(t *testing.T) {
	const n, rounds, longest = 5, 400, slotsMost / 5 / ringSlots &^ 63
	share := slotted()
	var bufs, sums, tops [n][rounds][]byte
	err := world(n, func(s *Schedule, t Team) {
		t = share(t)
		s.Reduction(xor{}, 4, true)
		for i := range rounds {
			length := 8 + i*i*i%(longest-8)&^7
			bufs[t.Me][i], sums[t.Me][i], tops[t.Me][i] = words(length), words(length), words(length)
			BcastSlots(s, t, bufs[t.Me][i], i%n)
			if i%3 == 0 {
				AllreduceSlots(s, t, bufs[t.Me][i], sums[t.Me][i])
			}
			ReduceSlots(s, t, bufs[t.Me][i], tops[t.Me][i], (i+1)%n)
		}
	}, func(me int) error {
		for i := range rounds {
			clear(bufs[me][i])
			if i%n == me {
				fill(bufs[me][i], i)
			}
		}
		return nil
	}, func(me int) error {
		for i := range rounds {
			want := filled(len(bufs[me][i]), i)
			if err := same(bufs[me][i], want); err != nil {
				return err
			}
			if i%3 == 0 { // of an odd number of equal vectors the exclusive or is one of them
				if err := same(sums[me][i], want); err != nil {
					return err
				}
			}
			if (i+1)%n == me {
				if err := same(tops[me][i], want); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rounding is an operation that commutes and, as sums of floating point, is not associative.
type rounding struct{}

func (rounding) Reduce(in, inout []byte) {
	for i, b := range in {
		inout[i] = 3*(inout[i]+b) + 1
	}
}

// Reductions through slots have the same result as by messages: a call rounds alike before there
// are slots and after.
func TestSlots_reduceInTheOrderOfMessages(t *testing.T) {
	const length = slotsReduced / 4
	for n := 2; n <= 17; n++ {
		for _, commutes := range []bool{true, false} {
			share := slotted()
			roots := n // each in turn
			parts := make([]int, n)
			for i := range parts {
				parts[i] = length/(n+1) + i%2
			}
			vectors, scattered := make([][2][]byte, n), make([][2][]byte, n)
			all, near := make([][2][]byte, n), make([][][2][]byte, n)
			scans, exscans := make([][2][]byte, n), make([][2][]byte, n)
			err := world(n, func(s *Schedule, t Team) {
				t = share(t)
				s.Reduction(rounding{}, 1, commutes)
				all[t.Me] = [2][]byte{filled(length, t.Me), words(length)}
				AllreduceSlots(s, t, filled(length, t.Me), all[t.Me][1])
				AllreduceDoubling(s, t, all[t.Me][0])
				for i, to := range []*[2][]byte{&scans[t.Me], &exscans[t.Me]} {
					*to = [2][]byte{words(length), words(length)}
					ScanChain(s, t, to[0], to[0], i == 1)
					ScanSlots(s, t, to[1], to[1], i == 1)
				}
				for i := range vectors[t.Me] {
					vectors[t.Me][i], scattered[t.Me][i] = words(n/2+n*(length/(n+1))), words(parts[t.Me])
				}
				ReduceScatterHalving(s, t, vectors[t.Me][0], cut(vectors[t.Me][0], parts), scattered[t.Me][0])
				ReduceScatterSlots(s, t, vectors[t.Me][1], cut(vectors[t.Me][1], parts), scattered[t.Me][1])
				near[t.Me] = make([][2][]byte, roots)
				for root := range roots {
					to := &near[t.Me][root]
					to[0], to[1] = words(length), words(length)
					ReduceBinomial(s, t, filled(length, t.Me), to[0], root)
					ReduceSlots(s, t, filled(length, t.Me), to[1], root)
				}
			}, func(me int) error {
				for _, b := range [][]byte{all[me][0], scans[me][0], scans[me][1], exscans[me][0], exscans[me][1], vectors[me][0], vectors[me][1]} {
					fill(b, me)
				}
				return nil
			}, func(me int) error {
				return errors.Join(same(all[me][1], all[me][0]), same(near[me][me][1], near[me][me][0]), same(scans[me][1], scans[me][0]), same(exscans[me][1], exscans[me][0]), same(scattered[me][1], scattered[me][0]))
			})
			if err != nil {
				t.Errorf("%d members, %v: %v", n, commutes, err)
			}
		}
	}
}

// A member that gives a slot for the second time waits for those that may still read it,
// whatever the collectives are.
func TestSlots_readBeforeOverwritten(t *testing.T) {
	const n, rounds, length = 3, 2 * slotsAhead, 8
	share := slotted()
	var told [n][rounds][]byte
	var all [n][]byte
	err := world(n, func(s *Schedule, t Team) {
		t = share(t)
		for i := range told[t.Me] {
			told[t.Me][i] = make([]byte, length)
			BcastSlots(s, t, told[t.Me][i], 0)
		}
		all[t.Me] = make([]byte, n*length)
		AllgatherSlots(s, t, filled(length, 100+t.Me), s.Even(all[t.Me], n))
	}, func(me int) error {
		for i := range rounds {
			clear(told[me][i])
			if me == 0 {
				fill(told[me][i], i)
			}
		}
		return nil
	}, func(me int) error {
		for i := range rounds {
			if err := same(told[me][i], filled(length, i)); err != nil {
				return err
			}
		}
		for i := range n {
			if err := same(all[me][i*length:][:length], filled(length, 100+i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Who sleeps on a slot is told when it is there, and nobody sleeps on one that is.
func TestSlots_waitersAreTold(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const n = 4
	memory := words(SlotsSize(n))
	var all [n]*Slots
	for i := range all {
		all[i] = NewSlots(memory, i, n, nobody{})
	}
	for range 100 {
		for _, sl := range all {
			sl.begin(0, false)
		}
		order := rnd.Perm(n)
		var asleep [n]bool
		for _, i := range order {
			for told := all[i].give(nil); told != 0; told &= told - 1 {
				for m := range asleep {
					if told>>m&1 != 0 {
						asleep[m] = false
					}
				}
			}
			for m, sl := range all { // those that have given, and are awake
				if !asleep[m] && sl.sequence[m].Load() == sl.at {
					sl.await(everyMember)
					asleep[m] = sl.Sleep()
				}
			}
		}
		for m, sl := range all {
			if asleep[m] || !sl.Ready() || sl.Sleep() {
				t.Fatalf("member %d sleeps, and all slots are there", m)
			}
		}
	}
}

// Longer vectors, and teams that have slots with some members only use messages.
func TestSlots_whereTheyFit(t *testing.T) {
	memory := words(SlotsSize(4))
	for _, c := range []struct {
		size, members, bytes int
		want                 algorithm
	}{{4, 4, 4 << 10, slots}, {4, 3, 8, doubling}, {2, 2, 8, slots}} {
		team := Team{Size: c.size, Slots: NewSlots(memory, 0, c.members, nobody{})}
		if use := team.choose(ofAllreduce, c.bytes); use != c.want {
			t.Errorf("%+v: %v", c, use)
		}
		for _, other := range []collective{ofAllgather, ofBcast, ofReduce} {
			if use := team.choose(other, c.bytes); (use == slots) != (c.want == slots) {
				t.Errorf("%s of %+v: %v", tables[other].name, c, use)
			}
		}
	}
	if use := (Team{Size: 2, Slots: NewSlots(memory, 0, 2, nobody{})}).choose(ofAllreduce, 256<<10); use != slots {
		t.Errorf("Allreduce of 256 KiB of two members: %v", use)
	}
	for bytes, want := range map[int]algorithm{8: doubling, 64 << 10: doubling, 256 << 10: linear} {
		if use := (Team{Size: 2, OneHost: true}).choose(ofAllreduce, bytes); use != want {
			t.Errorf("Allreduce of %d bytes of two members without slots: %v, want %v", bytes, use, want)
		}
	}
	for _, c := range []struct {
		members, bytes int    // of a vector, or of all blocks that a member gives, or gets in Gather
		by             string // messages
	}{
		{2, 128 << 10, ""},
		{2, 128<<10 + 8, "Allgather, Bcast, Reduce, Scan"},
		{2, 512 << 10, "Allgather, Allgatherv, Alltoall, Bcast, Reduce, ReduceScatter, Scan"},
		{2, 1 << 20, "Allgather, Allgatherv, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scan, Scatter"},
		{4, 64 << 10, ""},
		{4, 256 << 10, "ReduceScatter"},
		{4, 1 << 20, "Allgather, Alltoall, Bcast, Reduce, ReduceScatter, Scan, Scatter"},
		{6, 96 << 10, "Alltoall, ReduceScatter"},
		{6, 192 << 10, "Allgather, Alltoall, Bcast, ReduceScatter, Scan, Scatter"},
		{8, 32 << 10, ""},
		{8, 64 << 10, "Alltoall, ReduceScatter"},
	} {
		team := Team{Size: c.members, Slots: NewSlots(words(SlotsSize(c.members)), 0, c.members, nobody{})}
		each := c.bytes / c.members
		all := each * c.members
		for name, plan := range map[string]func(s *Schedule){
			"Bcast":      func(s *Schedule) { Bcast(s, team, words(c.bytes), 0) },
			"Reduce":     func(s *Schedule) { Reduce(s, team, words(c.bytes), words(c.bytes), 0) },
			"Scan":       func(s *Schedule) { Scan(s, team, words(c.bytes), words(c.bytes), false) },
			"Allgather":  func(s *Schedule) { Allgather(s, team, words(c.bytes), words(c.members*c.bytes)) },
			"Allgatherv": func(s *Schedule) { Allgatherv(s, team, words(each), s.Even(words(all), c.members)) },
			"Alltoall":   func(s *Schedule) { Alltoall(s, team, words(all), words(all)) },
			"Gather":     func(s *Schedule) { Gather(s, team, words(each), words(all), 0) },
			"Scatter":    func(s *Schedule) { Scatter(s, team, words(all), words(each), 0) },
			"ReduceScatter": func(s *Schedule) {
				in := words(all)
				ReduceScatter(s, team, in, s.Even(in, c.members), words(each))
			},
		} {
			var s Schedule
			s.Reduction(xor{}, 4, true)
			plan(&s)
			want := !slices.Contains(strings.Split(c.by, ", "), name)
			if got := slices.ContainsFunc(s.steps, func(st step) bool { return st.what == slotGive }); got != want {
				t.Errorf("%s of %d bytes of %d members goes through slots: %v, want %v", name, c.bytes, c.members, got, want)
			}
		}
	}
}

// Long vectors go through slots in the order of AllreduceLinear only if the operation commutes, and where there is an element for each member.
func TestSlots_allreduceBy(t *testing.T) {
	team := Team{Size: 4, Slots: NewSlots(words(SlotsSize(4)), 0, 4, nobody{})}
	for _, c := range []struct {
		elem     int
		commutes bool
		want     algorithm
	}{{4, true, slots}, {4, false, linear}, {8 << 10, true, slots}, {8 << 10, false, slots}} {
		var s Schedule
		s.Reduction(xor{}, c.elem, c.commutes)
		if use := s.allreduceBy(team, words(24<<10)); use != c.want {
			t.Errorf("%+v: %v", c, use)
		}
	}
}

// An element that is longer than a slot goes by messages, on hosts as well.
func TestSlots_longElement(t *testing.T) {
	const elem = slotMost + 64
	for i, place := range placements {
		for _, n := range []int{4, 6} {
			share := slotted()
			var all, top [6][]byte
			err := world(n, func(s *Schedule, t Team) {
				t = share(hosted(t, place))
				s.Reduction(xor{}, elem, true)
				all[t.Me], top[t.Me] = words(elem), words(elem)
				Allreduce(s, t, filled(elem, t.Me), all[t.Me])
				Reduce(s, t, filled(elem, t.Me), top[t.Me], 1)
			}, func(int) error { return nil }, func(me int) error {
				want := reduction{xor{}, elem, true}.fold(elem, 0, n)
				if me != 1 {
					return same(all[me], want)
				}
				return errors.Join(same(all[me], want), same(top[me], want))
			})
			if err != nil {
				t.Errorf("%d members, placement %d: %v", n, i, err)
			}
		}
	}
}

// Lengths that differ are an error of those who see it, and of all that they do later: there the others
// see it, such as a root that waits for nothing.
func TestSlots_lengthsDiffer(t *testing.T) {
	for _, lengths := range [][2]int{{64, 128}, {8, 16}, {lineMost, 64}, {slotMost, 0}} {
		memory := words(SlotsSize(2))
		var schedules [2]*Schedule
		for me := range schedules {
			schedules[me] = &Schedule{}
			team := Team{Me: me, Size: 2, Slots: NewSlots(memory, me, 2, nobody{})}
			BcastSlots(schedules[me], team, words(lengths[me]), 0)
			BarrierSlots(schedules[me], team)
		}
		for me := range schedules { // the root goes first, as far as it can
			schedules[me].Advance(nil)
		}
		for me, s := range schedules {
			if !s.Advance(nil) || s.Err() != errDisagrees {
				t.Errorf("%v bytes: member %d: %v, want %v", lengths, me, s.Err(), errDisagrees)
			}
		}
	}
}

// Two members swap and reduce vectors of any length, in pieces where they are long.
func TestSlots_two(t *testing.T) {
	const most = slotMost
	for _, n := range []int{8, lineMost, 64, most, most + 8, 2*most + 64, 5 * most} {
		share := slotted()
		var sums, all, swapped, in, out [2][]byte
		err := world(2, func(s *Schedule, t Team) {
			t = share(t)
			me := t.Me
			s.Reduction(xor{}, 4, true)
			sums[me], all[me], swapped[me] = words(n), words(2*n), words(2*n)
			in[me], out[me] = filled(n, me), filled(2*n, 10+me)
			AllreduceSlots(s, t, in[me], sums[me])
			Allgather(s, t, in[me], all[me])
			Alltoall(s, t, out[me], swapped[me])
			AllreduceSlots(s, t, sums[me], sums[me])
		}, func(me int) error { return nil }, func(me int) error {
			zero := make([]byte, n) // of the same vector twice
			both := append(filled(n, 0), filled(n, 1)...)
			parts := append(filled(2*n, 10)[me*n:(me+1)*n], filled(2*n, 11)[me*n:(me+1)*n]...)
			return errors.Join(same(sums[me], zero), same(all[me], both), same(swapped[me], parts))
		})
		if err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A member reduces its own vector from where it lies, and does not wait for its own slot: another core
// may have both lines.
func TestSlots_ownIsNotRead(t *testing.T) {
	memory := words(SlotsSize(2))
	var all [2]*Slots
	for me := range all {
		all[me] = NewSlots(memory, me, 2, nobody{})
		all[me].begin(8, false)
		all[me].give(filled(8, me))
	}
	v, want := words(8), filled(8, 0)
	xor{}.Reduce(filled(8, 1), want)
	sl := all[1]
	clear(sl.slot(1, 0, 8))
	sl.stampOf(1).Store(0)
	if sl.await(everyMember); !sl.Ready() {
		t.Error("it waits for itself")
	}
	if sl.reduce(xor{}, v, filled(8, 1), 0, inDoubling); !bytes.Equal(v, want) {
		t.Errorf("%x, want %x", v, want)
	}
}

// Where members take turns, a barrier ends first on the member whose data the collective behind the barrier before
// was of, and on the one that comes last where it was of none.
func TestSlots_barrierEndsOnRootFirst(t *testing.T) {
	const n, root = 4, 2
	memory := words(SlotsSize(n))
	var teams [n]Team
	for me := range teams {
		teams[me] = Team{Me: me, Size: n, Slots: NewSlots(memory, me, n, nobody{})}
		teams[me].Slots.Part([]int64{1, 2, 1, 2}, true)
	}
	run := func(order []int, plan func(s *Schedule, t Team)) (ended []int) {
		var schedules [n]Schedule
		for me := range schedules {
			plan(&schedules[me], teams[me])
		}
		var done [n]bool
		for range n {
			for _, me := range order {
				if !done[me] {
					if done[me] = schedules[me].Advance(nil); done[me] {
						ended = append(ended, me)
					}
				}
			}
		}
		return ended
	}
	bcast := func(s *Schedule, t Team) { Bcast(s, t, words(8), root) }
	scatter := func(s *Schedule, t Team) { Scatter(s, t, words(8*n), words(8), root) }
	swap := func(s *Schedule, t Team) { AllgatherSlots(s, t, words(8), s.Even(words(8*n), n)) }
	for _, c := range []struct {
		before func(s *Schedule, t Team)
		order  []int
		want   int
	}{{bcast, []int{2, 0, 1, 3}, root}, {scatter, []int{0, 1, 3, 2}, root}, {BarrierSlots, []int{2, 0, 1, 3}, 3}, {swap, []int{3, 2, 0, 1}, 1}} {
		run(c.order, BarrierSlots)
		run(c.order, c.before)
		if ended := run(c.order, BarrierSlots); len(ended) != n || ended[0] != c.want {
			t.Errorf("begun in order %v, ended in order %v, want %d first", c.order, ended, c.want)
		}
		for me := range teams { // so that it need not look when it begins the next one
			if sl := teams[me].Slots; sl.seen != sl.at {
				t.Errorf("member %d behind barrier %d: all are known to have begun %d", me, sl.at, sl.seen)
			}
		}
	}
}

// Collectives of all kinds between barriers, of members that take turns.
func TestSlots_turns(t *testing.T) {
	const rounds = 300
	for n := 2; n <= 6; n++ {
		rnd := rand.New(rand.NewPCG(uint64(n), 7))
		kinds := make([]int, rounds)
		for i := range kinds {
			kinds[i] = rnd.IntN(2 + 2*n)
		}
		share := slotted()
		told := make([][rounds][]byte, n)
		err := world(n, func(s *Schedule, t Team) {
			t = share(t)
			t.Slots.Part([]int64{1, 2, 1, 2, 1, 2}[:n], true)
			for i, kind := range kinds {
				told[t.Me][i] = words(8)
				switch {
				case kind == 0:
					AllgatherSlots(s, t, words(8), s.Even(words(8*n), n))
				case kind <= n:
					Bcast(s, t, told[t.Me][i], kind-1)
					continue
				case kind <= 2*n:
					all := filled(8*n, i)
					Scatter(s, t, all, told[t.Me][i], kind-1-n)
				}
				BarrierSlots(s, t)
			}
		}, func(me int) error {
			for i, kind := range kinds {
				clear(told[me][i])
				if kind == me+1 {
					fill(told[me][i], i)
				}
			}
			return nil
		}, func(me int) error {
			for i, kind := range kinds {
				want := words(8)
				switch {
				case kind == 0 || kind > 2*n:
				case kind <= n:
					want = filled(8, i)
				default:
					want = filled(8*n, i)[8*me:][:8]
				}
				if err := same(told[me][i], want); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d members: %v", n, err)
		}
	}
}

// Vectors use a part of a ring in turn, pieces of long ones all of it.
func TestSlots_partOfRing(t *testing.T) {
	for _, c := range []struct {
		members, n int
		row        bool
		want       int // bytes of the ring
	}{
		{2, 256, false, ringShort},
		{2, 4 << 10, false, ringShort},
		{2, 16 << 10, false, ringSlots * 16 << 10},
		{4, 16 << 10, false, ringSlots * 16 << 10},
		{4, slotMost, true, ringMost},
		{4, tableMost, false, ringSlots * tableMost},
		{4, longestOf(4), false, ringMost},
		{64, 4 << 10, false, ringShort},
	} {
		sl := NewSlots(words(SlotsSize(c.members)), 0, c.members, nobody{})
		got := 0
		for sl.end < 2*ringMost {
			sl.begin(c.n, c.row)
			got = max(got, int(sl.start)&(sl.ring-1)+c.n)
		}
		if got != c.want {
			t.Errorf("%d bytes of %d members, in a row: %v: in %d bytes of the ring, want %d", c.n, c.members, c.row, got, c.want)
		}
	}
}
