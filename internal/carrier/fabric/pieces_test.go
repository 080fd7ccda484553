package fabric_test

import (
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// TestPieces_verdicts plays cards that cut rightly and wrongly: what was sent in pieces
// is lost always, never, or for a while.
func TestPieces_verdicts(t *testing.T) {
	for _, c := range []struct {
		name           string
		lost           func(sent int) bool // an aggregate that goes out when so many datagrams had
		leastCut, most int                 // of 100,000 datagrams, those that went in pieces
	}{
		{"good", func(int) bool { return false }, 100_000, 100_000},
		{"bad", func(int) bool { return true }, 64, 2000},
		{"bad for a while", func(sent int) bool { return sent < 10_000 }, 70_000, 95_000},
		{"every third aggregate is lost", func(sent int) bool { return sent/16%3 == 0 }, 100_000, 100_000},
	} {
		var p fabric.Pieces
		cut := 0
		for sent := 0; sent < 100_000; sent += 16 {
			if p.Alone() {
				for range 16 {
					p.Sent(1)
				}
				continue
			}
			cut += 16
			p.Sent(16)
			if c.lost(sent) {
				for range 16 {
					p.Again()
					p.Sent(1)
				}
			}
		}
		if cut < c.leastCut || cut > c.most {
			t.Errorf("%s: %d of 100,000 datagrams went in pieces, want %d to %d", c.name, cut, c.leastCut, c.most)
		}
	}
}
