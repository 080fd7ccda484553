package ktcp

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

const (
	// inputEvents are what every stream is watched for.
	inputEvents = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	// endEvents say that after the bytes that are there an end or an error
	// comes, which no further event will tell.
	endEvents = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	// mssEvery is how old the answer of MSS may be.
	mssEvery = 100 * mono.Millisecond
)

// Stream is one connection: a socket of the kernel.
//
// Owner: engine.
type Stream struct {
	on     *Streams
	fd     int
	id     fabric.StreamID
	place  int // in on.open; -1: not there
	state  fabric.StreamState
	closed bool

	drained bool // Recv has found the end of what there was: nothing new before the next event
	ending  bool // there will be no event for the end that comes
	eof     bool // all has been received
	stopped bool // CloseWrite was called
	short   bool // Send has found no room
	armed   bool // epoll tells when there is room

	errno   unix.Errno // why the stream has failed
	sendErr unix.Errno // why Send has failed, while there may still be bytes to receive

	mss           int
	mssAt         mono.Time
	local, remote netip.AddrPort
}

var _ fabric.VectorReceiver = (*Stream)(nil)

// ID returns the number of the stream.
func (c *Stream) ID() fabric.StreamID { return c.id }

// State tells how far the stream is.
func (c *Stream) State() fabric.StreamState { return c.state }

// Err tells why the stream has failed. It wraps a unix.Errno.
func (c *Stream) Err() error {
	if c.errno == 0 {
		return nil
	}
	return streamError(c.remote, c.errno)
}

// Local returns our address and port.
func (c *Stream) Local() netip.AddrPort { return c.local }

// Remote returns the peer's address and port.
func (c *Stream) Remote() netip.AddrPort { return c.remote }

// MSS returns how many bytes one segment carries now, options of TCP taken
// off. The kernel is asked at most every 100 ms.
func (c *Stream) MSS() int {
	if c.state == fabric.StreamOpen && !c.closed && (c.mss == 0 || c.on.now.Sub(c.mssAt) >= mssEvery) {
		if n, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG); err == nil {
			c.mss, c.mssAt = n, c.on.now
		}
	}
	return c.mss
}

// Recv copies what has arrived into dst.
func (c *Stream) Recv(dst []byte) (n int, eof bool) {
	if c.state != fabric.StreamOpen || c.drained || c.eof || len(dst) == 0 {
		return 0, c.eof && c.state == fabric.StreamOpen
	}
	n, errno := recv(c.fd, dst)
	return c.received(n, len(dst), errno)
}

// RecvVector copies what has arrived into the buffers, one behind the other.
func (c *Stream) RecvVector(dst [][]byte) (n int, eof bool) {
	count, want := c.on.gather(dst)
	if c.state != fabric.StreamOpen || c.drained || c.eof || want == 0 {
		return 0, c.eof && c.state == fabric.StreamOpen
	}
	n, errno := c.on.recvmsg(c.fd, count)
	return c.received(n, want, errno)
}

// received handles that a system call has received n bytes of want.
func (c *Stream) received(n, want int, errno unix.Errno) (int, bool) {
	c.on.stats.RxCalls++
	switch {
	case n > 0:
		c.on.stats.RxBytes += uint64(n)
		// What comes now makes a new event, so that no further poll is needed.
		c.drained = n < want && !c.ending
	case errno == unix.EAGAIN:
		c.drained = true
	case errno == unix.EINTR:
		c.on.tell(c.id)
	case errno != 0:
		c.fail(errno)
	case c.sendErr != 0:
		c.fail(c.sendErr)
	default:
		c.eof = true
	}
	return n, c.eof
}

// Send takes bytes from the front of the buffers.
func (c *Stream) Send(bufs [][]byte) int {
	total := 0
	for len(bufs) > 0 && c.state == fabric.StreamOpen && c.sendErr == 0 && !c.stopped {
		count, want := c.on.gather(bufs)
		if want == 0 {
			bufs = bufs[min(len(bufs), maxIovecs):]
			continue
		}
		n, errno := c.on.sendmsg(c.fd, count)
		c.on.stats.TxCalls++
		if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
			c.sendFailed(errno)
			break
		}
		total += n
		if n < want {
			c.full()
			c.on.stats.TxBytes += uint64(total)
			return total
		}
		bufs = bufs[min(len(bufs), maxIovecs):]
	}
	c.short = false
	c.on.stats.TxBytes += uint64(total)
	return total
}

