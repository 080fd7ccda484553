package verbs

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The history of a source against a set: a record that has ended is over, one
// that has not is not over as long as it is less than the history behind.
func TestRecordHistory_asSet(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var s recordSource
		ended := map[uint32]bool{}
		next := rng.Uint32()
		if seed%3 == 0 {
			next = math.MaxUint32 - 700
		}
		if s.over(next) {
			t.Fatalf("seed %d: over before anything has ended", seed)
		}
		for range 3000 {
			switch {
			case rng.IntN(200) == 0:
				next += rng.Uint32N(2 * recordHistory)
			case rng.IntN(3) > 0:
				next++
			}
			id := next - rng.Uint32N(3*recordHistory/2)
			s.end(id)
			ended[id] = true
			for range 8 {
				id := s.top - recordHistory - 20 + rng.Uint32N(recordHistory+40)
				old := int32(s.top-id) >= recordHistory
				if got := s.over(id); got != (ended[id] || old) {
					t.Fatalf("seed %d: record %d with %d as the highest: over is %v, it has ended: %v", seed, id, s.top, got, ended[id])
				}
			}
		}
	}
}
