package conform

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs"
)

// manyWorlds makes the collector of garbage run seldom: worlds come and go by the
// thousand.
func manyWorlds(t *testing.T) {
	was := debug.SetGCPercent(1000)
	t.Cleanup(func() { debug.SetGCPercent(was) })
}

// sent returns how many bytes each end of an exchange sends when nothing happens.
func sent(t *testing.T, p verbs.ConnParam) (n [2]int64) {
	t.Helper()
	x := newExchange(t, "nothing is done", p, [2]sim.StreamConfig{})
	x.run(true)
	for i, k := range x.ends {
		n[i] = int64(k.streams.Stats().TxBytes)
	}
	if n[0] < 1500 || n[1] < 1500 || n[0] > 4000 || n[1] > 4000 {
		t.Fatalf("%d bytes there, %d back: the exchange is not what the test is made for", n[0], n[1])
	}
	return n
}

// TestRC_segmentedAnywhere cuts the stream once, at each byte of an exchange that
// has every kind of message: what is behind the cut comes later.
func TestRC_segmentedAnywhere(t *testing.T) {
	oneGoroutine(t)
	manyWorlds(t)
	for _, c := range []int{0, 3, 6} {
		c := connects[c]
		total := sent(t, c.p)
		for back := range 2 {
			t.Run(fmt.Sprint(c.name, []string{" there", " back"}[back]), func(t *testing.T) {
				t.Parallel()
				for cut := int64(1); cut < total[back]; cut++ {
					var s [2]sim.StreamConfig
					s[back].Gap = 30 * mono.Microsecond
					s[back].Segment = func(_ int, off int64, n int) int {
						if off < cut {
							n = int(min(int64(n), cut-off))
						}
						return n
					}
					newExchange(t, fmt.Sprintf("cut at byte %d of %d", cut, total[back]), c.p, s).run(true)
				}
			})
		}
	}
}

// TestRC_segmentedEvenly cuts the stream into parts of all small lengths.
func TestRC_segmentedEvenly(t *testing.T) {
	oneGoroutine(t)
	manyWorlds(t)
	for _, c := range connects {
		for n := 1; n < 40; n++ {
			s := sim.StreamConfig{Gap: 2 * mono.Microsecond, Segment: func(int, int64, int) int { return n }}
			newExchange(t, fmt.Sprintf("%s, cut every %d bytes", c.name, n), c.p, [2]sim.StreamConfig{s, s}).run(true)
		}
	}
}

// TestRC_sentInParts has streams that take few bytes at a time, of all small
// numbers, and windows as small.
func TestRC_sentInParts(t *testing.T) {
	oneGoroutine(t)
	manyWorlds(t)
	for _, c := range connects {
		for n := 1; n < 100; n += 1 + n/8 {
			for _, s := range []sim.StreamConfig{{SendBuffer: n}, {RecvBuffer: n}, {SendBuffer: n, RecvBuffer: 3}} {
				newExchange(t, fmt.Sprintf("%s, %d bytes taken at a time", c.name, n), c.p, [2]sim.StreamConfig{s, s}).run(true)
			}
		}
	}
}

// TestRC_streamFailsAnywhere lets the stream fail at each byte of the exchange,
// in each manner, and every third time while it is choked: no byte is wrong, no completion is lost or comes twice, and
// both ends come to an end.
func TestRC_streamFailsAnywhere(t *testing.T) {
	oneGoroutine(t)
	manyWorlds(t)
	p := verbs.ConnParam{CRC: true, RTR: mpa.RTRSend}
	total := sent(t, p)
	for _, kind := range []sim.StreamFaultKind{sim.StreamReset, sim.StreamResetSender, sim.StreamResetReceiver, sim.StreamFIN, sim.StreamSilence} {
		for back := range 2 {
			t.Run(fmt.Sprint(kind, []string{" there", " back"}[back]), func(t *testing.T) {
				t.Parallel()
				for at := int64(0); at < total[back]; at++ {
					var s [2]sim.StreamConfig
					s[back].Faults = []sim.StreamFault{{Offset: at, Kind: kind}}
					if at%3 == 0 {
						s[0].SendBuffer, s[1].SendBuffer = 61, 67
					}
					newExchange(t, fmt.Sprintf("%v at byte %d of %d", kind, at, total[back]), p, s).run(false)
				}
			})
		}
	}
}

// TestRC_silenceHeals lets nothing through for a while, at places all over the
// exchange: nothing is lost.
func TestRC_silenceHeals(t *testing.T) {
	oneGoroutine(t)
	manyWorlds(t)
	p := verbs.ConnParam{}
	total := sent(t, p)
	for back := range 2 {
		for at := int64(0); at < total[back]; at += 7 {
			var s [2]sim.StreamConfig
			s[back].Faults = []sim.StreamFault{{Offset: at, Kind: sim.StreamSilence, Heal: 300 * mono.Millisecond}}
			newExchange(t, fmt.Sprintf("silence at byte %d of %d", at, total[back]), p, s).run(true)
		}
	}
}
