package xdp

import (
	"math"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// memoryRing makes the indices of a ring of four on plain memory. Tests move
// the kernel's index by hand.
func memoryRing(start uint32) (ix indices, ours, kernel *uint32) {
	ours, kernel = new(uint32), new(uint32)
	*ours, *kernel = start, start
	return indices{shared: ours, kernel: kernel, flags: new(uint32), mask: 3, ours: start, theirs: start}, ours, kernel
}

// Indices run freely, so each test also runs across their overflow.
var starts = []uint32{0, 2, math.MaxUint32 - 1}

// bufs makes descriptors from lengths; a negative length is followed by
// another buffer of the same frame.
func bufs(lengths ...int) []fabric.Desc {
	var out []fabric.Desc
	for i, n := range lengths {
		d := fabric.Desc{Addr: mem.Addr(i) * mem.FrameSize, Len: uint32(max(n, -n))}
		if n < 0 {
			d.Flags = fabric.More
		}
		out = append(out, d)
	}
	return out
}

func TestFillRing_kernelSeesChunksAfterPublish(t *testing.T) {
	for _, start := range starts {
		ix, ours, _ := memoryRing(start)
		r := fillRing{indices: ix, addrs: make([]mem.Addr, 4)}
		for round := range mem.Addr(3) {
			for i := range mem.Addr(4) {
				r.push(round*100 + i)
			}
			if *ours != start+uint32(round)*4 {
				t.Fatalf("start %d: the producer moved to %d before publish", start, *ours)
			}
			r.publish()
			for i := range mem.Addr(4) {
				at := (start + uint32(round)*4 + uint32(i)) & 3
				if r.addrs[at] != round*100+i {
					t.Fatalf("start %d: entry %d is %d, want %d", start, at, r.addrs[at], round*100+i)
				}
			}
			if *ours != start+uint32(round+1)*4 {
				t.Fatalf("start %d: the producer is %d after publish", start, *ours)
			}
		}
	}
}

func TestCompletionRing_popInOrder(t *testing.T) {
	for _, start := range starts {
		ix, ours, kernel := memoryRing(start)
		r := completionRing{indices: ix, addrs: make([]mem.Addr, 4)}
		if n := r.available(); n != 0 {
			t.Fatalf("start %d: %d available in an empty ring", start, n)
		}
		next := mem.Addr(0)
		for _, batch := range []int{3, 4, 1, 2} {
			for i := range batch {
				r.addrs[(*kernel+uint32(i))&3] = next + mem.Addr(i)
			}
			*kernel += uint32(batch)
			if n := r.available(); n != batch {
				t.Fatalf("start %d: %d available, want %d", start, n, batch)
			}
			for range batch {
				if got := r.pop(); got != next {
					t.Fatalf("start %d: popped %d, want %d", start, got, next)
				}
				next++
			}
			r.publish()
			if *ours != *kernel {
				t.Fatalf("start %d: consumer %d, producer %d", start, *ours, *kernel)
			}
		}
	}
}

func TestRxRing_take(t *testing.T) {
	for _, test := range []struct {
		name   string
		ring   []fabric.Desc
		room   int
		bufs   int
		frames int
		bytes  uint64
	}{
		{"empty", nil, 4, 0, 0, 0},
		{"one frame", bufs(64), 4, 1, 1, 64},
		{"whole ring", bufs(1, 2, 3, 4), 4, 4, 4, 10},
		{"less room than frames", bufs(1, 2, 3), 2, 2, 2, 3},
		{"frame of two", bufs(-3840, 100), 4, 2, 1, 3940},
		{"last buffer has not arrived", bufs(7, -3840, -3840), 4, 1, 1, 7},
		{"only a beginning", bufs(-3840, -3840), 4, 0, 0, 0},
		{"second frame does not fit", bufs(5, -3840, 6), 2, 1, 1, 5},
	} {
		for _, start := range starts {
			ix, ours, kernel := memoryRing(start)
			r := rxRing{indices: ix, descs: make([]fabric.Desc, 4)}
			for _, d := range test.ring {
				r.descs[*kernel&3] = d
				*kernel++
			}
			dst := make([]fabric.Desc, test.room)
			got := r.take(dst)
			if got.bufs != test.bufs || got.frames != test.frames || got.bytes != test.bytes || got.tooLong {
				t.Errorf("%s, start %d: %+v, want %d buffers, %d frames, %d bytes", test.name, start, got, test.bufs, test.frames, test.bytes)
			}
			if !slices.Equal(dst[:got.bufs], test.ring[:got.bufs]) {
				t.Errorf("%s, start %d: took %v of %v", test.name, start, dst[:got.bufs], test.ring)
			}
			if r.publish(); *ours != start+uint32(test.bufs) {
				t.Errorf("%s, start %d: consumer is %d", test.name, start, *ours)
			}
		}
	}
}

func TestRxRing_frameCompletedLater(t *testing.T) {
	ix, _, kernel := memoryRing(3)
	r := rxRing{indices: ix, descs: make([]fabric.Desc, 4)}
	want := bufs(-3840, -3840, 9)
	dst := make([]fabric.Desc, fabric.MaxBufs)
	for i, d := range want {
		if got := r.take(dst); got.bufs != 0 {
			t.Fatalf("took %d buffers of a frame of which %d arrived", got.bufs, i)
		}
		r.descs[*kernel&3] = d
		*kernel++
	}
	if got := r.take(dst); got.bufs != 3 || !slices.Equal(dst[:3], want) {
		t.Fatalf("took %v, want %v", dst[:got.bufs], want)
	}
}

func TestRxRing_unknownFlagsAreCleared(t *testing.T) {
	ix, _, kernel := memoryRing(0)
	r := rxRing{indices: ix, descs: make([]fabric.Desc, 4)}
	r.descs[0] = fabric.Desc{Len: 60, Flags: 0xf0}
	*kernel++
	dst := make([]fabric.Desc, fabric.MaxBufs)
	if got := r.take(dst); got.bufs != 1 || dst[0].Flags != 0 {
		t.Fatalf("%+v, flags %#x", got, dst[0].Flags)
	}
}

func TestRxRing_frameOfTooManyBuffers(t *testing.T) {
	const size = 32
	ix, _, kernel := memoryRing(0)
	ix.mask = size - 1
	r := rxRing{indices: ix, descs: make([]fabric.Desc, size)}
	for i := range r.descs[:fabric.MaxBufs] {
		r.descs[i] = fabric.Desc{Addr: mem.Addr(i), Flags: fabric.More}
	}
	dst := make([]fabric.Desc, size)
	*kernel = fabric.MaxBufs - 1
	if got := r.take(dst); got.tooLong || got.bufs != 0 {
		t.Fatalf("%+v for a frame that may still end in time", got)
	}
	*kernel = fabric.MaxBufs
	if got := r.take(dst); !got.tooLong {
		t.Fatalf("%+v for %d buffers without an end", got, fabric.MaxBufs)
	}
	if d := r.pop(); d.Addr != 0 {
		t.Fatalf("popped %v", d)
	}
}

func TestTxRing_pushAcrossTheEnd(t *testing.T) {
	for _, start := range starts {
		ix, ours, kernel := memoryRing(start)
		r := txRing{indices: ix, descs: make([]fabric.Desc, 4)}
		for range 5 {
			src := bufs(-100, 200, 300)
			at := r.ours
			r.push(src)
			r.publish()
			if n := r.waiting(); n != 3 || *ours != at+3 {
				t.Fatalf("start %d: %d waiting, producer %d, want 3 and %d", start, n, *ours, at+3)
			}
			for i, d := range src {
				if got := r.descs[(at+uint32(i))&3]; got != d {
					t.Fatalf("start %d: entry %d is %v, want %v", start, i, got, d)
				}
			}
			*kernel += 3
			if n := r.waiting(); n != 0 {
				t.Fatalf("start %d: %d waiting after the kernel took all", start, n)
			}
		}
	}
}

func TestWholeFrames(t *testing.T) {
	for _, test := range []struct {
		name  string
		src   []fabric.Desc
		limit int
		want  int
	}{
		{"nothing", nil, 4, 0},
		{"all fit", bufs(1, -2, 3), 3, 3},
		{"no room", bufs(1, 2), 0, 0},
		{"some fit", bufs(1, 2, 3), 2, 2},
		{"cut before a frame of three", bufs(1, -2, -3, 4), 3, 1},
		{"only a beginning would fit", bufs(-1, -2, 3), 2, 0},
	} {
		if got := wholeFrames(test.src, test.limit); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
