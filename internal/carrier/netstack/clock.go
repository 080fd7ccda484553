package netstack

import (
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/wheel"
)

// clock is gVisor's clock and timers on ours. Timers fire in Poll, behind the
// frames that have arrived: an engine that was away for a while sees the
// acknowledgements first and sends nothing again for having been late.
type clock struct {
	mono mono.Clock
	mail *mail
	next atomic.Int64 // no timer is due before; mono.Never

	mu     sync.Mutex
	wheel  wheel.Wheel
	armed  []*timer // by number in the wheel
	unused []int32  // numbers
	due    []*timer // the engine's
}

func (c *clock) init(source mono.Clock, m *mail) {
	c.mono, c.mail = source, m
	c.wheel.Init(source.Now())
	c.next.Store(int64(mono.Never))
}

// Now implements tcpip.Clock.
func (c *clock) Now() time.Time { return mono.Real{}.Origin().Add(time.Duration(c.mono.Now())) }

// NowMonotonic implements tcpip.Clock.
func (c *clock) NowMonotonic() tcpip.MonotonicTime {
	return tcpip.MonotonicTime{}.Add(time.Duration(c.mono.Now()))
}

// AfterFunc implements tcpip.Clock.
func (c *clock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	t := &timer{clock: c, call: f, id: idle}
	t.Reset(d)
	return t
}

// fire calls what is due at now.
func (c *clock) fire(now mono.Time) {
	if int64(now) < c.next.Load() {
		return
	}
	c.mu.Lock()
	for {
		id, ok := c.wheel.Expire(now)
		if !ok {
			break
		}
		t := c.armed[id]
		c.release(t)
		c.due = append(c.due, t)
	}
	c.next.Store(int64(c.wheel.Deadline()))
	c.mu.Unlock()
	for i, t := range c.due {
		t.call()
		c.due[i] = nil
	}
	c.due = c.due[:0]
}

// deadline is when fire must be called.
func (c *clock) deadline() mono.Time { return mono.Time(c.next.Load()) }

// release takes the number of a timer back. c.mu is held.
func (c *clock) release(t *timer) {
	c.armed[t.id] = nil
	c.unused = append(c.unused, t.id)
	t.id = idle
}

// timer has a number of the wheel while it is armed, so that one that gVisor
// forgets leaves nothing behind.
type timer struct {
	clock *clock
	call  func()
	id    int32 // guarded by clock.mu
}

const idle = -1

// Stop implements tcpip.Timer.
func (t *timer) Stop() bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.id == idle {
		return false
	}
	c.wheel.Cancel(t.id)
	c.release(t)
	return true
}

// Reset implements tcpip.Timer.
func (t *timer) Reset(d time.Duration) {
	c := t.clock
	at := c.mono.Now().Add(max(d, 0))
	c.mu.Lock()
	if t.id == idle {
		if n := len(c.unused); n > 0 {
			t.id, c.unused = c.unused[n-1], c.unused[:n-1]
		} else {
			t.id = int32(len(c.armed))
			c.armed = append(c.armed, nil)
			c.wheel.Grow(len(c.armed))
		}
		c.armed[t.id] = t
	}
	c.wheel.Arm(t.id, at)
	sooner := int64(at) < c.next.Load()
	if sooner {
		c.next.Store(int64(at))
	}
	c.mu.Unlock()
	if sooner {
		c.mail.wake()
	}
}
