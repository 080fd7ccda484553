package verbs

import (
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Wait polls the queue into dst as soon as there is a completion, and returns how
// many there were: it steps and parks until then, but not for longer than timeout,
// when it returns 0. A negative timeout is none; with 0 it lets the engine do what
// there is to do, and does not park. After Destroy it returns 0.
//
// It needs no CompChannel. A program that waits for descriptors of its own as well takes
// CompChannel.FD.
func (q *CQ) Wait(dst []WC, timeout time.Duration) int {
	w := wait{}
	for len(dst) > 0 && q.ctx != nil && !q.ctx.closed {
		if n := q.Poll(dst); n > 0 {
			return n
		}
		if !w.goOn(q.ctx, timeout) {
			break
		}
	}
	return 0
}

// WaitFor is GetEvent that waits for an event, but not for longer than timeout. A
// negative timeout is none. false: there was none in time, or the channel is closed.
// The engine spins for a while before it blocks; see device.PollerConfig.
func (ch *CompChannel) WaitFor(timeout time.Duration) (*CQ, bool) {
	w := wait{}
	for ch.ctx != nil && !ch.ctx.closed {
		if q, got := ch.take(); got {
			return q, true
		}
		if !w.goOn(ch.ctx, timeout) {
			break
		}
	}
	return nil, false
}

// WaitFor steps and parks until there is an event, but not for longer than timeout
// (rdma_get_cm_event(3) behind a poll(2) with one). A negative timeout is none.
// false: there was none in time, or the channel is closed.
func (ch *CMChannel) WaitFor(timeout time.Duration) (CMEvent, bool) {
	w := wait{}
	for ch.ctx != nil {
		if e, got := ch.take(); got {
			return e, true
		}
		if !w.goOn(ch.ctx, timeout) {
			break
		}
	}
	return CMEvent{}, false
}

// wait is one that is under way.
type wait struct {
	begun bool
	idle  bool // the last step has done nothing
	over  bool
	until mono.Time
}

// goOn does a step, after it has parked if the last one did nothing; the caller
// looks between the two. It returns false when the time was over before that.
func (w *wait) goOn(c *Context, timeout time.Duration) bool {
	e := c.cfg.Engine
	switch {
	case w.over:
		return false
	case !w.begun:
		w.begun, w.until = true, mono.Never
		if timeout >= 0 {
			w.until = e.Clock().Now().Add(timeout)
		}
	case w.idle:
		c.until = w.until
		e.Park()
		c.until = mono.Never
	}
	w.idle = e.Step() == 0
	w.over = e.Now() >= w.until
	return true
}
