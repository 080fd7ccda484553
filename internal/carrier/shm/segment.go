package shm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Segment is memory that processes of one host have in common: a memfd whose size none of them
// can change. One makes it, with [Channels.NewSegment]; its neighbours get the descriptor
// from the goroutine of its listener, also while it computes, and map it with
// [Channel.OpenSegment]. It has no name in a file system, so it ends with the last process
// that has it mapped, however that ends.
//
// What lies in it all of them may change at any time.
type Segment struct {
	b    []byte // more than was asked for where it is a huge page
	id   uint64
	from *Channels // its maker's; nil of one that was opened
	huge bool      // one of Channels.huge
}

const (
	segmentName = "xwarp-segment"

	// Segments of less than a huge page are one all the same, from so many bytes on, as long as the process has not made
	// many: its pages are there at once, and one entry of the TLB finds all of it when a rank gets its turn.
	segmentHuge  = mem.HugePage / 4
	segmentsHuge = 16
)

// meeting is what the goroutine of the listener and the engine have in common.
type meeting struct {
	mu       sync.Mutex
	arrivals []*channelIn   // not yet met
	senders  []*channelIn   // all
	memory   []*ringMemory  // of their rings
	segments map[uint64]int // descriptors of those that neighbours may map
	latest   uint64         // number of the latest segment
	huge     int            // segments of one huge page
	closed   bool
}

// segmentCall asks for a segment. One end of a socket pair comes with it, for the answer.
type segmentCall struct {
	Magic   uint32
	Version uint16
	_       uint16
	ID      uint64
}

// segmentAnswer brings its descriptor, if the status is ok.
type segmentAnswer struct {
	Magic   uint32
	Version uint16
	Status  uint16
}

// NewSegment makes a segment of size bytes, all zero, which neighbours may map until
// Withdraw. Pages are taken when they are touched first, those of less than a huge page perhaps now. The caller closes it.
func (l *Channels) NewSegment(size int) (*Segment, error) {
	if size <= 0 {
		return nil, fmt.Errorf("shm: a segment of %d bytes", size)
	}
	s := &Segment{from: l}
	if pads(size) {
		l.mu.Lock()
		if s.huge = l.huge < segmentsHuge; s.huge {
			l.huge++
			size = mem.HugePage
		}
		l.mu.Unlock()
	}
	fd, b, err := newMemory(segmentName, size)
	if err != nil {
		s.uncount()
		return nil, err
	}
	if s.b = b; s.huge {
		mem.Collapse(b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.segments == nil {
		l.segments = map[uint64]int{}
	}
	l.latest++
	s.id = l.latest
	l.segments[s.id] = fd
	return s, nil
}

// pads reports whether segments of that size may be a huge page all the same.
func pads(size int) bool { return size >= segmentHuge && size < mem.HugePage }

// uncount takes a segment out of Channels.huge.
func (s *Segment) uncount() {
	if s.huge {
		s.from.mu.Lock()
		s.from.huge--
		s.from.mu.Unlock()
	}
}

// ID returns the number by which neighbours ask the maker for the segment; it is not 0.
func (s *Segment) ID() uint64 { return s.id }

// Bytes returns the memory, which begins with a page, and may have more bytes than were asked for.
func (s *Segment) Bytes() []byte { return s.b }

// Withdraw ends that more neighbours can map the segment. Those that have go on. Of a
// segment that was opened it does nothing.
func (s *Segment) Withdraw() {
	if s.from == nil {
		return
	}
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	if fd, ok := s.from.segments[s.id]; ok {
		unix.Close(fd)
		delete(s.from.segments, s.id)
	}
}

// Close takes the segment out of this process. Its memory is free when all have.
func (s *Segment) Close() error {
	s.Withdraw()
	if s.b == nil {
		return nil
	}
	err := mem.Unmap(s.b)
	s.b = nil
	s.uncount()
	return os.NewSyscallError("munmap", err)
}

// Populate makes the pages that n bytes from at on lie in, near the processor that calls, and huge ones of those
// that lie there as a whole. An error means that there is no memory for them, which would otherwise kill the process
// that touches them. Kernels before 5.14 take them later.
func (s *Segment) Populate(at, n int) error {
	if n == 0 {
		return nil
	}
	part := s.b[at&^(os.Getpagesize()-1) : at+n]
	mem.Collapse(part)
	err := populate(part)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("shm: no memory for %d bytes of a segment: %w", n, err)
	}
	return nil
}

// askInterval is how long a process waits until it asks again, where too many ask at once.
const askInterval = 50 * time.Microsecond

// OpenSegment maps a segment of size bytes that a neighbour has made. It waits for the
// neighbour's listener, not for its engine. The caller closes it.
func (n *Channel) OpenSegment(id uint64, size int) (*Segment, error) {
	fd, err := n.fetchSegment(id)
	if err != nil {
		return nil, fmt.Errorf("shm: segment %d of rank %d: %w", id, n.rank, err)
	}
	defer unix.Close(fd)
	b, err := mapMemfd(fd, size)
	if err != nil && pads(size) {
		b, err = mapMemfd(fd, mem.HugePage)
	}
	if err != nil {
		return nil, err
	}
	return &Segment{b: b, id: id}, nil
}

// Unheard returns how often OpenSegment has asked while the neighbour's listener had no room for another
// call. Any goroutine may call it.
func (n *Channel) Unheard() uint32 { return n.unheard.Load() }

// fetchSegment returns the descriptor of a segment.
func (n *Channel) fetchSegment(id uint64) (fd int, err error) {
	asked := -1
	for asked < 0 {
		asked, err = n.channels.request(channelName(n.name), bodyOf(&segmentCall{ID: id}))
		switch {
		case err == nil:
		case errors.Is(err, unix.EAGAIN):
			n.unheard.Add(1)
			time.Sleep(askInterval)
		case errors.Is(err, unix.ECONNREFUSED):
			return -1, ErrGone
		default:
			return -1, err
		}
	}
	file := os.NewFile(uintptr(asked), "shm")
	defer file.Close()
	from, err := awaitAnswer(file)
	if err != nil {
		return -1, err
	}
	var a segmentAnswer
	switch {
	case len(from.body) == 0:
		err = ErrGone
	case !parse(from.body, &a) || a.Status == statusOK && len(from.fds) != 1:
		err = errors.New("the answer makes no sense: is it another version?")
	case a.Status != statusOK:
		err = errors.New("there is none of that number (any more)")
	default:
		return from.fds[0], nil
	}
	from.discard()
	return -1, err
}

// awaitAnswer waits for the answer to a handshake.
func awaitAnswer(f *os.File) (answer handshake, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return handshake{}, err
	}
	var bad error
	err = raw.Read(func(fd uintptr) bool {
		answer, bad = receiveAnswer(int(fd))
		return !errors.Is(bad, unix.EAGAIN)
	})
	if err = errors.Join(err, bad); err != nil {
		return handshake{}, err
	}
	return answer, nil
}

// giveSegment answers a process that asks for a segment. false: it is none of this job.
func (l *Channels) giveSegment(from *handshake) bool {
	var c segmentCall
	if !parse(from.body, &c) || len(from.fds) != 1 {
		return false
	}
	l.mu.Lock()
	fd, ok := l.segments[c.ID]
	if ok { // under the lock, for Withdraw closes the descriptor
		reply(from.fds[0], bodyOf(&segmentAnswer{Status: statusOK}), fd)
	}
	l.mu.Unlock()
	if !ok {
		reply(from.fds[0], bodyOf(&segmentAnswer{Status: statusFull}))
	}
	from.discard()
	return true
}
