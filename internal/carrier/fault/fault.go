// Package fault wraps a carrier so that what it sends gets lost, doubled,
// delayed or changed, with probabilities and a seed. It is how real carriers
// are tested and measured under loss: `xperf --loss`, and tests over veth.
// The simulator has faults of its own, on its links.
package fault

import (
	"cmp"
	"fmt"
	"math/rand/v2"
)

// Config says how bad the carrier shall be. Its zero value changes nothing.
// Probabilities are from 0 to 1 and per packet.
type Config struct {
	Seed    uint64
	Loss    float64 // the packet is not sent
	Dup     float64 // it is sent twice
	Reorder float64 // it is held back while others overtake it
	Span    int     // for how many packets sent or calls of Flush at most; default 8
	Corrupt float64 // one to three of its bits flip
}

// Stats counts what has been done to packets.
type Stats struct {
	Packets                                uint64 // that came in
	Lost, Duplicated, Reordered, Corrupted uint64
	// NoFrame counts packets that should have been doubled, held or changed,
	// but went out as they were: there was no frame for a copy.
	NoFrame uint64
}

// dice decides what happens.
type dice struct {
	Config
	rand  *rand.Rand
	stats Stats
}

func newDice(c Config) (dice, error) {
	for _, p := range []float64{c.Loss, c.Dup, c.Reorder, c.Corrupt} {
		if !(p >= 0 && p <= 1) {
			return dice{}, fmt.Errorf("fault: probability %v is not between 0 and 1", p)
		}
	}
	if c.Span < 0 {
		return dice{}, fmt.Errorf("fault: span %d is negative", c.Span)
	}
	c.Span = cmp.Or(c.Span, 8)
	return dice{Config: c, rand: rand.New(rand.NewPCG(c.Seed, 0x666175_6c74))}, nil
}

func (d *dice) chance(probability float64) bool {
	return probability > 0 && d.rand.Float64() < probability
}

// holds returns for how many packets and flushes to hold a packet back.
func (d *dice) holds() int { return 1 + d.rand.IntN(d.Span) }
