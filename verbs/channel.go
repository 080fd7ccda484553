package verbs

import (
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/progress"
)

// CompChannel tells of completions through a descriptor
// (ibv_create_comp_channel(3)), for programs that wait for other things too:
//
//	cq.ReqNotify(false)
//	for {
//		for cq.Poll(wcs) > 0 { ... }      // what is there, before and after arming
//		poll(ch.FD(), stdin, ...)         // FD right before each wait
//		for q, ok := ch.GetEvent(); ok; q, ok = ch.GetEvent() {
//			q.ReqNotify(false)
//		}
//	}
//
// Progress happens in the thread that calls, so the descriptor is more than a
// list of events: it is readable also when input has come, or a timer is due,
// that may lead to completions. GetEvent then sees to it. While a program
// waits on the descriptor it uses no processor time.
type CompChannel struct {
	ctx     *Context // nil after Close
	cqs     []*CQ
	pending []*CQ // those with events not taken yet, oldest first
	fd      *progress.WaitFD
}

// CreateCompChannel makes a channel. Name it in CQInit.Channel. The caller
// closes it. It fails with ErrClosed, or where there is no descriptor.
func (c *Context) CreateCompChannel() (*CompChannel, error) {
	if c.closed {
		return nil, ErrClosed
	}
	fd, err := c.Engine().NewWaitFD()
	if err != nil {
		return nil, err
	}
	ch := &CompChannel{ctx: c, fd: fd}
	c.channels = append(c.channels, ch)
	return ch, nil
}

// FD returns a descriptor for poll(2), select(2) and epoll(7), always the
// same: readable when GetEvent may return an event, or must be called to bring
// one about. Call it right before each wait: it does what there is to do, and
// sets the descriptor's timer. The channel keeps the descriptor. -1 in the
// simulator, and after Close.
func (ch *CompChannel) FD() int {
	if ch.ctx == nil || ch.fd == nil {
		return -1
	}
	for e := ch.ctx.Engine(); !ch.ready() && e.Step() > 0; {
	}
	ch.ctx.signalChannels()
	return ch.fd.FD()
}

// GetEvent returns the queue of the oldest event that was not taken yet
// (ibv_get_cq_event(3)); without one it lets the engine step first. Taking an
// event acknowledges it. The queue makes no further event before ReqNotify.
func (ch *CompChannel) GetEvent() (*CQ, bool) {
	if ch.ctx == nil {
		return nil, false
	}
	if !ch.ready() {
		ch.ctx.Engine().Step()
	}
	return ch.take()
}

// Wait is WaitFor without a time limit: for ever if no queue is armed. It fails with
// ErrClosed.
func (ch *CompChannel) Wait() (*CQ, error) {
	if q, got := ch.WaitFor(-1); got {
		return q, nil
	}
	return nil, ErrClosed
}

// Close ends the channel. It fails with ErrBusy while completion queues have
// it (ibv_destroy_comp_channel(3)).
func (ch *CompChannel) Close() error {
	switch {
	case ch.ctx == nil:
		return fmt.Errorf("%w: completion channel was closed before", ErrInvalid)
	case len(ch.cqs) > 0 && !ch.ctx.closed:
		return fmt.Errorf("%w: %d completion queues have this channel: destroy them first", ErrBusy, len(ch.cqs))
	}
	ch.ctx.channels = slices.DeleteFunc(ch.ctx.channels, func(x *CompChannel) bool { return x == ch })
	ch.ctx = nil
	if ch.fd == nil {
		return nil
	}
	return ch.fd.Close()
}

// add notes an event of q.
func (ch *CompChannel) add(q *CQ) {
	if q.events++; q.events == 1 {
		ch.pending = append(ch.pending, q)
	}
}

// ready reports whether there is an event to take.
func (ch *CompChannel) ready() bool {
	for _, q := range ch.cqs {
		if q.armed != notifyNone {
			q.look()
		}
	}
	return len(ch.pending) > 0
}

// take takes the oldest event.
func (ch *CompChannel) take() (*CQ, bool) {
	if !ch.ready() {
		return nil, false
	}
	q := ch.pending[0]
	if q.events--; q.events == 0 {
		ch.pending = slices.Delete(ch.pending, 0, 1)
	}
	return q, true
}

// detach forgets q and its events.
func (ch *CompChannel) detach(q *CQ) {
	is := func(x *CQ) bool { return x == q }
	ch.cqs = slices.DeleteFunc(ch.cqs, is)
	ch.pending = slices.DeleteFunc(ch.pending, is)
}

// signalChannels makes the descriptors of all channels say what is true: a
// step for the sake of one may have brought events to another.
func (c *Context) signalChannels() {
	for _, ch := range c.channels {
		if ch.fd != nil {
			ch.fd.Set(ch.ready())
		}
	}
	for _, ch := range c.cm.channels {
		ch.signal()
	}
}
