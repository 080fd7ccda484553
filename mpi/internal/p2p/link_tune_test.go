package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// TestLinkTuner_picksTheFasterWay plays runs of messages whose time is known: one message
// at a time, and windows of them.
func TestLinkTuner_picksTheFasterWay(t *testing.T) {
	type costs struct{ once, each float64 } // ns for a run, and for each byte of it
	for name, c := range map[string]struct {
		datagrams, link costs
		n               uint64
		window          int
		want            option
	}{
		"long":                     {costs{2000, 1}, costs{9000, 0.5}, 1 << 20, 1, overLink},
		"short":                    {costs{2000, 1}, costs{9000, 0.5}, 8 << 10, 1, inDatagrams},
		"short, in a window":       {costs{2000, 1}, costs{9000, 0.5}, 8 << 10, 64, overLink},
		"a card without copies":    {costs{2000, 0.1}, costs{9000, 0.5}, 1 << 20, 16, inDatagrams},
		"longer than a run may be": {costs{2000, 1}, costs{9000, 0.5}, 4 << 20, 64, overLink},
	} {
		var l linkTuner
		now := mono.Time(1)
		better := 0
		const runs = 400
		for range runs {
			var under []option
			for range c.window {
				under = append(under, l.begin(now, c.n, messageData))
			}
			paid := [options]bool{}
			for _, way := range under {
				cost := [options]costs{inDatagrams: c.datagrams, overLink: c.link}[way]
				if !paid[way] {
					paid[way] = true
					now = now.Add(mono.Duration(cost.once))
				}
				now = now.Add(mono.Duration(cost.each * float64(c.n)))
				l.ended(now, c.n, false)
				if way == c.want {
					better++
				}
			}
			if l.under != 0 {
				t.Fatalf("%s: %d messages are under way", name, l.under)
			}
			now += 1000
		}
		if all := runs * c.window; better < all*9/10 {
			t.Errorf("%s: %d of %d messages went the better way", name, better, all)
		}
	}
}

// TestLinkTuner_failures: what has failed, and runs of different lengths, count nowhere.
func TestLinkTuner_failures(t *testing.T) {
	var l linkTuner
	for i := range mono.Time(100) {
		l.begin(i, 50_000, messageData)
		if i%2 == 0 {
			l.begin(i, 5_000_000, messageData)
			l.ended(i+1, 5_000_000, false)
		}
		l.ended(i+1, 50_000, i%2 == 1)
	}
	for class := range l.classes {
		for several, c := range l.classes[class] {
			if c.timed != [options]uint8{} || c.decided {
				t.Errorf("class %d, several %d: %+v", class, several, c)
			}
		}
	}
}
