package mpa

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// From siw: its Terminate for a CRC that was wrong, with a right one.
func TestTrailer_inParts(t *testing.T) {
	want, _ := hex.DecodeString("00164147000000000000000200000001000000000202000075d367ed")
	body := want[:len(want)-CRCLen]
	tx := Tx{CRC: true}
	var b [TrailerMax]byte
	for i := range body {
		if n := tx.Trailer(b[:], body[:i], nil, body[i:]); n != CRCLen || !bytes.Equal(b[:n], want[len(body):]) {
			t.Errorf("cut at %d: % x, want % x", i, b[:n], want[len(body):])
		}
	}
}

func TestPad(t *testing.T) {
	for n := range 64 {
		if total := LengthLen + n + Pad(n); total%4 != 0 || Pad(n) < 0 || Pad(n) > 3 {
			t.Errorf("Pad(%d) = %d", n, Pad(n))
		}
		for _, crc := range []bool{false, true} {
			tx := Tx{CRC: crc}
			b := bytes.Repeat([]byte{0xee}, TrailerMax)
			body := make([]byte, LengthLen+n)
			k := tx.Trailer(b, body)
			if k != Pad(n)+CRCLen || !bytes.Equal(b[:Pad(n)], make([]byte, Pad(n))) {
				t.Errorf("trailer of %d bytes: % x", n, b[:k])
			}
			if crc == bytes.Equal(b[Pad(n):k], make([]byte, CRCLen)) {
				t.Errorf("CRC %v of %d bytes: % x", crc, n, b[Pad(n):k])
			}
		}
	}
}

func TestMULPDU(t *testing.T) {
	tests := []struct {
		mss     int
		markers bool
		want    int
	}{
		{1448, false, 1442}, // siw's at 1500 bytes of MTU: 1428 of payload in a tagged segment, 1424 in an untagged
		{1460, false, 1450},
		{1448, true, 1430}, // RFC 5044, section 5.1: less 6 and 4 for each 512 that have begun
		{1024, true, 1010},
		{1032, true, 1014},
		{8948, false, 8938},
		{65483, false, 65474},
		{65483, true, maxMarkedULPDU},
		{1 << 20, false, MaxULPDU},
		{88, false, minMULPDU},
		{0, true, minMULPDU},
	}
	for _, tt := range tests {
		if got := MULPDU(tt.mss, tt.markers); got != tt.want {
			t.Errorf("MULPDU(%d, %v) = %d, want %d", tt.mss, tt.markers, got, tt.want)
		}
	}
	// Wherever in the stream an FPDU begins, it fits.
	for mss := 144; mss < 10_000; mss += 4 {
		for _, markers := range []bool{false, true} {
			n := MULPDU(mss, markers)
			for left := 0; left < markerEvery; left += 4 {
				tx := Tx{Markers: markers, left: left}
				if got := tx.MarkedLen(LengthLen + n + Pad(n) + CRCLen); got > mss {
					t.Fatalf("mss %d, markers %v, next in %d: an FPDU of %d", mss, markers, left, got)
				}
			}
		}
	}
}

// segments returns ULPDUs of many lengths, the shortest and the longest among
// them.
func segments(rng *rand.Rand, count, longest int) [][]byte {
	var all [][]byte
	for i := range count {
		n := ddp.TaggedLen + rng.IntN(64)
		switch {
		case i == 0:
			n = ddp.TaggedLen
		case i == 1:
			n = longest
		case rng.IntN(4) == 0:
			n = ddp.TaggedLen + rng.IntN(longest-ddp.TaggedLen+1)
		}
		u := make([]byte, n)
		for k := range u {
			u[k] = byte(rng.Uint32())
		}
		all = append(all, u)
	}
	return all
}

