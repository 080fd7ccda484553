package mem

import (
	"errors"
	"strings"
	"testing"
)

func newPool(t testing.TB, frames int, track bool) *Pool {
	t.Helper()
	p, err := NewPool(Over(make([]byte, (frames+1)*FrameSize)), frames, track)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPool_handsOutEachFrameOnce(t *testing.T) {
	for _, track := range []bool{false, true} {
		p := newPool(t, 10, track)
		seen := map[Addr]bool{}
		for range 10 {
			addr, ok := p.Get()
			if !ok || seen[addr] || addr != FrameBase(addr) || !p.Owns(addr) || !p.Owns(addr+FrameSize-1) {
				t.Fatalf("Get = %#x, %v", addr, ok)
			}
			seen[addr] = true
		}
		if _, ok := p.Get(); ok || p.Free() != 0 || p.Cap() != 10 {
			t.Errorf("an eleventh frame; %d free of %d", p.Free(), p.Cap())
		}
		for addr := range seen {
			p.Put(addr + 300) // anywhere in the frame
		}
		if p.Free() != 10 {
			t.Errorf("%d of 10 frames are back", p.Free())
		}
	}
}

func TestPool_ignoresForeignAddresses(t *testing.T) {
	a := Over(make([]byte, 8*FrameSize))
	before, _ := a.Alloc(100, 0)
	p, err := NewPool(a, 4, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []Addr{before, p.base - 1, p.end, 1 << 60} {
		if p.Owns(addr) {
			t.Errorf("the pool claims %#x", addr)
		}
		p.Put(addr)
	}
	if p.Free() != 4 {
		t.Errorf("%d frames in a pool of 4", p.Free())
	}
}

func TestPool_trackingFindsDoublePut(t *testing.T) {
	p := newPool(t, 2, true)
	addr, _ := p.Get()
	p.Put(addr)
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "state") {
			t.Errorf("panic %q", v)
		}
	}()
	p.Put(addr)
}

func TestNewPool_tooLarge(t *testing.T) {
	a := Over(make([]byte, 4*FrameSize))
	for _, n := range []int{5, 1 << 40} {
		if _, err := NewPool(a, n, false); !errors.Is(err, ErrNoMemory) || !strings.Contains(err.Error(), "frames") {
			t.Errorf("%d frames: %v", n, err)
		}
	}
	if _, err := NewPool(a, -1, false); err == nil {
		t.Error("a pool of -1 frames")
	}
}

func TestAllocs_Pool(t *testing.T) {
	for _, track := range []bool{false, true} {
		p := newPool(t, 4, track)
		if n := testing.AllocsPerRun(100, func() {
			a, _ := p.Get()
			b, _ := p.Get()
			p.Put(a)
			p.Put(b)
		}); n != 0 {
			t.Errorf("%v allocations for two frames, tracked: %v", n, track)
		}
	}
}

func BenchmarkPool(b *testing.B) {
	p := newPool(b, 64, false)
	for b.Loop() {
		a, _ := p.Get()
		p.Put(a)
	}
}

// Frames that were sent are kept for sending, up to warmMost of them, the last
// one first; who receives gets them when there is nothing else.
func TestPool_sentFramesAreSentAgain(t *testing.T) {
	for _, track := range []bool{false, true} {
		p := newPool(t, warmMost+3, track)
		var all []Addr
		for range warmMost + 2 {
			addr, _ := p.GetToSend() // none was sent yet
			all = append(all, addr)
		}
		for _, addr := range all {
			p.PutSent(addr + 100) // anywhere in the frame
		}
		p.PutSent(p.end) // somebody else's
		if p.Free() != warmMost+3 {
			t.Errorf("%d frames are free, want %d", p.Free(), warmMost+3)
		}
		if addr, ok := p.GetToSend(); !ok || addr != all[warmMost-1] {
			t.Errorf("GetToSend = %#x, want the last one that was kept, %#x", addr, all[warmMost-1])
		}
		seen := map[Addr]bool{}
		for range warmMost + 2 {
			addr, ok := p.Get()
			if !ok || seen[addr] || addr != FrameBase(addr) {
				t.Fatalf("Get = %#x, %v", addr, ok)
			}
			seen[addr] = true
		}
		if _, ok := p.GetToSend(); ok || p.Free() != 0 {
			t.Errorf("a frame too many; %d free", p.Free())
		}
	}
}

// Frames that a pool borrows come back to whoever lent them, and out of Get
// never.
func TestPool_borrowedFramesAreKeptApart(t *testing.T) {
	a := Over(make([]byte, 16*FrameSize))
	common, _ := a.Alloc(4*FrameSize, FrameSize)
	p, err := NewPool(a, 3, true)
	if err != nil {
		t.Fatal(err)
	}
	other := p.Borrow(common+2*FrameSize, 2)
	l := p.Borrow(common, 2)
	if p.Cap() != 7 || p.Free() != 3 {
		t.Errorf("%d of %d frames are free, want 3 of 7", p.Free(), p.Cap())
	}
	p.Put(common + 3*FrameSize + 300)
	p.PutSent(common)
	p.Put(1 << 50) // somebody else's
	p.Put(common - 1)
	for _, c := range []struct {
		from *Borrowed
		want Addr
	}{{other, common + 3*FrameSize}, {l, common}} {
		if got := c.from.Returned(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%#x came back, want %#x", got, c.want)
		}
		c.from.TakeReturned()
	}
	for range 3 {
		if f, ok := p.Get(); !ok || !p.Owns(f) {
			t.Errorf("Get = %#x, %v", f, ok)
		}
	}
	if f, ok := p.Get(); ok || len(l.Returned()) != 0 {
		t.Errorf("Get = %#x, %v of an empty pool", f, ok)
	}
	if n := testing.AllocsPerRun(100, func() {
		p.Put(common)
		p.Put(common + 2*FrameSize)
		l.TakeReturned()
		other.TakeReturned()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
