package llp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// TestWriter_flat compares datagrams that the writer builds in frames, by
// every way of writing, with the same bytes written one after the other, and
// its CRC with that of those.
func TestWriter_flat(t *testing.T) {
	net, err := mesh.New(mesh.Config{Frames: 64})
	if err != nil {
		t.Fatal(err)
	}
	end := net.Open(addrOf(1), 0)
	arena := end.Arena()
	at, err := arena.Alloc(1<<16, mem.FrameSize)
	if err != nil {
		t.Fatal(err)
	}
	source := arena.At(at, 1<<16)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range source {
		source[i] = byte(rng.Uint32())
	}
	var w writer
	batch := fabric.NewBatch(1, fabric.MaxBufs)
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		size := 1 + rng.IntN(20000)
		if !w.open(end, arena, mesh.Headroom, dgram.HeaderLen+size) {
			t.Fatal("no frames")
		}
		want := append([]byte(nil), w.first[:dgram.HeaderLen]...)
		for left := size; left > 0; {
			n := min(left, 1+rng.IntN(6000))
			piece := source[rng.IntN(1<<15):][:n]
			switch k := rng.IntN(4); {
			case k == 0 && n <= len(w.cur):
				copy(w.reserve(n), piece)
				want = append(want, piece...)
			case k == 1:
				w.zeros(arena, n)
				want = append(want, make([]byte, n)...)
			default:
				w.put(arena, piece)
				want = append(want, piece...)
			}
			left -= n
		}
		if rng.IntN(3) == 0 {
			off, n := rng.IntN(1<<15), 1+rng.IntN(5*mem.FrameSize)
			w.attach(at+mem.Addr(off), n)
			want = append(want, source[off:off+n]...)
		}
		if got := w.crc(arena); got != dgram.CRC(0, want[dgram.CRCLen:]) {
			t.Fatalf("seed %d: CRC %x of %d bytes", seed, got, len(want))
		}
		batch.Reset()
		w.emit(batch, mesh.Headroom, 0, true)
		var got []byte
		for i, d := range batch.Descs {
			if mem.FrameBase(d.Addr) != mem.FrameBase(d.Addr+mem.Addr(d.Len)-1) && d.Len > 0 {
				t.Fatalf("seed %d: a buffer crosses frames", seed)
			}
			if more := d.Flags&fabric.More != 0; more != (i < len(batch.Descs)-1) {
				t.Fatalf("seed %d: More is %v at buffer %d of %d", seed, more, i, len(batch.Descs))
			}
			got = append(got, arena.At(d.Addr, int(d.Len))...)
		}
		if int(batch.Pkts[0].Len) != len(want) || !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes, want %d, or others", seed, len(got), len(want))
		}
		for _, f := range w.frames[:w.n] {
			end.Unframe(f)
		}
		if net.Free() != 64 {
			t.Fatalf("seed %d: frames are missing", seed)
		}
	}
}

// TestReader_flat reads datagrams that lie in buffers of all sizes, and
// compares with the same bytes in one piece.
func TestReader_flat(t *testing.T) {
	arena := mem.Over(make([]byte, 1<<17))
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range arena.Bytes() {
		arena.Bytes()[i] = byte(rng.Uint32())
	}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var descs []fabric.Desc
		var want []byte
		for range 1 + rng.IntN(fabric.MaxBufs) {
			n := rng.IntN(1 + []int{3, 100, mem.FrameSize}[rng.IntN(3)])
			at := mem.Addr(rng.IntN(1 << 16))
			descs = append(descs, fabric.Desc{Addr: at, Len: uint32(n)})
			want = append(want, arena.At(at, n)...)
		}
		var r Reader
		r.open(arena, nil, descs, len(want))
		for {
			if r.Len() != len(want) {
				t.Fatalf("seed %d: %d bytes left, want %d", seed, r.Len(), len(want))
			}
			if n := rng.IntN(min(len(want), 64) + 1); !bytes.Equal(r.Peek(n), want[:n]) {
				t.Fatalf("seed %d: Peek(%d) differs", seed, n)
			}
			if len(want) == 0 {
				break
			}
			n := rng.IntN(min(len(want), 1+rng.IntN(5000)) + 1)
			if rng.IntN(2) == 0 {
				r.Skip(n)
			} else {
				got := make([]byte, n)
				if r.Copy(got); !bytes.Equal(got, want[:n]) {
					t.Fatalf("seed %d: Copy(%d) differs", seed, n)
				}
			}
			want = want[n:]
		}
	}
}