// encode returns the stream of FPDUs with the ULPDUs.
func encode(tx *Tx, ulpdus [][]byte) (stream []byte) {
	var trailer [TrailerMax]byte
	for _, u := range ulpdus {
		var length [LengthLen]byte
		binary.BigEndian.PutUint16(length[:], uint16(len(u)))
		n := tx.Trailer(trailer[:], length[:], u)
		fpdu := append(append(length[:], u...), trailer[:n]...)
		want := len(stream) + tx.MarkedLen(len(fpdu))
		if stream = tx.Mark(stream, fpdu); len(stream) != want {
			panic(fmt.Sprintf("%d bytes, MarkedLen said %d", len(stream), want))
		}
	}
	return stream
}

// reference is encode, written from the RFC and byte by byte.
func reference(crc, markers bool, ulpdus [][]byte) (stream []byte) {
	for _, u := range ulpdus {
		bare := append(binary.BigEndian.AppendUint16(nil, uint16(len(u))), u...)
		for len(bare)%4 != 0 {
			bare = append(bare, 0)
		}
		start, begin := len(stream), -1
		put := func(b []byte, covered bool) {
			for _, c := range b {
				if markers && len(stream)%512 == 0 {
					distance := 0
					if begin >= 0 {
						distance = len(stream) - begin
					}
					stream = append(stream, 0, 0, byte(distance>>8), byte(distance))
				}
				if begin < 0 {
					begin = len(stream)
				}
				if !covered { // the first byte of the CRC: all before it is known
					sum := uint32(0)
					if crc {
						sum = crc32.Checksum(stream[start:], crc32.MakeTable(crc32.Castagnoli))
					}
					stream = append(stream, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
					return
				}
				stream = append(stream, c)
			}
		}
		put(bare, true)
		put(make([]byte, CRCLen), false)
	}
	return stream
}

var modes = []struct{ crc, markers bool }{{false, false}, {true, false}, {false, true}, {true, true}}

func TestEncode_asTheRFCSays(t *testing.T) {
	for _, m := range modes {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 1))
			ulpdus := segments(rng, 40, maxMarkedULPDU)
			got := encode(&Tx{CRC: m.crc, Markers: m.markers}, ulpdus)
			if !bytes.Equal(got, reference(m.crc, m.markers, ulpdus)) {
				t.Errorf("%+v, seed %d: another stream", m, seed)
			}
		}
	}
}

// receive gives a stream to rx in pieces, as a connection does: what has not
// been consumed stays, what is consumed is overwritten. cut says how many bytes
// come next.
func receive(t *testing.T, rx *Rx, stream []byte, cut func() int) (ulpdus [][]byte, cause iwarp.Cause, ok bool) {
	t.Helper()
	var have []byte
	wanted := 0
	for {
		ulpdu, n, want, cause, ok := rx.Next(have)
		switch {
		case !ok:
			return ulpdus, cause, false
		case n > 0:
			if len(have) < wanted {
				t.Fatalf("%d bytes were enough, want was %d", len(have), wanted)
			}
			wanted = 0
			ulpdus = append(ulpdus, bytes.Clone(ulpdu))
			have = have[n:]
			continue
		case want <= len(have) || want > MaxFPDU:
			t.Fatalf("want %d at %d", want, len(have))
		case want < wanted:
			t.Fatalf("want %d after %d", want, wanted)
		}
		wanted = want
		if len(stream) == 0 {
			return ulpdus, 0, true
		}
		k := min(max(cut(), 1), len(stream))
		have = append(have, stream[:k]...)
		stream = stream[k:]
	}
}

func equal(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Whatever TCP makes of the stream, the ULPDUs come out.
func TestRx_anySegmentation(t *testing.T) {
	for _, m := range modes {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 2))
			ulpdus := segments(rng, 30, 9000)
			stream := encode(&Tx{CRC: m.crc, Markers: m.markers}, ulpdus)
			for _, cut := range []func() int{
				func() int { return 1 },
				func() int { return 1 + rng.IntN(5) },
				func() int { return rng.IntN(3000) },
				func() int { return len(stream) },
			} {
				got, cause, ok := receive(t, &Rx{CRC: m.crc, Markers: m.markers}, stream, cut)
				if !ok || !equal(got, ulpdus) {
					t.Errorf("%+v, seed %d: %d of %d ULPDUs, %v", m, seed, len(got), len(ulpdus), cause)
				}
			}
		}
	}
}

