package verbs

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// streamUser is what a stream belongs to: a CMID while it listens or starts up,
// then the connection of a queue pair.
type streamUser interface {
	// ready is called when the stream has something new, and returns how much
	// work that was.
	ready(now mono.Time) (work int)
}

// streams is what a context knows of its streams. Memory that is needed while
// bytes are moved, and not between, is here and not at each connection.
type streams struct {
	users       []streamUser // by fabric.StreamID; nil: none
	rcs         []*QP        // queue pairs of type RC, by number minus rcBase; nil is free
	named       []fabric.StreamID
	again       []*rc  // that have read something: there may be more
	sending     []*rc  // that have something to send; FIFO
	timed       []*rc  // that wait for a time
	lines       []*SRQ // at which queue pairs wait for receives
	other       []*rc  // the list that again or sending is swapped with
	deadline    mono.Time
	step        uint32
	transmitted bool // something was sent since the last step: the rest waits for the next
	rarely      streamLooks

	in    []byte // what is being received
	gaps  batch  // where else it goes: see prediction
	lands [3][]byte
	out   batch    // what is being sent
	spare [][]byte // buffers for parts of FPDUs
}

// streamLooks says when streams are looked at that stand beside datagrams and carry
// little: a look is a system call, which a wait for a datagram should not pay.
type streamLooks struct {
	on       bool      // else they are looked at in every step
	skipped  bool      // there were steps since the last look
	expected int       // what is to come over them, or to be taken by them
	vain     uint      // looks in a row that found nothing
	next     mono.Time // look, while steps are made
	sleep    mono.Time // look, if none are made
}

// lookAfter is how long streams are not looked at, at most, while steps are made: after
// vainLooks looks in a row that found nothing twice as long, and so on to lookDoubled times.
const (
	lookAfter   = 20 * mono.Microsecond
	vainLooks   = 16
	lookDoubled = 3
)

// Expect tells that n more things than before are to come over connections, or are to be
// taken by them; n may be negative, or 0. From the first call on, streams of the context are
// looked at in each step while something is expected, and otherwise every 20 us, or every
// 160 us where that is in vain: a look costs datagrams a system call.
func (ch *CMChannel) Expect(n int) {
	s := &ch.ctx.streams
	s.rarely.on = true
	s.rarely.expected += n
	s.hurry()
}

// Looks returns how often streams were looked at. Events come about then only.
func (ch *CMChannel) Looks() uint32 { return ch.ctx.streams.step }

// hurry has streams looked at in the next step.
func (s *streams) hurry() { s.rarely.next, s.rarely.sleep, s.rarely.vain = 0, 0, 0 }

// looked decides, after a look at now that found so much work, when the next one is.
func (s *streams) looked(c *Context, now mono.Time, work int) {
	l := &s.rarely
	if l.vain++; work > 0 {
		l.vain = 0
	}
	l.skipped, l.sleep = false, s.eachDeadline(c)
	l.next = min(l.sleep, now.Add(lookAfter<<min(l.vain/vainLooks, lookDoubled)))
	if l.expected > 0 || len(s.lines) > 0 {
		l.next = 0
	}
}

// inLen is how many bytes are received at a time: several of the longest FPDU,
// and little enough to stay in the cache. 256 KiB of payload come with headers, and with a
// message behind them.
const inLen = 272 << 10

// allocIn makes room to receive into: of the arena, if it has that much, for its pages are there already.
func (s *streams) allocIn(a *Arena) {
	if s.in != nil {
		return
	}
	if a != nil {
		if at, err := a.Alloc(inLen, 0); err == nil {
			s.in = a.At(at, inLen)
			return
		}
	}
	s.in = make([]byte, inLen)
}

// freeIn gives it back.
func (s *streams) freeIn(a *Arena) {
	if a != nil {
		if at, inside := a.Find(s.in); inside {
			a.Free(at)
		}
	}
	s.in = nil
}

// use makes u the user of a stream; nil: none.
func (s *streams) use(id fabric.StreamID, u streamUser) {
	for len(s.users) <= int(id) {
		s.users = append(s.users, nil)
	}
	s.users[id] = u
}

// pollStreams is Poll for RC and the connection manager.
func (c *Context) pollStreams(now mono.Time) (work int) {
	s := &c.streams
	s.step++
	again := s.again
	s.again, s.other = s.other[:0], nil
	for _, r := range again {
		r.again = false
	}
	if len(s.lines) > 0 {
		work += s.serveLines()
	}
	s.named = c.cfg.Streams.Poll(now, s.named[:0])
	for _, id := range s.named {
		if int(id) < len(s.users) && s.users[id] != nil {
			work += s.users[id].ready(now)
		}
	}
	for _, r := range again {
		if r.looked != s.step {
			work += r.ready(now)
		}
	}
	clear(again)
	s.other = again
	if now >= c.cm.deadline {
		work += c.expireCM(now)
	}
	if now >= s.deadline {
		work += s.expire(now)
	}
	sending := s.sending
	s.sending, s.other = s.other[:0], nil
	for _, r := range sending {
		r.queued = false
		work += r.transmit(now)
	}
	clear(sending)
	s.other = sending
	c.cfg.Streams.Flush()
	s.transmitted = false
	if s.rarely.on {
		s.looked(c, now, work)
	}
	return work
}

// streamDeadline is Deadline for streams.
func (c *Context) streamDeadline() mono.Time {
	switch l := &c.streams.rarely; {
	case c.cfg.Streams == nil:
		return mono.Never
	case !l.on:
		return c.streams.eachDeadline(c)
	case l.skipped: // what has come meanwhile causes no further event
		return l.next
	default:
		return l.sleep
	}
}

// eachDeadline is streamDeadline when streams are looked at in every step.
func (s *streams) eachDeadline(c *Context) mono.Time {
	if len(s.again)+len(s.sending) > 0 || s.canServe() {
		return 0
	}
	return min(s.deadline, c.cm.deadline, c.cfg.Streams.Deadline())
}

// expire calls the connections whose time has come, and returns how many.
func (s *streams) expire(now mono.Time) (work int) {
	s.deadline = mono.Never
	kept := s.timed[:0]
	for _, r := range s.timed {
		if r.timer <= now {
			work++
			r.expire(now)
		}
		if r.timer != mono.Never {
			s.deadline = min(s.deadline, r.timer)
			kept = append(kept, r)
		} else {
			r.timed = false
		}
	}
	clear(s.timed[len(kept):])
	s.timed = kept
	return work
}

// buffer returns an empty buffer, keep takes one back.
func (s *streams) buffer() []byte {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b[:0]
	}
	return nil
}

// sparesKept is how many buffers, of 64 KiB at most, wait to be used again.
const sparesKept = 16

func (s *streams) keep(b []byte) {
	if cap(b) > 0 && len(s.spare) < sparesKept {
		s.spare = append(s.spare, b[:0])
	}
}

// closeStreams ends all connections in order.
func (c *Context) closeStreams() {
	for _, q := range c.streams.rcs {
		if q != nil {
			q.Destroy()
		}
	}
	if c.cfg.Streams != nil {
		c.cfg.Streams.Flush()
	}
}
