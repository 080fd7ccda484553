package verbs

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// Random use against a map: every valid key is found, and no other.
func TestKeyTable_random(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var kt keyTable
		kt.init([32]byte{byte(seed)})
		valid := map[uint32]*region{}
		ended := map[uint32]bool{}
		var live []*region
		for range 5000 {
			if len(live) > 0 && rng.IntN(5) < 2 {
				i := rng.IntN(len(live))
				r := live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				delete(valid, r.key)
				ended[r.key] = true
				kt.end(r, nil)
				continue
			}
			r := &region{}
			if !kt.add(r) {
				t.Fatal("no room")
			}
			if valid[r.key] != nil || r.key == 0 {
				t.Fatalf("seed %d: key %#x was given twice, or is 0", seed, r.key)
			}
			valid[r.key] = r
			delete(ended, r.key)
			live = append(live, r)
		}
		for key, r := range valid {
			if kt.lookup(key) != r || kt.lookup(key+1) != valid[key+1] {
				t.Fatalf("seed %d: key %#x or its neighbour names something else", seed, key)
			}
		}
		for key := range ended {
			if kt.lookup(key) != nil {
				t.Fatalf("seed %d: key %#x is valid after its end", seed, key)
			}
		}
		if want := len(valid) + restMax; kt.used != want || kt.lookup(0) != nil {
			t.Fatalf("seed %d: %d slots in use, want %d", seed, kt.used, want)
		}
	}
}

// A key that has ended is not drawn again for a while, though the generator
// says so.
func TestKeyTable_restingKeyIsNotDrawn(t *testing.T) {
	var kt keyTable
	var r region
	kt.init([32]byte{1})
	kt.add(&r)
	old := r.key
	kt.end(&r, nil)
	for i := range restMax {
		kt.numbers.Seed([32]byte{1}) // draws the same numbers again
		kt.add(&r)
		if r.key == old {
			t.Fatalf("key %#x came back after %d others", old, i)
		}
		kt.end(&r, nil)
	}
	kt.numbers.Seed([32]byte{1})
	if kt.add(&r); r.key != old {
		t.Errorf("key %#x rests for ever", old)
	}
}

// Keys are of all 32 bits: no bit can be foretold from others, or from a key
// before.
func TestKeyTable_keysAreRandom(t *testing.T) {
	const n = 4096
	var kt keyTable
	c := Config{}
	kt.init(c.keySeed())
	var ones [32]int
	distance, last := 0, uint32(0)
	for range n {
		var r region
		kt.add(&r)
		for b := range ones {
			ones[b] += int(r.key >> b & 1)
		}
		distance += bits.OnesCount32(r.key ^ last)
		last = r.key
	}
	for b, k := range ones {
		if k < n/2-6*32 || k > n/2+6*32 { // six sigma
			t.Errorf("bit %d is set in %d of %d keys", b, k, n)
		}
	}
	if mean := float64(distance) / n; mean < 15.7 || mean > 16.3 { // six sigma
		t.Errorf("successive keys differ in %.2f bits", mean)
	}
}

func TestKeySeed(t *testing.T) {
	draw := func(c Config) uint32 {
		var kt keyTable
		var r region
		kt.init(c.keySeed())
		kt.add(&r)
		return r.key
	}
	if a, b := draw(Config{}), draw(Config{}); a == b {
		t.Error("two contexts draw the same keys")
	}
	sim := Config{ZeroBased: true, Key: 7, Epoch: 1}
	if a, b := draw(sim), draw(sim); a != b {
		t.Error("in the simulator keys do not repeat themselves")
	}
	other := sim
	other.Epoch = 2
	if draw(sim) == draw(other) {
		t.Error("two nodes of the simulator draw the same keys")
	}
}

func BenchmarkKeyTable_lookup(b *testing.B) {
	var kt keyTable
	kt.init([32]byte{})
	var rs [512]region
	for i := range rs {
		kt.add(&rs[i])
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if kt.lookup(rs[3].key) == nil {
				b.Fatal("not found")
			}
		}
	})
	b.Run("each of 512", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if kt.lookup(rs[i&511].key) == nil {
				b.Fatal("not found")
			}
			i++
		}
	})
}
