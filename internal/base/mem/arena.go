// Package mem holds the one arena that everything lives in: AF_XDP frames,
// eager buffers and the memory that applications send from. An offset into it
// is at once the address of an AF_XDP descriptor, the local address of a
// scatter/gather element and the identity of a buffer.
package mem

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Addr is an offset in bytes from the start of an arena.
type Addr uint64

// FrameSize is the size in bytes of a frame, which is an AF_XDP chunk. The
// kernel refuses larger chunks than a page; larger packets use several.
const FrameSize = 4096

// FrameBase returns the address of the frame that a lies in.
func FrameBase(a Addr) Addr { return a &^ (FrameSize - 1) }

// HugePage is the size of a huge page in bytes.
const HugePage = 2 << 20

// Config describes an arena. Its zero value is a 64 MiB arena on huge pages
// when there are any.
type Config struct {
	Size       int    // bytes, rounded up to a page (huge page); default 64 MiB
	Name       string // name of the memfd, visible in /proc/PID/maps; default "xwarp"
	SmallPages bool   // pages of 4 KiB; default: huge ones, when there are any

	// Grow lets the arena have memory for what is allocated only, a huge page at a time: for one that
	// no device knows, for the kernel looks up the pages of a UMEM itself, and takes small ones.
	// Default: there is memory for all of it at once. It has no effect on SmallPages and on
	// huge pages that the system has set aside.
	Grow bool
}

// Arena is one memfd mapped into this process. Processes that are given its
// descriptor map the same bytes at the same offsets with [Map].
//
// Owner: methods that allocate are for one goroutine at a time; Bytes and At
// may be called by any.
type Arena struct {
	b    []byte
	fd   int // -1 for memory that the arena does not own
	huge bool
	heap heap

	there []bool // for each huge page, of an arena that grows: there is memory for it
}

// ErrNoMemory is wrapped by every error that says an arena or a pool is full.
var ErrNoMemory = errors.New("arena is full")

// DefaultSize is the default of Config.Size.
const DefaultSize = config.DefaultArena

// New makes an arena. The caller closes it.
func New(c Config) (*Arena, error) {
	if c.Size < 0 {
		return nil, fmt.Errorf("arena: size %d is negative", c.Size)
	}
	c.Size = cmp.Or(c.Size, DefaultSize)
	c.Name = cmp.Or(c.Name, "xwarp")
	if !c.SmallPages {
		size := roundUp(c.Size, HugePage)
		if fd, err := memfd(c.Name, size, unix.MFD_HUGETLB); err == nil {
			if a, err := create(Map, fd, size); err == nil {
				return a, nil
			}
		}
		return newCollapsed(c.Name, size, c.Grow)
	}
	size := roundUp(c.Size, FrameSize)
	fd, err := Memfd(c.Name, size)
	if err != nil {
		return nil, fmt.Errorf("arena: %w", err)
	}
	return create(Map, fd, size)
}

// newCollapsed makes an arena of a memfd whose pages are made huge ones, where the kernel
// does that (Linux 6.1) and has room. It needs no rights. On small pages the frames fall into
// the cache's sets by chance, and about every third arena is unlucky, which costs 40 % of the
// bandwidth.
func newCollapsed(name string, size int, grow bool) (*Arena, error) {
	fd, err := Memfd(name, size)
	if err != nil {
		return nil, fmt.Errorf("arena: %w", err)
	}
	a, err := create(mapLater, fd, size)
	if err != nil {
		return nil, err
	}
	first := size
	if grow {
		first = HugePage
		a.there = make([]bool, size/HugePage)
		a.there[0] = true
	}
	a.huge = fetch(a.b[:first])
	return a, nil
}

// grow gets memory for what lies from addr on.
func (a *Arena) grow(addr Addr, n int) {
	end := min((int(addr)+n+HugePage-1)/HugePage, len(a.there))
	for page := int(addr) / HugePage; page < end; page++ {
		first := page
		for page < end && !a.there[page] {
			a.there[page] = true
			page++
		}
		if page > first {
			fetch(a.b[first*HugePage : page*HugePage])
		}
	}
}

// fetch gets memory for b, which is whole huge pages, and says whether it lies on huge ones.
func fetch(b []byte) (huge bool) {
	if huge = Collapse(b) == len(b); !huge {
		populate(b)
	}
	return huge
}

// populate looks up pages now that would be when they are touched first: it only saves time later
// (Linux 5.14).
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// create makes an arena of a file of size bytes, which it owns.
func create(mapped func(fd, size int) (*Arena, error), fd, size int) (*Arena, error) {
	a, err := mapped(fd, size)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	a.heap.reset(Addr(size))
	return a, nil
}

