package addrtable

import (
	"math/rand/v2"
	"testing"
)

type peer struct{ key int }

// find looks for a key whose hash is one of few, so that most of them collide.
func find(t *Table[peer], key int) *peer {
	hash := hashOf(key)
	for p, at := t.First(hash); p != nil; p, at = t.Next(hash, at) {
		if p.key == key {
			return p
		}
	}
	return nil
}

// hashOf has few values in the upper half, and two keys for each.
func hashOf(key int) uint64 { return uint64(key%40)<<32 | uint64(key%150) }

// TestTable_model compares the table with a map over many additions and removals, with
// keys that collide.
func TestTable_model(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var table Table[peer]
		model := map[int]*peer{}
		for i := range 5000 {
			k := rng.IntN(300)
			switch p := model[k]; {
			case p == nil && rng.IntN(2) == 0:
				p = &peer{k}
				table.Add(hashOf(k), p)
				model[k] = p
			case rng.IntN(2) == 0:
				if p == nil {
					p = &peer{k} // one that is not there
				}
				table.Remove(hashOf(k), p)
				delete(model, k)
			}
			k = rng.IntN(300)
			if got := find(&table, k); got != model[k] {
				t.Fatalf("seed %d, step %d: found %p, want %p", seed, i, got, model[k])
			}
			if table.Len() != len(model) || 4*table.n > 3*len(table.slots) {
				t.Fatalf("seed %d: %d values in %d slots, want %d", seed, table.Len(), len(table.slots), len(model))
			}
		}
		for k, want := range model {
			if got := find(&table, k); got != want {
				t.Fatalf("seed %d: found %p, want %p", seed, got, want)
			}
		}
	}
}

func BenchmarkTable_find(b *testing.B) {
	var table Table[peer]
	hash := func(key int) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 }
	for k := range 1024 {
		table.Add(hash(k), &peer{k})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := i & 1023
		if p, _ := table.First(hash(k)); p.key != k {
			b.Fatal("not found")
		}
	}
}
