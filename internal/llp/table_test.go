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
		model := map[fabric.Remote]int{}
		key := func() fabric.Remote { return fabric.Remote(10<<40 | uint64(rng.IntN(300))<<16 | 18700) }
		for i := range 5000 {
			k := key()
			switch _, have := model[k]; {
			case !have && rng.IntN(2) == 0:
				table.add(k, i)
				model[k] = i
			case rng.IntN(2) == 0:
				table.remove(k) // perhaps it is not there
				delete(model, k)
			}
			k = key()
			want, have := model[k]
			if got, ok := table.find(k); ok != have || ok && got != want {
				t.Fatalf("seed %d, step %d: found %d %v, want %d %v", seed, i, got, ok, want, have)
			}
			if table.n != len(model) || 2*table.n > len(table.keys) {
				t.Fatalf("seed %d: %d keys in %d slots, want %d", seed, table.n, len(table.keys), len(model))
			}
		}
		for k, want := range model {
			if got, ok := table.find(k); !ok || got != want {
				t.Fatalf("seed %d: found %d %v, want %d", seed, got, ok, want)
			}
		}
	}
}
