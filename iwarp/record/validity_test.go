package record

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestValidityMap_add(t *testing.T) {
	type add struct {
		off, n uint32
		ok     bool
	}
	tests := []struct {
		name   string
		length uint32
		adds   []add
		want   []Range
		bytes  uint32
	}{
		{"in order", 30, []add{{0, 10, true}, {10, 10, true}, {20, 10, true}}, []Range{{0, 30}}, 30},
		{"backwards", 30, []add{{20, 10, true}, {10, 10, true}, {0, 10, true}}, []Range{{0, 30}}, 30},
		{"middle last", 30, []add{{0, 10, true}, {20, 10, true}, {10, 10, true}}, []Range{{0, 30}}, 30},
		{"twice", 30, []add{{5, 5, true}, {5, 5, true}}, []Range{{5, 10}}, 5},
		{"inside", 30, []add{{5, 20, true}, {10, 5, true}}, []Range{{5, 25}}, 20},
		{"around", 30, []add{{10, 5, true}, {5, 20, true}}, []Range{{5, 25}}, 20},
		{"overlaps on both sides", 30, []add{{0, 10, true}, {20, 10, true}, {5, 20, true}}, []Range{{0, 30}}, 30},
		{"swallows several", 99, []add{{10, 1, true}, {20, 1, true}, {30, 1, true}, {40, 1, true}, {15, 20, true}}, []Range{{10, 11}, {15, 35}, {40, 41}}, 22},
		{"empty chunk", 30, []add{{30, 0, true}, {7, 0, true}}, nil, 0},
		{"past the end", 30, []add{{20, 11, false}, {31, 0, false}, {math.MaxUint32, 2, false}}, nil, 0},
		{"longest message", math.MaxUint32, []add{{0, math.MaxUint32, true}}, []Range{{0, math.MaxUint32}}, math.MaxUint32},
	}
	for _, tt := range tests {
		var m ValidityMap
		m.Init(tt.length)
		for _, a := range tt.adds {
			if m.Add(a.off, a.n) != a.ok {
				t.Errorf("%s: Add(%d, %d) = %v", tt.name, a.off, a.n, !a.ok)
			}
		}
		if !slices.Equal(m.Ranges(), tt.want) || m.Bytes() != tt.bytes || m.Length() != tt.length || m.Whole() != (tt.bytes == tt.length) {
			t.Errorf("%s: %v, %d bytes, whole %v", tt.name, m.Ranges(), m.Bytes(), m.Whole())
		}
	}
}

func TestValidityMap_empty(t *testing.T) {
	var m ValidityMap
	if !m.Whole() || !m.Add(0, 0) || m.Add(0, 1) || len(m.Ranges()) != 0 || !m.Has(0, 0) || m.Has(0, 1) {
		t.Error("the map of an empty message is not whole and empty")
	}
}

// A map that is full takes what joins a range, refuses what would be one more,
// and stays as it was when it refuses.
func TestValidityMap_full(t *testing.T) {
	var m ValidityMap
	m.Init(1000)
	for i := range uint32(MaxRanges) {
		if !m.Add(10*i, 5) {
			t.Fatalf("range %d was refused", i)
		}
	}
	before := m
	for _, off := range []uint32{7, 157, 900} {
		if m.Add(off, 1) {
			t.Errorf("took one range too many, at %d", off)
		}
	}
	if m != before {
		t.Error("changed by what was refused")
	}
	if !m.Add(5, 5) || len(m.Ranges()) != MaxRanges-1 || !m.Add(900, 1) {
		t.Error("filling a gap made no room")
	}
}

// The map against a bitmap, for chunks as they come over a bad network: cut to
// one size, shuffled, lost, doubled; and for any ranges at all.
func TestValidityMap_asBitmap(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		length := 1 + rng.Uint32N(300)
		var m ValidityMap
		m.Init(length)
		model := make([]bool, length)
		for range 100 {
			off := rng.Uint32N(length + 2)
			n := rng.Uint32N(1 + length/uint32(1+rng.IntN(40)))
			if seed%2 == 0 { // chunks of one size
				const size = 7
				off = off / size * size
				n = min(size, length-min(off, length))
			}
			checkAdd(t, seed, &m, model, off, n)
			if t.Failed() {
				return
			}
		}
	}
}

func checkAdd(t *testing.T, seed uint64, m *ValidityMap, model []bool, off, n uint32) {
	t.Helper()
	next := slices.Clone(model)
	fits := uint64(off)+uint64(n) <= uint64(len(model))
	if fits {
		for i := off; i < off+n; i++ {
			next[i] = true
		}
	}
	want := rangesOf(next)
	ok := m.Add(off, n)
	if ok != (fits && len(want) <= MaxRanges) {
		t.Fatalf("seed %d: Add(%d, %d) = %v with %v", seed, off, n, ok, m.Ranges())
	}
	if ok {
		copy(model, next)
	}
	want = rangesOf(model)
	count := uint32(0)
	for _, r := range want {
		count += r.End - r.Start
	}
	if !slices.Equal(m.Ranges(), want) || m.Bytes() != count || m.Whole() != (int(count) == len(model)) {
		t.Fatalf("seed %d: after Add(%d, %d): %v, %d bytes, want %v, %d", seed, off, n, m.Ranges(), m.Bytes(), want, count)
	}
	all := fits
	for i := off; all && i < off+n; i++ {
		all = model[i]
	}
	if m.Has(off, n) != (all || n == 0) {
		t.Fatalf("seed %d: Has(%d, %d) = %v with %v", seed, off, n, !all, want)
	}
}

func rangesOf(bits []bool) []Range {
	var out []Range
	for i, set := range bits {
		switch {
		case !set:
		case len(out) > 0 && out[len(out)-1].End == uint32(i):
			out[len(out)-1].End++
		default:
			out = append(out, Range{uint32(i), uint32(i) + 1})
		}
	}
	return out
}

func TestAllocs_validity(t *testing.T) {
	var m ValidityMap
	if n := testing.AllocsPerRun(100, func() {
		m.Init(100)
		for _, off := range []uint32{0, 50, 20, 10, 80, 30} {
			m.Add(off, 10)
		}
		if m.Bytes() != 60 || len(m.Ranges()) != 3 {
			t.Fatalf("%v", m.Ranges())
		}
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func BenchmarkValidityMap_inOrder(b *testing.B) {
	var m ValidityMap
	m.Init(math.MaxUint32)
	off := uint32(0)
	for b.Loop() {
		if off > math.MaxUint32-9000 {
			m.Init(math.MaxUint32)
			off = 0
		}
		m.Add(off, 8000)
		off += 8000
	}
}
