package p2p

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// newLanes makes n ranks of which the first two are connected. What is longer than 2000 bytes
// may go over the connection, and alone than 10,000, as if frames were short.
func newLanes(t testing.TB, n int) *crew {
	w := newCrew(t, n, Config{Transport: Hybrid, PromoteMessages: 1})
	for _, ep := range w.eps {
		ep.lanes.least, ep.lanes.most = 2001, laneMost
		for i := range ep.peers {
			if p := &ep.peers[i]; !p.self {
				ep.lanes.meet(p, true)
			}
		}
	}
	w.talk(0, 1, 100_000)
	w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
	for _, ep := range w.eps {
		ep.lanes.few, ep.lanes.alone = 10_000, 10_000
	}
	return w
}

// TestLane_takes sends what goes over the connection, and what does not.
func TestLane_takes(t *testing.T) {
	w := newLanes(t, 2)
	defer w.drain()
	ln := w.eps[0].lanes.of(&w.eps[0].peers[1])
	for i, c := range []struct {
		answered bool // the other rank has just sent something
		length   int
		over     uint32 // messages over the connection
	}{
		{true, 2000, 0}, {false, 2000, 0},
		{true, 2001, 0}, {false, 2001, 1}, {false, 2000, 0}, {false, 10_000, 1}, {false, laneStream, 1}, {false, laneStream + 1, 0},
		{true, 10_000, 0}, {true, 10_001, 1}, {true, laneMost, 1}, {false, 2001, 1}, {true, 2001, 0}, {true, laneMost + 1, 0},
	} {
		if c.answered {
			w.talk(1, 0, 8)
		}
		before := ln.sent
		w.talk(0, 1, c.length)
		if got := ln.sent - before; got != c.over {
			t.Errorf("%d: %d messages of %d bytes, answered %v, went over the connection unasked, want %d", i, got, c.length, c.answered, c.over)
		}
	}
}

// TestLaneAloneOf has messages alone that are longer than a datagram go over the connection, if they have 6 KiB, or 14 where
// seven datagrams leave as one packet.
func TestLaneAloneOf(t *testing.T) {
	for _, c := range []struct {
		seg, length      int
		over, overJoined bool
	}{
		{1_400, 6<<10 - 1, false, false}, {1_400, 6 << 10, true, false}, {1_400, 9_800, true, false}, {1_400, 9_801, true, true},
		{8_900, 8 << 10, false, false}, {8_900, 14 << 10, true, false}, {8_900, 14<<10 + 1, true, true},
		{31_900, 31 << 10, false, false}, {31_900, 32 << 10, true, true},
	} {
		for joined, want := range map[bool]bool{false: c.over, true: c.overJoined} {
			if got := c.length > laneAloneOf(c.seg, joined); got != want {
				t.Errorf("%d bytes alone, in datagrams of %d, several as one packet %v: over the connection %v", c.length, c.seg, joined, got)
			}
		}
	}
}

// TestLane_most has the limit of messages that are not asked for hold for the connection, too, where it is given.
func TestLane_most(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want int
	}{
		{Config{Calibrate: true}, laneMost}, {Config{}, eagerIdle},
		{Config{Calibrate: true, EagerIdle: 70_000}, 70_000}, {Config{EagerIdle: 100_000}, laneMost},
	} {
		w := newCrew(t, 2, c.cfg)
		if got := w.eps[0].lanes.most; got != c.want {
			t.Errorf("%+v: up to %d bytes, want %d", c.cfg, got, c.want)
		}
		w.drain()
	}
}

// TestLane_peerIsLost loses a rank while messages of all states are under way to it and from
// it, with their envelopes or without: nothing waits for it, all buffers come back, and nothing is looked at.
func TestLane_peerIsLost(t *testing.T) {
	for _, whole := range []bool{false, true} {
		w := newLanes(t, 3)
		if whole {
			wholes(w)
			w.eps[0].peers[1].got[0].plain-- // as if a datagram were missing: what comes waits for it
		}
		var all []*Request
		for range 40 { // more than there are buffers
			all = append(all, w.eps[0].Isend(word(0, 1), 1, make([]byte, 5000)))
			w.eps[1].Isend(word(1, 0), 0, make([]byte, 20_000))
		}
		for range 3 {
			w.turn(1, 0)
		}
		for range 50 {
			all = append(all, w.eps[0].Irecv(word(1, 0), make([]byte, 20_000)))
		}
		ln := w.eps[0].peers[1].lane
		if whole {
			w.until(func() bool { return ln.earlyIn != ln.earlyOut }, 1, 0)
		}
		if ln.had == ln.sent || ln.out[ln.had%laneBuffers].whole != whole {
			t.Error("nothing is under way")
		}
		w.eps[0].failures.failPeer(1, w.eps[0].failures.lostError(1, "the test says so"))
		failed := 0
		for _, r := range all {
			w.until(r.Done, 0)
			if _, err := r.Wait(); err != nil {
				failed++
			}
		}
		w.turn(0)
		if ep := w.eps[0]; len(ep.lanes.free) != laneBuffers || ep.lanes.looking != 0 || len(ep.lanes.late) != 0 || failed == 0 {
			t.Errorf("%d of %d buffers are back, %d connections are looked at, %d lanes are late, and %d messages failed",
				len(ep.lanes.free), laneBuffers, ep.lanes.looking, len(ep.lanes.late), failed)
		}
		w.talk(0, 2, 5000)
	}
}

