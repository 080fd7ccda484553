package ddp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
)

func TestPut_golden(t *testing.T) {
	for _, c := range []struct {
		name string
		h    Header
		want []byte
	}{
		// Laid out by hand from RFC 5041, figures 3 and 5.
		{"tagged write, last", Header{Tagged: true, Last: true, ULP: 0x40, STag: 0x01020304, TO: 0x1112131415161718},
			[]byte{0xc1, 0x40, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}},
		{"untagged send, middle", Header{ULP: 0x43, QN: 0, MSN: 7, MO: 0x2000},
			[]byte{0x01, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0x20, 0}},
		{"terminate", Header{Last: true, ULP: 0x47, QN: 2, MSN: 1, ULP2: 0xaabbccdd},
			[]byte{0x41, 0x47, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}},
	} {
		b := make([]byte, UntaggedLen)
		n := c.h.Put(b)
		if n != c.h.Len() || !bytes.Equal(b[:n], c.want) {
			t.Errorf("%s: got % x, want % x", c.name, b[:n], c.want)
		}
		var back Header
		if !back.Parse(b[:n]) || back != c.h {
			t.Errorf("%s: parsed %+v", c.name, back)
		}
		if LenOf(b[0]) != n {
			t.Errorf("%s: LenOf = %d, want %d", c.name, LenOf(b[0]), n)
		}
	}
}

// Every bit of every field goes out and comes back alone, so no shift or mask
// can be wrong by one.
func TestPut_bitWalk(t *testing.T) {
	var b [UntaggedLen]byte
	check := func(h Header) {
		t.Helper()
		h.Put(b[:])
		var back Header
		if !back.Parse(b[:]) || back != h {
			t.Errorf("sent %+v, got %+v", h, back)
		}
	}
	for i := range 64 {
		check(Header{Tagged: true, TO: 1 << i})
		if i < 32 {
			check(Header{Tagged: true, STag: 1 << i})
			check(Header{ULP2: 1 << i})
			check(Header{QN: 1 << i})
			check(Header{MSN: iwarp.MSN(1) << i})
			check(Header{MO: 1 << i})
		}
		if i < 8 {
			check(Header{ULP: 1 << i})
			check(Header{Tagged: true, ULP: 1 << i})
		}
	}
}

func TestParse_refuses(t *testing.T) {
	var h Header
	good := make([]byte, UntaggedLen)
	(&Header{Last: true}).Put(good)
	for n := range UntaggedLen {
		if h.Parse(good[:n]) {
			t.Errorf("parsed an untagged header of %d bytes", n)
		}
	}
	for _, version := range []byte{0, 2, 3} {
		good[0] = good[0]&^3 | version
		if h.Parse(good) {
			t.Errorf("parsed DDP version %d", version)
		}
	}
}

// RFC 5041, section 4.1: reserved bits are zero when sent and ignored when
// received.
func TestParse_ignoresReserved(t *testing.T) {
	for _, want := range []Header{
		{Tagged: true, Last: true, ULP: 0x40, STag: 5, TO: 6},
		{ULP: 0x43, ULP2: 1, QN: 2, MSN: 3, MO: 4},
	} {
		b := make([]byte, UntaggedLen)
		want.Put(b)
		if b[0]&0x3c != 0 {
			t.Errorf("sent reserved bits: %#02x", b[0])
		}
		b[0] |= 0x3c
		var h Header
		if !h.Parse(b) || h != want {
			t.Errorf("with reserved bits %+v became %+v", want, h)
		}
	}
}

func TestAllocs_header(t *testing.T) {
	b := make([]byte, UntaggedLen)
	var back Header
	if n := testing.AllocsPerRun(100, func() {
		h := Header{Tagged: back.Last, Last: true, QN: 1, MSN: back.MSN + 1}
		h.Put(b)
		if !back.Parse(b) {
			t.Fatal("did not parse")
		}
	}); n != 0 {
		t.Errorf("%v allocations per header", n)
	}
}

func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		b := make([]byte, rng.IntN(24))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Header
		if !h.Parse(b) {
			return
		}
		out := make([]byte, h.Len())
		h.Put(out)
		if !again.Parse(out) || again != h {
			t.Fatalf("%+v became %+v", h, again)
		}
	})
}
