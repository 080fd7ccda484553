package rping

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// end is what a client and a server have in common: a context that no other code
// uses meanwhile, and its connection events.
type end struct {
	ctx     *verbs.Context
	cfg     Config
	cm      *verbs.CMChannel
	alarm   alarm
	stopped atomic.Bool
}

func newEnd(ctx *verbs.Context, c Config) (*end, error) {
	c = c.withDefaults()
	if c.Size < MinSize || c.Size > MaxSize {
		return nil, fmt.Errorf("rping: pings of %d bytes: %d to %d are possible", c.Size, MinSize, MaxSize)
	}
	cm, err := ctx.CreateCMChannel()
	if err != nil {
		return nil, err
	}
	e := &end{ctx: ctx, cfg: c, cm: cm, alarm: alarm{at: mono.Never}}
	ctx.Engine().Add(&e.alarm)
	return e, nil
}

func (e *end) close() error {
	e.ctx.Engine().Remove(&e.alarm)
	return e.cm.Close()
}

// Stop makes Run end soon and in order. Any goroutine may call it.
func (e *end) Stop() {
	e.stopped.Store(true)
	e.ctx.Engine().Nudge()
}

// alarm ends a wait at some time.
type alarm struct {
	at   mono.Time
	rang bool
}

func (a *alarm) set(at mono.Time) { a.at, a.rang = at, false }

// Poll rings when it is time.
func (a *alarm) Poll(now mono.Time, _ int) int {
	if now < a.at {
		return 0
	}
	a.at, a.rang = mono.Never, true
	return 1
}

// Deadline returns when to ring.
func (a *alarm) Deadline() mono.Time { return a.at }

// turn lets the engine work, or wait for work.
func (e *end) turn() {
	if e.ctx.Engine().Step() == 0 {
		e.ctx.Engine().Park()
	}
}

func (e *end) now() mono.Time { return e.ctx.Engine().Clock().Now() }

// after returns the time d from now.
func (e *end) after(d mono.Duration) mono.Time { return e.now().Add(d) }

// event waits for a connection event of a client. Any other one is an error.
func (e *end) event(want verbs.CMEventType) error {
	for {
		ev, ok := e.cm.GetEvent()
		switch {
		case ok && ev.Type == want:
			return nil
		case ok:
			return refusal(ev)
		case e.stopped.Load():
			return ErrInterrupted
		}
		e.turn()
	}
}

// whatFailed says for people what an event means.
var whatFailed = map[verbs.CMEventType]string{
	verbs.CMAddrError:    "the address could not be resolved",
	verbs.CMRouteError:   "there is no way there",
	verbs.CMConnectError: "the peer does not speak iWARP as we do, or broke off",
	verbs.CMUnreachable:  "nobody has answered in time",
	verbs.CMRejected:     "the peer rejects, or nobody listens there",
}

// refusal makes an error of an event that tells of a failure.
func refusal(ev verbs.CMEvent) error {
	switch what, known := whatFailed[ev.Type]; {
	case ev.Type == verbs.CMDisconnected:
		return lost(ev.Err)
	case known && ev.Err != nil:
		return fmt.Errorf("%w: %s: %w", ErrConnect, what, ev.Err)
	case known:
		return fmt.Errorf("%w: %s", ErrConnect, what)
	}
	return fmt.Errorf("%w: connection event %d was not expected", ErrConnect, ev.Type)
}

func lost(why error) error {
	if why == nil {
		return fmt.Errorf("%w: the peer has disconnected", ErrLost)
	}
	return fmt.Errorf("%w: %w", ErrLost, why)
}

// failed makes an error of a completion.
func failed(wc *verbs.WC) error {
	if wc.Status == verbs.WRFlushErr {
		return lost(nil)
	}
	return fmt.Errorf("rping: %v failed: %v", wc.Opcode, wc.Status)
}

// isOver reports whether err is only that the peer has disconnected.
func isOver(err error) bool { return errors.Is(err, ErrLost) }