// TestLane_bothWays has more messages wait for buffers than there are, at both ends at once:
// what either end has arrives although messages of its own wait for the same of the other.
func TestLane_bothWays(t *testing.T) {
	w := newLanes(t, 2)
	defer w.drain()
	var all []*Request
	for i := range 4 * laneBuffers {
		from := i % 2
		all = append(all, w.eps[1-from].Irecv(word(from, 1-from), make([]byte, 20_000)),
			w.eps[from].Isend(word(from, 1-from), 1-from, make([]byte, 20_000)))
	}
	for _, r := range all {
		w.until(r.Done)
		_, err := r.Wait()
		must(t, err)
	}
	for rank, ep := range w.eps {
		if ep.Stats.Linked <= laneBuffers || ep.Stats.Malformed != 0 {
			t.Errorf("rank %d: %+v", rank, ep.Stats)
		}
	}
}

func TestAllocs_lane(t *testing.T) {
	w := newLanes(t, 2)
	defer w.drain()
	out, in := make([]byte, 20_000), make([]byte, 20_000)
	exchange := func() {
		for i := range 4 { // the second one of each rank is of a stream
			r := w.eps[1-i/2].Irecv(word(i/2, 1-i/2), in)
			s := w.eps[i/2].Isend(word(i/2, 1-i/2), 1-i/2, out[:5000+i%2*10_000])
			for !r.Done() || !s.Done() {
				w.turn()
			}
			if _, err := r.Wait(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 50 {
		exchange()
	}
	before := w.eps[0].Stats.Linked
	if got := testing.AllocsPerRun(50, exchange); got != 0 || w.eps[0].Stats.Linked == before {
		t.Errorf("%v allocations per exchange, want none", got)
	}
}

// TestLane_connectionBreaks has messages go both ways at once, and breaks the connection
// in the middle: each arrives once, whole and in order, and all buffers come back. The envelopes of some go with their data.
func TestLane_connectionBreaks(t *testing.T) {
	again, whole := uint32(0), 0
	for seed := range uint64(40) {
		w := newLanes(t, 2)
		if seed%2 == 1 {
			wholes(w)
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		var all []*Request
		var in, out [60][]byte
		for i := range in {
			from := i % 2
			out[i] = bytes.Repeat([]byte{byte(i + 1)}, 100+rng.IntN(90_000))
			in[i] = make([]byte, len(out[i]))
			all = append(all, w.eps[from].Isend(word(from, 1-from), 1-from, out[i]))
			if rng.IntN(2) == 0 {
				w.turn(rng.IntN(2))
			}
		}
		for i := range in {
			all = append(all, w.eps[1-i%2].Irecv(word(i%2, 1-i%2), in[i]))
		}
		w.cut(rng.IntN(2), 1)
		w.cut(0, 1)
		for rank, ep := range w.eps {
			if ln := ep.peers[1-rank].lane; ln != nil {
				again += ln.sent - ln.had
				for n := ln.had; n != ln.sent; n++ {
					if ln.out[n%laneBuffers].whole {
						whole++
					}
				}
			}
		}
		w.until(func() bool {
			for _, r := range all {
				if !r.Done() {
					return false
				}
			}
			return true
		})
		for i := range in {
			if !bytes.Equal(in[i], out[i]) {
				t.Errorf("seed %d: message %d is not what was sent", seed, i)
			}
		}
		for rank, ep := range w.eps {
			if ep.peers[1-rank].err != nil || ep.Stats.Malformed != 0 {
				t.Errorf("seed %d: rank %d: error %v, %+v", seed, rank, ep.peers[1-rank].err, ep.Stats)
			}
		}
		for _, r := range all {
			_, err := r.Wait()
			must(t, err)
		}
		w.until(func() bool { return len(w.eps[0].lanes.free) == laneBuffers && len(w.eps[1].lanes.free) == laneBuffers })
		w.drain()
	}
	if again < 40 || whole < 20 {
		t.Errorf("only %d messages were under way when connections broke, %d of them with their envelopes", again, whole)
	}
}