// gather makes the io vector of a system call from the buffers, and returns
// its length and how many bytes that are.
func (s *Streams) gather(bufs [][]byte) (count, bytes int) {
	for _, b := range bufs[:min(len(bufs), maxIovecs)] {
		if len(b) == 0 {
			continue
		}
		v := &s.iovs[count]
		v.Base = &b[0]
		v.SetLen(len(b))
		count++
		bytes += len(b)
	}
	return count, bytes
}

// full notes that Send has found no room, and has epoll tell when there is.
func (c *Stream) full() {
	c.short = true
	if !c.armed {
		c.watch(inputEvents | unix.EPOLLOUT)
		c.armed = true
	}
}

func (c *Stream) watch(events uint32) {
	// It can fail for a closed descriptor only.
	_ = unix.EpollCtl(c.on.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.id)})
}

// sendFailed notes why nothing can be sent any more. The stream has not failed
// yet: what the peer sent before it broke off, perhaps why, is still there.
func (c *Stream) sendFailed(errno unix.Errno) {
	c.drained = false
	if c.eof {
		c.fail(errno)
		return
	}
	c.sendErr, c.ending = errno, true
	c.on.tell(c.id)
}

// event notes what epoll tells of the stream.
func (c *Stream) event(events uint32) {
	if c.state == fabric.StreamConnecting {
		if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) == 0 {
			return
		}
		c.connected()
	}
	if c.state != fabric.StreamOpen {
		return
	}
	c.drained = false
	c.ending = c.ending || events&endEvents != 0
	if events&unix.EPOLLOUT != 0 && c.armed && !c.short {
		c.watch(inputEvents)
		c.armed = false
	}
}

// connected finds out what has become of Dial.
func (c *Stream) connected() {
	errno, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno == 0 {
		c.local, err = localOf(c.fd)
	}
	switch {
	case err != nil:
		errno = int(unix.ECONNABORTED)
	case errno == 0 && c.local == c.remote:
		// There is no listener: the kernel chose the peer's port for us, and
		// our SYN met itself (simultaneous open, RFC 9293, section 3.5).
		errno = int(unix.ECONNREFUSED)
	}
	if errno != 0 {
		c.fail(unix.Errno(errno))
		return
	}
	c.begin()
	c.on.stats.Opened++
}

// begin makes the stream one of the open ones.
func (c *Stream) begin() {
	c.state = fabric.StreamOpen
	c.place = len(c.on.open)
	c.on.open = append(c.on.open, c)
}

// end makes it none of them.
func (c *Stream) end() {
	if c.place < 0 {
		return
	}
	last := c.on.open[len(c.on.open)-1]
	c.on.open[c.place], last.place = last, c.place
	c.on.open[len(c.on.open)-1] = nil
	c.on.open = c.on.open[:len(c.on.open)-1]
	c.place = -1
}

// fail ends the stream with an error.
func (c *Stream) fail(errno unix.Errno) {
	c.state, c.errno = fabric.StreamFailed, errno
	c.end()
	c.on.stats.Failed++
	c.on.tell(c.id)
}

// CloseWrite ends our direction behind what Send has taken.
func (c *Stream) CloseWrite() {
	if c.state == fabric.StreamOpen && !c.stopped {
		c.stopped = true
		// ENOTCONN after a reset, which Recv will find.
		_ = unix.Shutdown(c.fd, unix.SHUT_WR)
	}
}

// Close gives the stream back. The kernel delivers what Send has taken, if
// abort is not set, and sends a reset if there are unread bytes (RFC 2525,
// section 2.17).
func (c *Stream) Close(abort bool) {
	if c.closed {
		return
	}
	c.closed = true
	if abort {
		// With no time to linger the connection is reset, whatever is queued.
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	c.end()
	c.on.remove(c.id, c.fd)
	if c.state != fabric.StreamFailed {
		c.state, c.errno = fabric.StreamFailed, unix.ENOTCONN
	}
}
