package record

import (
	"bytes"
	"math"
	"testing"
)

func TestChunk_golden(t *testing.T) {
	c := Chunk{ID: 0x01020304, Length: 0x11121314, Offset: 0x05060708}
	want := []byte{1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 5, 6, 7, 8}
	var b [ChunkLen]byte
	if c.Put(b[:]); !bytes.Equal(b[:], want) {
		t.Errorf("got % x", b)
	}
}

func TestChunk_bitWalk(t *testing.T) {
	var b [ChunkLen]byte
	for i := range 32 {
		for _, c := range []Chunk{{ID: 1 << i}, {Length: 1 << i}, {Offset: 1 << i}} {
			var back Chunk
			if c.Put(b[:]); !back.Parse(b[:]) || back != c {
				t.Errorf("sent %+v, got %+v", c, back)
			}
		}
	}
	for n := range ChunkLen {
		if new(Chunk).Parse(b[:n]) {
			t.Errorf("parsed %d bytes", n)
		}
	}
}

func TestChunk_Fits(t *testing.T) {
	tests := []struct {
		name string
		c    Chunk
		to   uint64
		n    int
		last bool
		want bool
	}{
		{"whole message", Chunk{Length: 10}, 0, 10, true, true},
		{"first part", Chunk{Length: 10}, 0, 9, false, true},
		{"last part", Chunk{Length: 10, Offset: 9}, 9, 1, true, true},
		{"last part without L", Chunk{Length: 10, Offset: 9}, 9, 1, false, false},
		{"L in the middle", Chunk{Length: 10, Offset: 1}, 1, 8, true, false},
		{"past the end", Chunk{Length: 10, Offset: 9}, 9, 2, true, false},
		{"empty message", Chunk{}, 77, 0, true, true},
		{"begins below address 0", Chunk{Length: 10, Offset: 9}, 8, 1, true, false},
		{"sum wraps 32 bits", Chunk{Length: 10, Offset: math.MaxUint32}, math.MaxUint64, 11, true, false},
		{"as long as can be", Chunk{Length: math.MaxUint32, Offset: math.MaxUint32 - 1}, math.MaxUint32, 1, true, true},
		{"negative", Chunk{Length: 10, Offset: 10}, 10, -1, false, false},
	}
	for _, tt := range tests {
		if got := tt.c.Fits(tt.to, tt.n, tt.last); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func FuzzChunk(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 0, 0, 0, 10, 0, 0, 0, 9}, uint64(9), uint16(1), true)
	f.Fuzz(func(t *testing.T, b []byte, to uint64, n uint16, last bool) {
		var c Chunk
		if !c.Parse(b) {
			return
		}
		var out [ChunkLen]byte
		if c.Put(out[:]); !bytes.Equal(out[:], b[:ChunkLen]) {
			t.Fatalf("% x came back as % x", b, out)
		}
		if !c.Fits(to, int(n), last) {
			return
		}
		var m ValidityMap
		if m.Init(c.Length); !m.Add(c.Offset, uint32(n)) || m.Bytes() != uint32(n) {
			t.Fatalf("%+v fits and cannot be added", c)
		}
	})
}