// Map maps an arena that another process made. That process alone allocates
// from it: here Alloc finds no room. The arena owns fd from now on when err is
// nil.
func Map(fd, size int) (*Arena, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("arena: descriptor %d: %w", fd, err)
	}
	if size <= 0 || int64(size) > st.Size { // touching what is behind the end would be fatal
		return nil, fmt.Errorf("arena: cannot map %d bytes of a file of %d", size, st.Size)
	}
	return mapFile(fd, size, unix.MAP_POPULATE)
}

// Part is a range of an arena, in bytes. Both are multiples of FrameSize.
type Part struct {
	Start Addr
	Len   int
}

// MapPart maps an arena that another process made, of which part is ours: Alloc
// takes from it alone. All of it can be used; pages in prefault are looked up
// now, others when they are touched first. The arena owns fd from now on when
// err is nil.
func MapPart(fd, size int, part Part, prefault ...Part) (*Arena, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("arena: descriptor %d: %w", fd, err)
	}
	if size <= 0 || int64(size) > st.Size || part.Len < 0 || uint64(part.Start) > uint64(size) || part.Len > size-int(part.Start) {
		return nil, fmt.Errorf("arena: cannot map %d bytes, %d of them from %d on ours, of a file of %d", size, part.Len, part.Start, st.Size)
	}
	a, err := mapLater(fd, size)
	if err != nil {
		return nil, err
	}
	for _, p := range prefault {
		populate(a.b[p.Start:][:p.Len])
	}
	a.heap.resetTo(part.Start, Addr(part.Len))
	return a, nil
}

// mapLater maps a file whose pages are looked up when they are touched first.
func mapLater(fd, size int) (*Arena, error) { return mapFile(fd, size, 0) }

func mapFile(fd, size, flags int) (*Arena, error) {
	b, err := MapAligned(fd, size, flags)
	if err != nil {
		return nil, fmt.Errorf("arena: cannot map %d bytes: %w (fewer huge pages free than asked for, or too little memory)", size, err)
	}
	a := &Arena{b: b, fd: fd}
	a.heap.reset(0)
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) == nil {
		a.huge = fs.Type == unix.HUGETLBFS_MAGIC
	}
	return a, nil
}

// Over makes an arena of memory that the caller owns and keeps: the UMEM of a
// foreign driver, or plain memory in the simulator. Close leaves it alone.
func Over(b []byte) *Arena {
	a := &Arena{b: b, fd: -1}
	a.heap.reset(Addr(len(b)))
	return a
}

// Close unmaps the arena. Every slice into it is invalid afterwards.
func (a *Arena) Close() error {
	if a.fd < 0 || a.b == nil {
		return nil
	}
	err := errors.Join(Unmap(a.b), os.NewSyscallError("close", unix.Close(a.fd)))
	a.b, a.fd = nil, -1
	return err
}

// Bytes returns the whole arena. The arena keeps ownership.
func (a *Arena) Bytes() []byte { return a.b }

// At returns the n bytes at addr. It panics when they are not all inside the
// arena: addresses are ours, so that is a broken invariant.
func (a *Arena) At(addr Addr, n int) []byte { return a.b[addr : addr+Addr(n) : addr+Addr(n)] }

// Len returns the size of the arena in bytes.
func (a *Arena) Len() int { return len(a.b) }

// FD returns the memfd, or -1 for an arena made by [Over].
func (a *Arena) FD() int { return a.fd }

// HugePages reports whether the arena lies on huge pages, as far as there is memory for it.
func (a *Arena) HugePages() bool { return a.huge }

// Room returns how many bytes Alloc has not handed out. They need not lie side
// by side.
func (a *Arena) Room() int { return int(a.heap.free) }

// Alloc takes n bytes from the arena at a multiple of align, a power of two
// (0 means 64). They hold what their last user left there. Give them
// back with Free.
func (a *Arena) Alloc(n, align int) (Addr, error) {
	addr, err := a.Reserve(n, align)
	if err == nil {
		a.grow(addr, n)
	}
	return addr, err
}

// Reserve is Alloc for what other memory is mapped over, so that there need be none.
func (a *Arena) Reserve(n, align int) (Addr, error) {
	if align == 0 {
		align = 64
	}
	if n < 0 || align < 0 || align&(align-1) != 0 {
		return 0, fmt.Errorf("arena: %d bytes at a multiple of %d: want at least 0 bytes, and a power of two", n, align)
	}
	addr, ok := a.heap.alloc(Addr(n), Addr(align))
	if !ok {
		return 0, fmt.Errorf("%w: %d bytes wanted, %d of %d free; make it larger (XWARP_ARENA)", ErrNoMemory, n, a.heap.free, len(a.b))
	}
	return addr, nil
}

// Free gives back what Alloc returned. It panics for any other address.
func (a *Arena) Free(addr Addr) { a.heap.release(addr) }

func roundUp(n, to int) int { return (n + to - 1) / to * to }
