package mem

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
	"golang.org/x/sys/unix"
)

func newArena(t testing.TB, c Config) *Arena {
	t.Helper()
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, a)
	return a
}

func TestNew_rounding(t *testing.T) {
	for _, c := range []struct{ size, want int }{{1, 4096}, {4096, 4096}, {4097, 8192}} {
		a := newArena(t, Config{Size: c.size, SmallPages: true})
		if a.Len() != c.want || len(a.Bytes()) != c.want || a.Room() != c.want {
			t.Errorf("size %d: %d bytes, %d of them free", c.size, a.Len(), a.Room())
		}
		if a.HugePages() || a.FD() < 0 {
			t.Errorf("huge pages %v, descriptor %d", a.HugePages(), a.FD())
		}
	}
	if _, err := New(Config{Size: -1}); err == nil {
		t.Error("a negative size was accepted")
	}
}

func TestNew_default(t *testing.T) {
	a := newArena(t, Config{})
	if a.Len() != 64<<20 {
		t.Errorf("the default arena has %d bytes", a.Len())
	}
}

func TestMap_sharesTheBytes(t *testing.T) {
	a := newArena(t, Config{Size: 8192, SmallPages: true, Name: "xwarp-test"})
	fd, err := unix.Dup(a.FD())
	if err != nil {
		t.Fatal(err)
	}
	b, err := Map(fd, a.Len())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	copy(a.At(5000, 5), "hello")
	if !bytes.Equal(b.At(5000, 5), []byte("hello")) {
		t.Error("the two mappings are not of the same memory")
	}
	if name, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", b.FD())); name != "/memfd:xwarp-test (deleted)" {
		t.Errorf("the memfd is called %q", name)
	}
	if _, err := b.Alloc(1, 0); !errors.Is(err, ErrNoMemory) {
		t.Errorf("a mapped arena handed out memory of its maker: %v", err)
	}
}

func TestMap_refuses(t *testing.T) {
	a := newArena(t, Config{Size: 8192, SmallPages: true})
	for _, size := range []int{0, -1, a.Len() + 1} {
		if _, err := Map(a.FD(), size); err == nil {
			t.Errorf("%d bytes of an arena of %d were mapped", size, a.Len())
		}
	}
	if _, err := Map(-1, 4096); !errors.Is(err, unix.EBADF) {
		t.Errorf("Map of no descriptor: %v", err)
	}
}

func TestClose_twice(t *testing.T) {
	a, err := New(Config{Size: 4096, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if a.Bytes() != nil {
		t.Error("the bytes of a closed arena can be reached")
	}
}

func TestOver(t *testing.T) {
	b := make([]byte, 10000)
	a := Over(b)
	a.At(9999, 1)[0] = 7
	if b[9999] != 7 || a.FD() != -1 || a.Close() != nil || a.Bytes() == nil {
		t.Error("the arena is not over the caller's memory, or Close took it away")
	}
	if Over(nil).Room() != 0 {
		t.Error("an arena of nothing has room")
	}
}

func TestAt_panicsOutside(t *testing.T) {
	a := Over(make([]byte, 100))
	for _, c := range []struct {
		addr Addr
		n    int
	}{{100, 1}, {0, 101}, {1 << 63, 1}, {50, -1}, {^Addr(0), 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("At(%#x, %d) of 100 bytes did not panic", c.addr, c.n)
				}
			}()
			a.At(c.addr, c.n)
		}()
	}
	if got := a.At(40, 10); cap(got) != 10 {
		t.Errorf("capacity %d reaches into the neighbour", cap(got))
	}
}

func TestFrameBase(t *testing.T) {
	for addr, want := range map[Addr]Addr{0: 0, 4095: 0, 4096: 4096, 4097: 4096, 1<<40 + 5000: 1<<40 + 4096} {
		if got := FrameBase(addr); got != want {
			t.Errorf("FrameBase(%d) = %d", addr, got)
		}
	}
}

