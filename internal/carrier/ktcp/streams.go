package ktcp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

const (
	// fewStreams is up to how many open streams are named at each Poll. To
	// have epoll name a stream adds 0.8 us to half a round trip of 6, to find
	// one more socket empty 0.5 us (Benchmark_seam8).
	fewStreams = 2
	// epollEvery is how many Polls pass between two looks at epoll while few
	// streams are open: it is for listeners and connection results then.
	epollEvery = 16
	// eventsMax is how many events one epoll_wait may return; the rest waits
	// for the next Poll.
	eventsMax = 128
	// maxIovecs is the most buffers of one system call (UIO_MAXIOV).
	maxIovecs = 1024
	// descriptorWait is how long a listener waits when the process is out of
	// descriptors, which no event tells the end of.
	descriptorWait = 100 * mono.Millisecond
)

// Streams is the kernel's TCP as a [fabric.Streams]. Sockets are opened in the
// network namespace of the thread that calls Dial or Listen, and stay there.
//
// Owner: engine.
type Streams struct {
	config Config
	epoll  int
	table  []socket          // by number
	free   []fabric.StreamID // numbers to use again
	open   []*Stream         // connected, and not failed: those to be named while they are few
	used   int               // numbers in use
	news   []fabric.StreamID // what turned out between two Polls
	now    mono.Time         // of the last Poll
	retry  mono.Time         // when to look at listeners without descriptors again
	polls  uint32
	ask    bool // a caller is about to wait for epoll: the next Poll looks what for
	events [eventsMax]unix.EpollEvent
	iovs   [maxIovecs]unix.Iovec
	msg    unix.Msghdr
	stats  fabric.StreamStats
}

// socket is what a number stands for: one of the two, or nothing.
type socket struct {
	stream   *Stream
	listener *Listener
}

var _ fabric.Streams = (*Streams)(nil)

// Open makes a carrier without streams. The caller closes it.
func Open(c Config) (*Streams, error) {
	c.Local = c.Local.Unmap()
	if err := c.check(); err != nil {
		return nil, err
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("ktcp: %w (too many open files? see ulimit -n)", os.NewSyscallError("epoll_create1", err))
	}
	return &Streams{config: c, epoll: fd, retry: mono.Never}, nil
}

// Caps says what the carrier can do.
func (s *Streams) Caps() fabric.StreamCaps { return fabric.StreamCaps{Carrier: "tcp", IPv6: true} }

// Arena returns Config.Arena.
func (s *Streams) Arena() *mem.Arena { return s.config.Arena }

// Addr returns Config.Local.
func (s *Streams) Addr() netip.Addr { return s.config.Local }

// Flush does nothing: the kernel has what Send has taken.
func (s *Streams) Flush() {}

// FD returns an epoll instance, which poll(2) finds readable when there is
// anything new.
func (s *Streams) FD() int {
	s.ask = true
	return s.epoll
}

// Deadline is when Poll must be called though nothing has arrived.
func (s *Streams) Deadline() mono.Time {
	if len(s.news) > 0 {
		return s.now
	}
	return s.retry
}

// Stats counts what the carrier did.
func (s *Streams) Stats() fabric.StreamStats { return s.stats }

// Poll names the streams and listeners that may have something new. It costs
// nothing while there are none, and mostly no system call while few are open.
func (s *Streams) Poll(now mono.Time, ready []fabric.StreamID) []fabric.StreamID {
	s.now = now
	if s.used == 0 {
		s.news, s.retry = s.news[:0], mono.Never
		return ready
	}
	if len(s.news) > 0 {
		ready = append(ready, s.news...)
		s.news = s.news[:0]
	}
	few := len(s.open) <= fewStreams
	if few {
		for _, c := range s.open {
			c.drained = false
			ready = append(ready, c.id)
		}
	}
	if s.polls++; !few || s.ask || s.polls%epollEvery == 0 {
		s.ask = false
		ready = s.look(ready, few)
	}
	if now >= s.retry {
		ready = s.feed(ready)
	}
	return ready
}

// look takes events from epoll. With few streams the open ones are named
// already.
func (s *Streams) look(ready []fabric.StreamID, few bool) []fabric.StreamID {
	for _, e := range s.events[:epollWait(s.epoll, s.events[:])] {
		id := fabric.StreamID(e.Fd)
		c := s.table[id].stream
		named := few && c != nil && c.state == fabric.StreamOpen
		if c != nil {
			c.event(e.Events)
		}
		if !named {
			ready = append(ready, id)
		}
	}
	return ready
}

// feed names the listeners that could not accept.
func (s *Streams) feed(ready []fabric.StreamID) []fabric.StreamID {
	s.retry = mono.Never
	for i := range s.table {
		if l := s.table[i].listener; l != nil && l.noDescriptor {
			l.noDescriptor = false
			ready = append(ready, l.id)
		}
	}
	return ready
}

// tell makes the next Poll name id, for something that Recv or Send came upon.
func (s *Streams) tell(id fabric.StreamID) { s.news = append(s.news, id) }

// add gives what is behind fd a number, and has epoll watch it.
func (s *Streams) add(fd int, events uint32, what socket) (fabric.StreamID, error) {
	id := fabric.StreamID(len(s.table))
	if n := len(s.free); n > 0 {
		id = s.free[n-1]
	}
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(id)}); err != nil {
		return 0, fmt.Errorf("ktcp: %w (too many watched files? see fs.epoll.max_user_watches)", os.NewSyscallError("epoll_ctl", err))
	}
	if n := len(s.free); n > 0 {
		s.free = s.free[:n-1]
	} else {
		s.table = append(s.table, socket{})
	}
	s.table[id] = what
	s.used++
	return id, nil
}

// remove closes what has a number; epoll forgets it with that.
func (s *Streams) remove(id fabric.StreamID, fd int) {
	_ = unix.Close(fd) // whatever it says, the descriptor is gone
	s.table[id] = socket{}
	s.free = append(s.free, id)
	s.used--
}

// Close aborts all streams that are left, and closes the carrier.
func (s *Streams) Close() error {
	if s.epoll < 0 {
		return errors.New("ktcp: carrier was closed before")
	}
	for i := range s.table {
		switch e := s.table[i]; {
		case e.stream != nil:
			e.stream.Close(true)
		case e.listener != nil:
			e.listener.Close()
		}
	}
	err := os.NewSyscallError("close", unix.Close(s.epoll))
	s.epoll = -1
	return err
}
