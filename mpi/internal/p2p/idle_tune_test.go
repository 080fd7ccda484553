package p2p

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// TestIdleTuner_picksTheShorterWay plays messages whose time is known: per byte, and
// in addition for the turn of those that are asked for. Some take much longer than
// they should.
func TestIdleTuner_picksTheShorterWay(t *testing.T) {
	for name, c := range map[string]struct {
		pieces, asked float64 // ns per byte
		turn          float64 // ns
		want          int     // the limit
	}{
		"a turn is worth 70 KiB of copying": {0.3, 0.2, 7000, 64 << 10},
		"a long way":                        {0.3, 0.2, 40_000, idleMost},
		"a short one":                       {0.4, 0.2, 5000, 24 << 10},
		"frames cost most":                  {1.2, 0.5, 6000, 16 << 10},
	} {
		tuner := newIdleTuner()
		for i := range int32(3000) {
			n := idleTops[i%int32(len(idleTops))]
			way, timed := tuner.class(n).choose()
			if !timed {
				continue
			}
			each := c.pieces
			if way == askedFor {
				each = c.asked + c.turn/float64(n)
			}
			if i%7 < 3 {
				each *= 10 // another process had the core
			}
			tuner.class(n).took(way, each)
		}
		if got := tuner.limit(16 << 10); got != c.want {
			t.Errorf("%s: the limit is %d, want %d", name, got, c.want)
		}
	}
}

// TestIdleTuner_rests: few messages go the other way before the first decision, and after it nearly
// all go the better one, and a change is noticed.
func TestIdleTuner_rests(t *testing.T) {
	c := &newIdleTuner().classes[0]
	worse := 1.1
	play := func(n int, better option) (others int) {
		for range n {
			way, timed := c.choose()
			if way != better {
				others++
			}
			if timed && way == better {
				c.took(way, 1)
			} else if timed {
				c.took(way, worse)
			}
		}
		return others
	}
	if n := play(choiceFirst*choiceSoon, inPieces); n > choiceFirst {
		t.Errorf("%d of the first %d messages went the longer way", n, choiceFirst*choiceSoon)
	}
	if !c.decided || c.usual != inPieces {
		t.Fatalf("after %d messages: %+v", choiceFirst*choiceSoon, c)
	}
	if n := play(1000, inPieces); n == 0 || n > 1000/choiceEvery {
		t.Errorf("%d of 1000 messages went the longer way", n)
	}
	play(4*choiceTimed*choiceEvery, askedFor)
	if c.usual != askedFor {
		t.Errorf("the other way has become the shorter one: %+v", c)
	}
	worse = 2 * choiceClear // much longer: it is tried less often, and a change is noticed later
	play(2*choiceTimed*choiceEvery<<choiceSure, askedFor)
	const few = choiceEvery << choiceSure
	if n := play(10*few, askedFor); n < 5 || n > 12 {
		t.Errorf("%d of %d messages went the much longer way", n, 10*few)
	}
	play(3*choiceTimed*few, inPieces)
	if c.usual != inPieces {
		t.Errorf("the other way has become much shorter: %+v", c)
	}
}

// TestIdle_tuned sends messages of all lengths that pieces are for, one after the
// other: they arrive as they were, whatever way they go, and after some of them all
// classes are decided. Connections are left alone.
func TestIdle_tuned(t *testing.T) {
	for _, transport := range []Transport{RD, UD, RC} {
		w := newCrew(t, 2, Config{Calibrate: true, Transport: transport, PromoteMessages: 1 << 30, PromoteBytes: 1 << 40})
		sizes := []int{20_000, 30_000, 40_000, 60_000, 90_000, 120_000, 150_000, 100}
		for i := range choiceFirst * choiceSoon * len(sizes) {
			w.talk(0, 1, sizes[i%len(sizes)]+i)
			w.until(func() bool { return w.eps[0].peers[1].buffered == 0 })
		}
		tuner := w.eps[0].peers[1].idle
		if (tuner != nil) != (transport != RC) {
			t.Fatalf("%v: tuned %v", transport, tuner != nil)
		}
		if tuner != nil {
			for i := range tuner.classes {
				if !tuner.classes[i].decided {
					t.Errorf("%v: class %d is not decided: %+v", transport, i, tuner.classes[i])
				}
			}
		}
		l := w.eps[0].Inside().Limits()
		if tuner == nil && l.Idle != eagerIdle || l.Idle < l.Eager || l.Idle > idleMost {
			t.Errorf("%v: limits are %+v", transport, l)
		}
		w.drain()
	}
}

// TestIdle_settable: a limit that is given stays, and so does the default when nothing
// is to be measured.
func TestIdle_settable(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want int
	}{
		{Config{}, eagerIdle},
		{Config{Calibrate: true, EagerIdle: 40_000}, 40_000},
		{Config{Calibrate: true, EagerMax: 4000}, 4000},
		{Config{Calibrate: true, EagerMax: 4000, EagerIdle: 100_000}, 100_000},
	} {
		w := newCrew(t, 2, c.cfg)
		for range 3 * choiceSoon {
			w.talk(0, 1, 20_000)
		}
		if l := w.eps[0].Inside().Limits(); l.Idle != c.want || w.eps[0].peers[1].idle != nil {
			t.Errorf("%+v: limits are %+v", c.cfg, l)
		}
		w.drain()
	}
}

// TestIdle_typedAndLost: what a datatype picks out is not timed, and a message that is
// timed may be lost with its peer.
func TestIdle_typedAndLost(t *testing.T) {
	a, b := newEnds(t)
	a.cfg.tunesIdle, a.pieces.most = true, idleMost
	env := word(0, 1)
	for i := range 4 {
		buf := make([]byte, 80_000)
		_, cur := comb(t, 20_000, byte(i))
		want := packed(cur)
		finish(t, a, b, a.IsendTyped(env, 1, cur), b.Irecv(env, buf))
		if tuner := a.peers[1].idle; !bytes.Equal(buf, want) || tuner != nil && tuner.began != 0 {
			t.Fatalf("message %d: equal %v, timed %+v", i, bytes.Equal(buf, want), tuner)
		}
	}
	for a.peers[1].buffered > 0 {
		a.eng.Step()
		b.eng.Step()
	}
	a.Isend(env, 1, make([]byte, 20_000))
	if a.peers[1].idle.began == mono.Time(0) {
		t.Error("nothing is timed")
	}
	a.failures.failPeer(1, &Error{Code: PeerLost, Peer: 1})
	for range 100 {
		a.eng.Step()
	}
	if n := a.peers[1].buffered; n != 0 {
		t.Errorf("%d buffers are under way to a lost rank", n)
	}
}
