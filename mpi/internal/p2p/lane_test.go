package p2p

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestLane_connectionBreaks has eager messages go both ways at once, and breaks the connection
// in the middle: each arrives once, whole and in order.
func TestLane_connectionBreaks(t *testing.T) {
	again := uint32(0)
	for seed := range uint64(20) {
		w := newCrew(t, 2, Config{Transport: Hybrid, PromoteMessages: 1, ConnectEager: true})
		for rank, ep := range w.eps {
			ep.lanes.least = 2000 // as if frames were short
			ep.lanes.meet(&ep.peers[1-rank], true)
		}
		w.talk(0, 1, 100_000)
		w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
		rng := rand.New(rand.NewPCG(seed, 3))
		var all []*Request
		var in, out [60][]byte
		for i := range in {
			from := i % 2
			out[i] = bytes.Repeat([]byte{byte(i + 1)}, 100+rng.IntN(60_000))
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
		w.drain()
	}
	if again < 20 {
		t.Errorf("only %d messages were under way when connections broke", again)
	}
}
