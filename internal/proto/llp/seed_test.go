package llp

import (
	"testing"

	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestNumber_seed: numbers follow from the seed, and only without one from what
// a peer can know.
func TestNumber_seed(t *testing.T) {
	first := func(seed [32]byte) uint32 {
		r := newRig(t)
		e, err := New(r.open(0, 7, 1472, dgram.Config{}).ep.dg, Config{Key: 1, Epoch: 7, Seed: seed}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return e.shake.number()
	}
	if a, b := first([32]byte{}), first([32]byte{}); a != b {
		t.Error("a simulation would not repeat itself")
	}
	if a, b := first([32]byte{1}), first([32]byte{2}); a == b || a == first([32]byte{}) {
		t.Errorf("%#x and %#x follow from key and epoch", a, b)
	}
}
