package p2p

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
)

// copiesOf are copies of which a decision has been made: the shortest takes least ns for a byte, most take each.
func copiesOf(least, each float64) (c copies) {
	c.took[0] = least
	for i := 1; i < tuneCopies; i++ {
		c.took[i] = each
	}
	return c
}

func TestTuner_limit(t *testing.T) {
	cost := shm.PullCost{Call: 1500, PerByte: 0.068}
	for _, c := range []struct {
		name       string
		least      float64 // ns per byte of a copy into the channel
		known      float64 // out of it
		lo, x      int
		aloneLeast int // the limit of a message alone
		aloneMost  int
	}{
		{"cores near each other", 0.095, 0, 23_000, 26_000, 9000, 11_000},
		{"cores far from each other", 0.35, 0, tuneLeast, tuneLeast, tuneLeast, tuneLeast},
		{"in between", 0.15, 0, 11_000, 12_000, 5000, 6000},
		{"a copy that costs less than half a pull", 0.02, 0, 40_000, 40_000, 40_000, 40_000},
		{"a clock that stands still", 0, 0, 40_000, 40_000, 40_000, 40_000},
		{"a copy out of the channel takes long", 0.05, 0.2, 40_000, 40_000, 8500, 9000},
		{"and short", 0.15, 0.05, 11_000, 12_000, 9000, 9500},
	} {
		u := &tuner{in: copiesOf(c.least, c.least*1.4), known: c.known}
		if n := tuneLimit(cost, u.row(), 40_000); n < c.lo || n > c.x {
			t.Errorf("%s: %d, want %d to %d", c.name, n, c.lo, c.x)
		}
		if n := tuneLimit(cost, u.alone(), 40_000); n > c.aloneMost || n < c.aloneLeast {
			t.Errorf("%s: alone %d, want %d to %d", c.name, n, c.aloneLeast, c.aloneMost)
		}
	}
}

// TestTuner_disturbed: of several copies the shortest and the fourth count, and each decision
// stands for itself.
func TestTuner_disturbed(t *testing.T) {
	u := &copies{}
	for round, base := range []mono.Duration{300, 900} {
		for i := 1; i <= tuneCopies; i++ {
			took := base
			if i > 5 {
				took = 4 * mono.Millisecond
			}
			if i == 4 {
				took /= 2
			}
			if made := u.copied(3000, took); made != (i == tuneCopies) {
				t.Fatalf("round %d, copy %d: a decision: %v", round, i, made)
			}
		}
		if want := float64(base) / 3000; u.typical() != want || u.took[0] != want/2 {
			t.Errorf("round %d: %g ns per byte, %g at least, want %g and half of it", round, u.typical(), u.took[0], want)
		}
	}
}

func TestTuner_nil(t *testing.T) {
	var u *tuner
	if u.try() {
		t.Error("a channel without a tuner tries copies")
	}
}

// TestChannel_tuned: the limit of a channel that is calibrated follows what copies take, in
// its bounds, and messages on both sides of it come in order, those that are copied
// for trial too.
func TestChannel_tuned(t *testing.T) {
	w := newCrew(t, 2, near, func(_ int, c *Config) { c.Calibrate = true })
	p := &w.eps[0].peers[1]
	for i := range 400 {
		n := []int{3000, 5000, 20_000, 100, 24_000, 60_000}[i%6]
		src, dst := bytes.Repeat([]byte{byte(i)}, n), make([]byte, n)
		send := w.eps[0].Isend(word(0, 1), 1, src)
		recv := w.eps[1].Irecv(word(0, 1), dst)
		w.until(func() bool { return send.Done() && recv.Done() })
		_, err := send.Wait()
		must(t, err)
		_, err = recv.Wait()
		must(t, err)
		if !bytes.Equal(src, dst) {
			t.Fatalf("message %d is not what was sent", i)
		}
		if p.eagerMax != p.eagerTop || p.eagerTop < tuneLeast || p.eagerTop > p.eagerCap {
			t.Fatalf("after message %d the limits are %d and %d, of at most %d", i, p.eagerMax, p.eagerTop, p.eagerCap)
		}
	}
	if p.tune != nil && p.tune.in.tick < tuneCopies { // nil: pulls cannot be measured here
		t.Errorf("%d copies were looked at", p.tune.in.tick)
	}
	if q := w.eps[1].peers[0].tune; q != nil && q.known <= 0 {
		t.Error("the receiver does not know what its copies take")
	}
	w.drain()
}

// A message that is alone is pulled from a lesser length on than one of a row: the neighbour has sent something since
// the one before. That it has pulled that one does not count.
func TestChannel_alone(t *testing.T) {
	w := newCrew(t, 2, near, func(_ int, c *Config) { c.Calibrate = true })
	send := func(from, n int) {
		recv := w.eps[1-from].Irecv(word(from, 1), make([]byte, n))
		sent := w.eps[from].Isend(word(from, 1), 1-from, make([]byte, n))
		w.until(func() bool { return sent.Done() && recv.Done() })
		_, err := sent.Wait()
		must(t, err)
		_, err = recv.Wait()
		must(t, err)
	}
	p := &w.eps[0].peers[1]
	send(0, 100)
	if p.tune = nil; !p.channel.Pulls() {
		t.Skip("process_vm_readv is not allowed here")
	}
	p.plainMax = 8000
	p.setTop(16_000)
	for i, c := range []struct {
		answer int // bytes that come before, if not 0
		n      int
		pulled bool
	}{
		{0, 10_000, false}, {10, 10_000, true}, {0, 10_000, false}, {0, 10_000, false},
		{20_000, 8000, false}, {0, 10_000, true}, {10, 16_001, true}, {0, 16_001, true}, {0, 10_000, false},
	} {
		if c.answer > 0 {
			send(1, c.answer)
		}
		before := w.eps[0].Stats.Rendezvous
		send(0, c.n)
		if pulled := w.eps[0].Stats.Rendezvous > before; pulled != c.pulled {
			t.Errorf("message %d of %d bytes behind %d of the other rank: pulled %v", i, c.n, c.answer, pulled)
		}
	}
	w.drain()
}

// TestChannel_tunedIsSettable: a limit that is given stays.
func TestChannel_tunedIsSettable(t *testing.T) {
	for _, c := range []Config{{EagerMax: 4 << 10}, {EagerNear: 40_000}, {EagerNear: -1}} {
		want := int32(max(c.EagerMax, c.EagerNear, 0))
		c.Shared, c.Calibrate = true, true
		w := newCrew(t, 2, c)
		if p := &w.eps[0].peers[1]; p.tune != nil || p.eagerMax != want || p.channel == nil {
			t.Errorf("%+v: the limit is %d, want %d; calibrated: %v", c, p.eagerMax, want, p.tune != nil)
		}
		for _, n := range []int{0, 39_000, 41_000} {
			send := w.eps[0].Isend(word(0, 1), 1, make([]byte, n))
			recv := w.eps[1].Irecv(word(0, 1), make([]byte, n))
			w.until(func() bool { return send.Done() && recv.Done() })
			_, err := send.Wait()
			must(t, err)
			_, err = recv.Wait()
			must(t, err)
			if near := w.eps[0].Stats.Near; n == 39_000 && (near == 2) != (want == 40_000) {
				t.Errorf("%+v: %d messages were copied through the channel", c, near)
			}
		}
		w.drain()
	}
}