// Two pieces, cut at every byte.
func TestRx_everyBoundary(t *testing.T) {
	for _, m := range modes {
		ulpdus := segments(rand.New(rand.NewPCG(3, 3)), 12, 1400)
		stream := encode(&Tx{CRC: m.crc, Markers: m.markers}, ulpdus)
		for at := range stream {
			n := at
			got, cause, ok := receive(t, &Rx{CRC: m.crc, Markers: m.markers}, stream, func() int {
				defer func() { n = len(stream) }()
				return n
			})
			if !ok || !equal(got, ulpdus) {
				t.Fatalf("%+v, cut at %d: %d of %d ULPDUs, %v", m, at, len(got), len(ulpdus), cause)
			}
		}
	}
}

func TestRx_longestULPDU(t *testing.T) {
	for _, m := range modes {
		ulpdus := segments(rand.New(rand.NewPCG(4, 4)), 3, MaxULPDU)
		stream := encode(&Tx{CRC: m.crc, Markers: m.markers}, ulpdus)
		got, cause, ok := receive(t, &Rx{CRC: m.crc, Markers: m.markers}, stream, func() int { return 100_000 })
		if !ok || !equal(got, ulpdus) {
			t.Errorf("%+v: %d ULPDUs, %v", m, len(got), cause)
		}
	}
}

// Each bit that changes on the way is found out, or is one that nobody reads.
func TestRx_everyBit(t *testing.T) {
	for _, m := range modes {
		ulpdus := segments(rand.New(rand.NewPCG(5, 5)), 3, 700)
		stream := encode(&Tx{CRC: m.crc, Markers: m.markers}, ulpdus)
		for bit := range len(stream) * 8 {
			bad := bytes.Clone(stream)
			bad[bit/8] ^= 1 << (bit % 8)
			got, cause, ok := receive(t, &Rx{CRC: m.crc, Markers: m.markers}, bad, func() int { return len(bad) })
			switch {
			case !m.crc && ok, !m.crc && (cause == iwarp.LLPMarker || cause == iwarp.LLPCatastrophic):
			case m.crc && !ok && cause == iwarp.LLPCRC:
			case m.crc && ok && len(got) < len(ulpdus): // a length that is too long: the rest never comes
			default:
				t.Fatalf("%+v, bit %d of byte %d: %d ULPDUs, %v, %v", m, bit%8, bit/8, len(got), cause, ok)
			}
		}
	}
}

