package llp

import (
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/fabric"
)

// TestRemoteTable_model compares the table with a map over many additions and
// removals, with keys that collide.
func TestRemoteTable_model(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var table remoteTable
		model := map[fabric.Remote]*Peer{}
		key := func() fabric.Remote {
			n := uint32(rng.IntN(300))
			if n%2 == 0 {
				return fabric.Remote4(10<<24|n, 18700)
			}
			return fabric.Remote6(0xfd00<<48, uint64(n), 18700)
		}
		for i := range 5000 {
			k := key()
			switch _, have := model[k]; {
			case !have && rng.IntN(2) == 0:
				p := &Peer{Remote: k}
				table.add(p)
				model[k] = p
			case rng.IntN(2) == 0:
				table.remove(k) // perhaps it is not there
				delete(model, k)
			}
			k = key()
			if got := table.find(k); got != model[k] {
				t.Fatalf("seed %d, step %d: found %p, want %p", seed, i, got, model[k])
			}
			if table.n != len(model) || 2*table.n > len(table.slots) {
				t.Fatalf("seed %d: %d keys in %d slots, want %d", seed, table.n, len(table.slots), len(model))
			}
		}
		for k, want := range model {
			if got := table.find(k); got != want {
				t.Fatalf("seed %d: found %p, want %p", seed, got, want)
			}
		}
	}
}
