package reliable

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
)

// Whatever a channel does, messages arrive once and in order, and no Write is
// missing when a message behind it arrives.
func TestProtocol_model(t *testing.T) {
	ever := mono.Time(mono.Second) * 3600
	for name, f := range map[string]faults{
		"perfect":     {},
		"loss 1 %":    {loss: 0.01},
		"loss 20 %":   {loss: 0.2},
		"doubled":     {double: 0.3},
		"reordered":   {delay: 100 * mono.Microsecond},
		"late":        {loss: 0.05, double: 0.05, delay: 8 * mono.Millisecond},
		"everything":  {loss: 0.1, double: 0.1, delay: 60 * mono.Microsecond},
		"partition":   {loss: 0.02, cut: [2]mono.Time{mono.Time(mono.Millisecond), mono.Time(900 * mono.Millisecond)}},
		"narrow":      {rate: 20e6, room: 3000, delay: 10 * mono.Microsecond},
		"very narrow": {rate: 2e6, room: 1000, loss: 0.05},

		"two ways":        {second: true, later: 20 * mono.Microsecond},
		"two, everything": {second: true, later: 20 * mono.Microsecond, loss: 0.1, double: 0.1, delay: 60 * mono.Microsecond},
		"two, partition":  {second: true, loss: 0.02, cut: [2]mono.Time{mono.Time(mono.Millisecond), mono.Time(900 * mono.Millisecond)}},
		"two, narrow":     {second: true, rate: 20e6, room: 3000, delay: 10 * mono.Microsecond},
		"firewall":        {second: true, wall: [2]mono.Time{0, ever}, loss: 0.02},
		"sudden firewall": {second: true, wall: [2]mono.Time{mono.Time(2 * mono.Millisecond), mono.Time(500 * mono.Millisecond)}, loss: 0.02},
		"half of it":      {second: true, eats: 0.5},
		"all of it":       {second: true, eats: 1},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(25) {
				slots := []int{64, 96, 256}[seed%3]
				ch := newChannel(t, 3, seed, slots, arq.Config{})
				ch.faults = f
				if f.second {
					ch.two()
				}
				for from := range ch.nodes {
					for to := range ch.nodes {
						if from != to {
							ch.write(from, to, 150)
						}
					}
				}
				ch.finish()
				if went := ch.there > 0; went != f.second {
					t.Errorf("something went a second path: %v", went)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// Windows of all sizes work, and PSNs wrap.
func TestProtocol_windows(t *testing.T) {
	for _, window := range []int{1, 2, 16, 64, arq.WindowMax} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			ch := newChannel(t, 2, uint64(window), arq.WindowMax, arq.Config{Window: window})
			ch.faults = faults{loss: 0.05, double: 0.05, delay: 30 * mono.Microsecond}
			for _, x := range ch.nodes {
				for id, p := range x.peers {
					if id == x.id {
						continue
					}
					c := x.connOf(ch.now, p)
					x.assocs.Expect(&c.Assoc, 0xffffff80)
					c.Snd.Init(arq.NewShared(*x.assocs.Config(), arq.WindowMax), 0xffffff80)
				}
			}
			ch.write(0, 1, 400)
			ch.write(1, 0, 400)
			ch.finish()
		})
	}
}
