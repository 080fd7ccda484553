package progress

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// This file is for programs whose event loop is select(2), poll(2) or
// epoll(7) and not Park: a descriptor stands for everything that Park would
// wait for.

// Pollable is a Parker that lends a descriptor to wait on instead of Park.
type Pollable interface {
	// FD returns a descriptor, always the same, that is readable when a Park
	// until then would return: on input, on Wake, or at that time. It is to be
	// called again before each wait.
	FD(until mono.Time) (int, error)
}

// Signal is a descriptor that is readable while the signal is set.
type Signal struct {
	bell event.Bell
	set  bool
}

// NewSignal makes a signal that is not set. The caller closes it.
func NewSignal() (*Signal, error) {
	bell, err := event.NewBell()
	if err != nil {
		return nil, fmt.Errorf("progress: %w", err)
	}
	return &Signal{bell: bell}, nil
}

// FD returns the descriptor, which stays the signal's.
func (s *Signal) FD() int { return int(s.bell) }

// Set sets the signal or takes it back.
func (s *Signal) Set(on bool) {
	if s.set == on {
		return
	}
	s.set = on
	if on {
		s.bell.Ring()
	} else {
		s.bell.Quiet()
	}
}

// Close closes the descriptor.
func (s *Signal) Close() error { return s.bell.Close() }

// WaitFD is a descriptor for a caller that waits for something that an engine
// brings about: it is readable when that is there, and when the engine has
// something to do that may bring it.
type WaitFD struct {
	engine *Engine
	outer  event.Set // of signal and the parker's descriptor
	signal *Signal   // it is there
}

// NewWaitFD makes a descriptor. It returns nil when the engine's parker has
// none, as in the simulator. The caller closes it.
func (e *Engine) NewWaitFD() (*WaitFD, error) {
	p, has := e.parker.(Pollable)
	if !has {
		return nil, nil
	}
	inner, err := p.FD(e.NextDeadline())
	if err != nil {
		return nil, err
	}
	signal, err := NewSignal()
	if err != nil {
		return nil, err
	}
	outer, err := event.NewSet(inner, signal.FD())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("progress: %w", err), signal.Close())
	}
	return &WaitFD{engine: e, outer: outer, signal: signal}, nil
}

// Set says whether what is waited for is there.
func (w *WaitFD) Set(there bool) { w.signal.Set(there) }

// FD returns the descriptor. It is to be called again right before each wait,
// after the engine has stepped until it found nothing to do.
func (w *WaitFD) FD() int {
	// It was opened by NewWaitFD; there is no other error.
	_, _ = w.engine.parker.(Pollable).FD(w.engine.NextDeadline())
	w.engine.parked = true
	return int(w.outer)
}

// Close closes the descriptor.
func (w *WaitFD) Close() error { return errors.Join(w.outer.Close(), w.signal.Close()) }

// nest is what a Poller waits for, as one descriptor.
type nest struct {
	set   event.Set // of everything that is watched, and of timer
	timer int
	armed bool
}

func (p *Poller) newNest() (*nest, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("progress: timerfd_create: %w (too many open files? see ulimit -n)", err)
	}
	fds := []int{timer}
	for _, f := range p.fds {
		fds = append(fds, int(f.Fd))
	}
	set, err := event.NewSet(fds...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("progress: %w", err), os.NewSyscallError("close", unix.Close(timer)))
	}
	return &nest{set: set, timer: timer}, nil
}

func (n *nest) close() error {
	return errors.Join(n.set.Close(), os.NewSyscallError("close", unix.Close(n.timer)))
}

// arm makes the timer readable after rest; 0 means never.
func (n *nest) arm(rest mono.Duration) {
	if rest == 0 && !n.armed {
		return
	}
	n.armed = rest != 0
	// A relative time of our own clock cannot be wrong.
	_ = unix.TimerfdSettime(n.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(rest))}, nil)
}

// FD implements Pollable.
func (p *Poller) FD(until mono.Time) (int, error) {
	if p.nest == nil {
		n, err := p.newNest()
		if err != nil {
			return -1, err
		}
		p.nest = n
	}
	rest := mono.Duration(0)
	due := false
	if until != mono.Never {
		rest = until.Sub(p.clock.Now())
		due = rest <= 0
	}
	p.event.Quiet()
	p.nest.arm(max(rest, 0))
	// From now on Wake writes to the eventfd, as it does during a Park.
	if p.state.Swap(asleep) == notified || due {
		p.event.Ring()
	}
	p.ask()
	return int(p.nest.set), nil
}
