package arq

import (
	"math"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// congestion is the congestion window of one peer, and what it is derived
// from: the delay of the path, as in Swift (Kumar et al., SIGCOMM 2020).
//
// Once per round, which is one round trip, the shortest round-trip time of the
// round is compared with a target. Above it the window shrinks by a factor;
// below it grows by a step, and fast when the path has been calm for a while.
//
// The target does not depend on the round trip of the path, as long as that is
// shorter. A sender that joins late finds a queue and cannot know how short
// the path is without it; if it added its target to that, it would keep what
// the others give up. The price is that of two paths of different length
// through one queue the shorter one gets more.
//
// Loss shrinks the window as well: by a third when there is delay, for then a
// queue is full, else in proportion, for then it may be bad luck.
//
// A window below one datagram means less than one datagram in a round trip:
// there is a pause after each.
type congestion struct {
	segment int32 // bytes of the largest datagram
	cwnd    int32 // bytes that may be on the wire
	prior   int32 // cwnd before the last time-out, until that has proved right; else 0
	unasked int32 // bytes sent since an acknowledgement was asked for
	pipe    int32 // bytes that are believed to be on the wire
	limited bool  // in this round the window was full
	cut     bool  // in this round the window has been reduced enough
	wasHigh bool  // the round before was above the target
	highs   uint8 // rounds above the target in a row, without loss

	// The round.
	began     mono.Time     // it ends when something sent later is acknowledged
	shortest  mono.Duration // round trip, 0 = none known
	beganCwnd int32         // cwnd at its beginning
	flight    int32         // bytes on the wire when something else than cwnd ended them, 0 = nothing did

	dip    mono.Duration // shortest round trip of those
	highAt mono.Time     // when congestion was last seen

	arrivedBytes, lostBytes int32         // of late: of this round, half of those before it, and so on
	latest                  mono.Duration // last round-trip time, 0 = none known
	paceAt                  mono.Time     // nothing may be sent before; Never = no pause
}

// All sizes of windows in segments; parts of a window in units of share.
const (
	segmentInitial = 1232 // bytes, until SetSegment is called: what gets through everywhere

	cwndInitial = 64                   // most after a time without traffic, too
	cwndSmall   = 4                    // bad luck does not lead below
	cwndPer     = 2 * mono.Millisecond // one segment in this time is always allowed

	stepLeast = 4096             // bytes: for steps, a segment counts as this at least
	stepPart  = 16               // the window grows by one segment in as many rounds,
	stepShare = 128              // and by this part of itself
	stepCalm  = 2                // by one segment in as many rounds while the path is calm
	stepsMost = 12               // most steps after a long round
	calmAfter = mono.Millisecond // without congestion
	longAfter = 16               // rounds above the target prove a long path

	share     = 1024
	cutMost   = share / 2      // for delay
	cutQueue  = share * 3 / 10 // for loss with delay
	luckMost  = share / 2      // losing more is not bad luck
	calmLoses = 4              // no fast growth when one in as many is lost
)

func (c *congestion) init() {
	*c = congestion{segment: segmentInitial, cwnd: cwndInitial * segmentInitial, paceAt: mono.Never}
	c.beganCwnd = c.cwnd
}

// setSegment tells the largest datagram payload in bytes: the unit in which
// the congestion window grows and shrinks.
func (c *congestion) setSegment(bytes int) {
	n := int64(max(bytes, 1))
	scale := func(v int32) int32 { return int32(int64(v) * n / int64(c.segment)) }
	c.cwnd, c.beganCwnd, c.prior = max(scale(c.cwnd), 1), scale(c.beganCwnd), scale(c.prior)
	c.segment = int32(n)
}

// lossShare returns how much of what was sent of late is lost.
func (c *congestion) lossShare() int64 {
	return int64(c.lostBytes) * share / max(int64(c.lostBytes)+int64(c.arrivedBytes), 1)
}

// AckSoon reports whether the datagram that is being sent should ask for its
// acknowledgement: four times per window, so that acknowledgements keep a
// small window moving though the receiver delays acknowledgements. Call it once for each
// datagram.
func (s *Sender) AckSoon() bool {
	f := s.current()
	if f.unasked < f.cwnd>>2 && f.rtt.smoothed != 0 {
		return false
	}
	f.unasked = 0
	return true
}

// allows reports whether n more bytes may be on the wire. One unit may,
// whatever its size.
func (f *subflow) allows(n int32) bool {
	return (f.pipe+n <= f.cwnd || f.pipe == 0) && f.paceAt == mono.Never
}

// fill notes that the window is full. When one unit alone is more than the
// window, there is a pause for the excess.
func (f *subflow) fill(now mono.Time) {
	f.limited = true
	if f.pipe > f.cwnd && f.cwnd < f.segment && f.latest > 0 {
		pause := mono.Duration(int64(f.latest) * int64(f.pipe) / int64(f.cwnd))
		f.paceAt = now.Add(min(pause, cwndPer))
	}
}

// restart is called when something is sent after a time without traffic. What
// was learned is old: a large window is not used at once.
func (f *subflow) restart(now mono.Time) {
	c := &f.congestion
	c.cwnd = min(c.cwnd, cwndInitial*c.segment)
	c.beganCwnd, c.prior = c.cwnd, 0
	c.began, c.shortest = now, 0
	c.limited, c.flight, c.cut, c.wasHigh = false, 0, false, false
	c.highs = 0
}

// measure takes in that something sent at the time sent has been acknowledged
// now; clean means that it was sent once, so that the round-trip time is known.
func (f *subflow) measure(s *Sender, now, sent mono.Time, clean bool) {
	c := &f.congestion
	if clean && s.held < HeldUnknown {
		d := max(now.Sub(sent)-s.held, 1)
		first := f.rtt.smoothed == 0
		f.rtt.sample(d)
		if first && int(s.peerWindow) < f.sh.cfg.Window {
			// The peer divides its room among many senders: that was no empty
			// path. What it was is not taken for the length of the path.
			f.rtt.lowest = min(d, f.sh.cfg.DelayTarget)
		}
		c.latest = d
		if f.fresh || d < f.empty {
			f.fresh, f.empty = false, d
		}
		if c.shortest == 0 || d < c.shortest {
			c.shortest = d
		}
	}
	switch {
	case sent <= c.began:
	case !c.limited && !c.wasHigh && c.shortest < f.sh.cfg.DelayTarget:
		// An idle path: nothing to learn.
		c.began, c.shortest, c.flight, c.cut, c.prior = now, 0, 0, false, 0
		c.arrivedBytes, c.lostBytes = c.arrivedBytes/2, c.lostBytes/2
	default:
		f.endRound(now)
	}
}

// target returns the round-trip time to aim at, and that of an empty path.
// Small windows aim higher, which lets small ones grow at the cost of large
// ones, and leaves room for the queue that many senders make by chance.
func (f *subflow) target() (target, base mono.Duration) {
	base = f.rtt.lowest
	small := math.Sqrt(float64(f.segment) / float64(f.cwnd))
	return f.flatTarget() + mono.Duration(small*float64(f.sh.cfg.DelayTarget*3/10)), base
}

// flatTarget is the target of a very large window: the same for all paths that
// are not long.
func (f *subflow) flatTarget() mono.Duration {
	if f.rtt.lowest > f.sh.cfg.DelayTarget {
		return f.rtt.lowest * 4 / 3
	}
	return f.sh.cfg.DelayTarget
}

// endRound adjusts the window to what the round has shown. A large window
// forgives one round above the target: that was a host that lost its core, and
// not a queue. A sender that does not use its window has not caused the delay.
func (f *subflow) endRound(now mono.Time) {
	c := &f.congestion
	elapsed := now.Sub(c.began)
	limited, flight, shortest, cut, wasHigh := c.limited, c.flight, c.shortest, c.cut, c.wasHigh
	c.began, c.shortest, c.limited, c.flight, c.cut, c.wasHigh, c.prior = now, 0, false, 0, false, false, 0

	target, base := f.target()
	high := shortest > target
	if high {
		c.wasHigh, c.highAt = true, now
		if flight > 0 && !limited {
			// The peer's window is the smaller one, and still makes a queue.
			c.cwnd, c.beganCwnd, limited = min(c.cwnd, flight), min(c.beganCwnd, flight), true
		}
		if limited {
			f.longPath(shortest, cut)
		}
	} else if shortest != 0 {
		c.highs = 0
	} else {
		shortest = base + (target-base)/4
	}
	switch {
	case cut: // once per round is enough
	case high && limited && (wasHigh || c.cwnd < cwndSmall*c.segment):
		f.reduce(min(share-int64(max(target*6/10, base))*share/int64(shortest), cutMost), 0)
	case !high && limited:
		f.grow(now, elapsed, max(shortest, 1))
	}
	c.arrivedBytes, c.lostBytes = c.arrivedBytes/2, c.lostBytes/2
	c.beganCwnd = c.cwnd
}

// longPath finds out that a path is longer than the target, or has become so:
// nothing that is done about the delay helps.
func (f *subflow) longPath(shortest mono.Duration, cut bool) {
	c := &f.congestion
	if cut {
		c.highs = 0
	}
	if c.highs == longAfter/2 || shortest < c.dip { // in the first half it is still being reduced
		c.dip = shortest
	}
	if c.highs++; c.highs == longAfter {
		f.rtt.lowest = c.dip
		c.highs = 0
	}
}

// reduce takes part of the window that the round began with, in units of
// share, but leaves least bytes. One segment in cwndPer is always allowed.
func (f *subflow) reduce(part, least int64) {
	c := &f.congestion
	least = max(least, min(int64(c.segment)*int64(f.rtt.smoothed)/int64(cwndPer), cwndInitial*int64(c.segment)), 1)
	c.cwnd = int32(min(int64(c.cwnd), max(int64(c.beganCwnd)*(share-part)/share, least)))
}

// grow opens the window after a round of the given length. Longer rounds, of
// windows below a segment, make larger steps, so that large and small windows
// grow alike.
func (f *subflow) grow(now mono.Time, elapsed, shortest mono.Duration) {
	c := &f.congestion
	step := (int64(max(c.segment, stepLeast))/stepPart + int64(c.cwnd)/stepShare) * int64(min(elapsed, stepsMost*shortest)) / int64(shortest)
	factor := int64(0)
	half := (f.flatTarget() + f.rtt.lowest) / 2
	if shortest < half && now.Sub(c.highAt) > calmAfter+4*elapsed {
		step = max(step, int64(c.segment)/stepCalm)
		free := int64(half-shortest) * share / int64(f.flatTarget())
		factor = free * max(0, share-calmLoses*c.lossShare()) / share
	}
	c.cwnd = int32(min(int64(c.cwnd)+step+int64(c.cwnd)*factor/share, WindowMax*int64(c.segment)))
}

// onLoss reduces the window for what was found lost. That is done at once and
// not at the end of the round, for what is lost is sent again at once. Without
// delay it may be bad luck: then the window shrinks by half of the share that
// was lost, not below cwndSmall, and goes on growing.
func (f *subflow) onLoss(now mono.Time) {
	c := &f.congestion
	part, least := c.lossShare(), int64(0)
	switch {
	case f.latest > (f.flatTarget()+f.rtt.lowest)/2:
		part = max(part, cutQueue)
		c.cut, c.highAt = true, now
		f.rtt.lowest = min(f.rtt.lowest, f.sh.cfg.DelayTarget) // a queue is full: that was no long path
	case part > luckMost:
		c.cut = true
	default:
		part, least = part/2, cwndSmall*int64(c.segment)
	}
	f.reduce(part, least)
}

// onTimeout is for a time-out: nothing is known any more.
func (f *subflow) onTimeout() {
	c := &f.congestion
	c.prior = max(c.prior, c.cwnd)
	c.cwnd = min(c.cwnd, c.segment)
	c.beganCwnd, c.cut = c.cwnd, true
}