func TestRx_refuses(t *testing.T) {
	fpdu := func(crc bool, n int) []byte { return encode(&Tx{CRC: crc}, [][]byte{make([]byte, n)}) }
	flip := func(b []byte, at int) []byte {
		b[at] ^= 0x80
		return b
	}
	marked := func(crc bool) []byte {
		return encode(&Tx{CRC: crc, Markers: true}, [][]byte{make([]byte, 600)})
	}
	tests := []struct {
		name  string
		rx    Rx
		b     []byte
		cause iwarp.Cause
		ok    bool
	}{
		{"shortest", Rx{CRC: true}, fpdu(true, ddp.TaggedLen), 0, true},
		{"CRC wrong", Rx{CRC: true}, flip(fpdu(true, 20), 24), iwarp.LLPCRC, false},
		{"CRC missing", Rx{CRC: true}, fpdu(false, 20), iwarp.LLPCRC, false},
		{"CRC not asked for", Rx{}, fpdu(true, 20), 0, true},
		{"length of no DDP header", Rx{CRC: true}, fpdu(true, ddp.TaggedLen-1), iwarp.LLPCatastrophic, false},
		{"length 0", Rx{}, fpdu(false, 0), iwarp.LLPCatastrophic, false},
		{"length 0, CRC wrong", Rx{CRC: true}, fpdu(false, 0), iwarp.LLPCRC, false},
		{"markers", Rx{Markers: true}, marked(false), 0, true},
		{"first marker wrong", Rx{Markers: true}, flip(marked(false), 3), iwarp.LLPMarker, false},
		{"second marker wrong", Rx{Markers: true}, flip(marked(false), 512+2), iwarp.LLPMarker, false},
		{"reserved half of a marker", Rx{Markers: true}, flip(marked(false), 512), 0, true},
		{"reserved half of a marker, with CRC", Rx{CRC: true, Markers: true}, flip(marked(true), 512), iwarp.LLPCRC, false},
		{"no markers where they should be", Rx{Markers: true}, fpdu(false, 600), iwarp.LLPCatastrophic, false},
		{"markers where none should be", Rx{}, marked(false), iwarp.LLPCatastrophic, false},
	}
	for _, tt := range tests {
		_, n, want, cause, ok := tt.rx.Next(tt.b)
		if ok != tt.ok || cause != tt.cause || ok && n != len(tt.b) || want != 0 {
			t.Errorf("%s: %d bytes, want %d, %v, %v", tt.name, n, want, cause, ok)
		}
	}
	// RFC 5044, section 4.3: the lowest two bits of FPDUPTR are taken for 0.
	b := marked(false)
	b[512+3] |= 3
	rx := Rx{Markers: true}
	if _, n, _, cause, ok := rx.Next(b); !ok || n != len(b) {
		t.Errorf("low bits of a marker: %v", cause)
	}
}

func TestAllocs_trailer(t *testing.T) {
	tx := Tx{CRC: true}
	header, payload, trailer := make([]byte, 20), make([]byte, 1401), make([]byte, TrailerMax)
	if n := testing.AllocsPerRun(100, func() { tx.Trailer(trailer, header, payload[:700], payload[700:]) }); n != 0 {
		t.Errorf("%v allocations per trailer", n)
	}
}

func TestAllocs_mark(t *testing.T) {
	tx := Tx{CRC: true, Markers: true}
	fpdu := encode(&Tx{CRC: true}, [][]byte{make([]byte, 1400)})
	room := make([]byte, 0, MaxFPDU)
	if n := testing.AllocsPerRun(100, func() { tx.Mark(room, fpdu) }); n != 0 {
		t.Errorf("%v allocations per FPDU", n)
	}
}

func TestAllocs_next(t *testing.T) {
	for _, m := range modes {
		stream := encode(&Tx{CRC: m.crc, Markers: m.markers}, segments(rand.New(rand.NewPCG(6, 6)), 200, 3000))
		rx, at := Rx{CRC: m.crc, Markers: m.markers}, 0
		if n := testing.AllocsPerRun(100, func() {
			_, n, _, cause, ok := rx.Next(stream[at:])
			if !ok || n == 0 {
				t.Fatal(cause)
			}
			at += n
		}); n != 0 {
			t.Errorf("%+v: %v allocations per FPDU", m, n)
		}
	}
}

func BenchmarkRx_next(b *testing.B) {
	for _, m := range modes {
		for _, n := range []int{32, 1442, 8938} {
			b.Run(fmt.Sprintf("crc=%v/markers=%v/%d", m.crc, m.markers, n), func(b *testing.B) {
				stream := encode(&Tx{CRC: m.crc, Markers: m.markers}, [][]byte{make([]byte, n)})
				work := make([]byte, len(stream))
				b.SetBytes(int64(n))
				for b.Loop() {
					copy(work, stream)
					rx := Rx{CRC: m.crc, Markers: m.markers}
					if _, n, _, cause, ok := rx.Next(work); !ok || n == 0 {
						b.Fatal(cause)
					}
				}
			})
		}
	}
}