func TestMapPart(t *testing.T) {
	whole, err := New(Config{Size: 64 * FrameSize, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	dup := func() int {
		fd, err := unix.FcntlInt(uintptr(whole.FD()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	part := Part{Start: 16 * FrameSize, Len: 8 * FrameSize}
	a, err := MapPart(dup(), whole.Len(), part, part, Part{Len: FrameSize})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Room() != part.Len || a.Len() != whole.Len() {
		t.Errorf("%d bytes of %d are ours, want %d of %d", a.Room(), a.Len(), part.Len, whole.Len())
	}
	at, err := a.Alloc(part.Len, FrameSize)
	if err != nil || at != part.Start {
		t.Fatalf("Alloc = %#x, %v; want %#x", at, err, part.Start)
	}
	a.At(at, 1)[0], a.At(0, 1)[0] = 7, 8
	if whole.At(at, 1)[0] != 7 || whole.At(0, 1)[0] != 8 {
		t.Error("it is another memory")
	}
	if _, err := a.Alloc(1, 0); !errors.Is(err, ErrNoMemory) {
		t.Errorf("more than the part: %v", err)
	}
	for _, bad := range []Part{{Start: 64 * FrameSize, Len: FrameSize}, {Start: 60 * FrameSize, Len: 5 * FrameSize}, {Len: -1}, {Start: 1 << 60}} {
		if a, err := MapPart(whole.FD(), whole.Len(), bad); err == nil {
			t.Errorf("%+v was mapped: %v", bad, a)
		}
	}
	if _, err := MapPart(whole.FD(), whole.Len()+FrameSize, part); err == nil {
		t.Error("more than the file was mapped")
	}
	if _, err := MapPart(-1, FrameSize, Part{}); err == nil {
		t.Error("nothing was mapped")
	}
}

// An arena, which processes share that do not trust each other, keeps its size, and belongs to
// all that map it.
func TestNew_shared(t *testing.T) {
	for _, small := range []bool{false, true} {
		a := newArena(t, Config{Size: 3 << 20, SmallPages: small})
		for _, size := range []int64{0, 4096, int64(a.Len()) + 4096} {
			if err := unix.Ftruncate(a.FD(), size); !errors.Is(err, unix.EPERM) {
				t.Errorf("cut to %d bytes: %v", size, err)
			}
		}
		if _, err := unix.FcntlInt(uintptr(a.FD()), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE); !errors.Is(err, unix.EPERM) {
			t.Errorf("nobody else can map it any more: %v", err)
		}
		for _, b := range a.Bytes() {
			if b != 0 {
				t.Fatal("it is not empty")
			}
		}
		fd, err := unix.Dup(a.FD())
		if err != nil {
			t.Fatal(err)
		}
		b, err := Map(fd, a.Len())
		if err != nil {
			t.Fatal(err)
		}
		a.At(2<<20, 1)[0] = 7
		if b.At(2<<20, 1)[0] != 7 {
			t.Error("it is another memory")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The pages of a memfd become huge ones, for everybody who maps it, without rights to anything; nothing but
// the arena stays mapped.
func TestNew_collapsed(t *testing.T) {
	const name = "xwarp-test-collapsed"
	a, err := newCollapsed(name, 8<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	if !a.HugePages() {
		a.Close()
		t.Skip("this kernel, or its memory, has no huge pages for a memfd (Linux 6.1)")
	}
	if !newArena(t, Config{Size: 1}).HugePages() {
		t.Error("New leaves them small")
	}
	if n := testenv.HugeKiB(t, name); n != 8192 {
		t.Errorf("%d KiB are on huge pages, want all", n)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile("/proc/self/maps"); bytes.Contains(text, []byte(name)) {
		t.Error("a part of it is still mapped")
	}
}

// An arena that grows has memory for what Alloc has given out, and for nothing else.
func TestNew_grows(t *testing.T) {
	const name = "xwarp-test-grows"
	a, err := newCollapsed(name, 16<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, a)
	if !a.HugePages() {
		t.Skip("this kernel, or its memory, has no huge pages for a memfd (Linux 6.1)")
	}
	for _, step := range []struct {
		do        func(n, align int) (Addr, error)
		n         int
		wantPages int
	}{
		{do: a.Alloc, n: 4096, wantPages: 1},
		{do: a.Reserve, n: 4 << 20, wantPages: 1}, // 2 to 6 MiB
		{do: a.Alloc, n: 3 << 20, wantPages: 3},   // 6 to 9 MiB
		{do: a.Alloc, n: 1 << 20, wantPages: 3},
		{do: a.Alloc, n: 6 << 20, wantPages: 6},
		{do: a.Alloc, n: 16 << 20, wantPages: 6}, // there is no room
	} {
		align := 64
		if step.n > 1<<20 {
			align = HugePage
		}
		at, err := step.do(step.n, align)
		if (err != nil) != (step.n == 16<<20) {
			t.Errorf("%d bytes: at %#x, %v", step.n, at, err)
		}
		if n := testenv.HugeKiB(t, name); n != step.wantPages<<11 {
			t.Errorf("after %d bytes at %#x there are %d KiB on huge pages, want %d of them", step.n, at, n, step.wantPages)
		}
	}
}

// Arenas that several threads make and close at once do not get in each other's memory, also
// where the first try to map one fails, for want of huge pages.
func TestNew_manyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				a, err := New(Config{Size: 4 << 20, SmallPages: i%3 == 0, Grow: i%2 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				b := a.Bytes()
				for at := 0; at < len(b); at += FrameSize {
					b[at] = byte(i + n)
				}
				for at := 0; at < len(b); at += FrameSize {
					if b[at] != byte(i+n) {
						t.Errorf("%d, %d: byte %d is another one", i, n, at)
						break
					}
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
