package arq

import (
	"math/bits"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// loss finds what must be sent again, as RACK-TLP does (RFC 8985): by time and
// not by counting, so that reordering costs nothing.
type loss struct {
	sacked, lost int32      // units in these states
	hint         serial.U32 // nothing before it is lost
	backoff      uint8      // time-outs in a row, on any network
	reorderAt    mono.Time  // when something that is missing counts as lost
}

// rack is what of that each network has for itself: what was sent is compared with what
// was sent on the same network, for on another one it may take longer.
type rack struct {
	probed       bool          // a tail-loss probe is under way
	tries        uint8         // probes and time-outs before the first round trip was measured, on one of several networks
	reorderShift uint8         // the reorder window is shifted left by it
	episodes     uint8         // losses since reorderShift was last raised
	shownOnce    bool          // what shown is about was sent once
	fresh        bool          // nothing has arrived since it was empty
	shiftedAt    mono.Time     // when reorderShift was last raised
	rackTime     mono.Time     // latest sending time of anything that has arrived
	shown        mono.Time     // latest sending time of what an acknowledgement shows, 0 = nothing new
	deadline     mono.Time     // of the probe or the time-out
	moved        mono.Time     // when una last moved, or something went into flight
	empty        mono.Duration // shortest round trip since it was last empty
}

const (
	reorderShiftMost = 6
	reorderShiftKept = 16                   // losses for which reorderShift lasts (RFC 8985, section 6.2, step 4)
	backoffMost      = 32                   // keeps the shift sane; RTOMax ends it before
	restartAfter     = 5 * mono.Millisecond // without traffic
)

// begin sets the timer when the first unit goes into flight.
func (f *subflow) begin(now mono.Time) {
	if now.Sub(f.moved) > restartAfter {
		f.restart(now)
	}
	f.fresh = true
	f.progress(now, true)
}

// progress notes that an acknowledgement moved una, or shows that something has arrived
// by this one of several networks, and sets the timer anew if more is in flight.
func (f *subflow) progress(now mono.Time, more bool) {
	f.moved, f.probed = now, false
	if !more {
		f.deadline = mono.Never
		return
	}
	d := f.rtt.probe(&f.sh.cfg)
	if f.rtt.smoothed == 0 {
		d <<= f.tries
	}
	f.deadline = now.Add(d)
}

// shows notes that an acknowledgement shows a unit that was sent at a time.
func (f *subflow) shows(sent mono.Time, once bool) {
	if sent > f.shown {
		f.shown, f.shownOnce = sent, once
	}
}

// arrived takes a unit off the wire that has now arrived.
func (s *Sender) arrived(now mono.Time, r *Unit) {
	f := s.network(r.via())
	if r.state&lost != 0 {
		r.state &^= lost
		s.loss.lost--
		if r.state&probe == 0 { // it was given up too soon
			f.lostBytes = max(0, f.lostBytes-r.bytes())
			f.bePatient(now)
			f.undoTimeout(s)
		}
	} else {
		f.pipe -= r.bytes()
	}
	f.arrivedBytes += r.bytes()
	if r.state&resent != 0 && now.Sub(r.sent)-s.held < f.rtt.lowest/2 {
		// Much sooner than any round trip: that was the first sending, and the
		// time of the second says nothing (RFC 8985, section 6.2, step 2).
		if r.state&probe == 0 {
			f.bePatient(now)
		}
		return
	}
	f.rackTime = max(f.rackTime, r.sent)
	if s.more != nil {
		f.shows(r.sent, r.state&resent == 0)
	}
}

// bePatient widens the reorder window, at most once per round trip.
func (f *subflow) bePatient(now mono.Time) {
	if now.Sub(f.shiftedAt) > f.rtt.smoothed {
		f.shiftedAt, f.episodes = now, 0
		f.reorderShift = min(f.reorderShift+1, reorderShiftMost)
	}
}

// undoTimeout takes back the last time-out on the network, if nothing has confirmed it:
// the peer or this host had lost its core, and what was sent has arrived.
func (f *subflow) undoTimeout(s *Sender) {
	if f.prior == 0 {
		return
	}
	f.cwnd = max(f.cwnd, f.prior)
	f.beganCwnd, f.prior = f.cwnd, 0
	for lsn := s.una; lsn != s.nxt && s.loss.lost > 0; lsn++ {
		if r := s.Unit(lsn); r.state&lost != 0 && s.network(r.via()) == f {
			r.state &^= lost
			s.loss.lost--
			f.pipe += r.bytes()
		}
	}
}

// OnSack takes in one word of selective acknowledgement: bit i set means that
// base+i has arrived. Call Detect after the last word.
func (s *Sender) OnSack(now mono.Time, base serial.U32, word uint64) {
	l := &s.loss
	for ; word != 0; word &= word - 1 {
		lsn := base.Add(int32(bits.TrailingZeros64(word)))
		if !s.Holds(lsn) {
			continue // none of ours: the peer is confused or hostile
		}
		r := s.Unit(lsn)
		if r.state&sacked != 0 {
			continue
		}
		s.arrived(now, r)
		r.state |= sacked
		l.sacked++
		s.network(r.via()).shows(r.sent, r.state&resent == 0)
	}
}

// Detect ends an acknowledgement: it marks as lost what was sent so long
// before something that has arrived that reordering does not explain it, and
// sets the timer for the rest.
func (s *Sender) Detect(now mono.Time) {
	if s.loss.sacked == 0 {
		s.loss.reorderAt = mono.Never
		return
	}
	s.settle(now)
	s.detect(now)
}

func (s *Sender) detect(now mono.Time) {
	found := uint8(0) // a bit for each network
	f, via := &s.subflow, 0
	reorder := f.reorder()
	wait := mono.Never
	left := s.loss.sacked
	for lsn := s.una; lsn != s.nxt && left > 0; lsn++ {
		r := s.Unit(lsn)
		if r.state&sacked != 0 {
			left--
			continue
		}
		if r.state&lost != 0 {
			continue
		}
		if r.via() != via {
			via = r.via()
			f = s.network(via)
			reorder = f.reorder()
		}
		if r.sent > f.rackTime {
			continue
		}
		if due := r.sent.Add(f.rtt.smoothed + reorder); r.sent.Add(reorder) < f.rackTime || due <= now {
			f.lostBytes += r.bytes()
			s.markLost(lsn)
			found |= 1 << via
		} else {
			wait = min(wait, due)
		}
	}
	for ; found != 0; found &= found - 1 {
		f := s.network(bits.TrailingZeros8(found))
		f.onLoss(now)
		if f.episodes++; f.episodes >= reorderShiftKept {
			f.episodes, f.reorderShift = 0, 0
		}
	}
	s.loss.reorderAt = wait
}

// reorder is how much later than its successors on its network a segment may arrive
// before it counts as lost (RFC 8985, section 6.2).
func (f *subflow) reorder() mono.Duration {
	w := max(f.rtt.smoothed/4, f.sh.cfg.ReorderMin) << f.reorderShift
	return min(w, max(f.rtt.smoothed, f.sh.cfg.ProbeMin))
}

func (s *Sender) markLost(lsn serial.U32) {
	r := s.Unit(lsn)
	if r.state&(lost|sacked) != 0 {
		return
	}
	if s.loss.lost == 0 || lsn.Less(s.loss.hint) {
		s.loss.hint = lsn
	}
	r.state = r.state&^probe | lost
	s.loss.lost++
	s.network(r.via()).pipe -= r.bytes()
}

// HasLost reports whether NextLost has something to send again now.
func (s *Sender) HasLost() bool {
	_, ok := s.NextLost()
	return ok
}

// NextLost returns the oldest unit that must be sent again. ok is false when
// there is none, or it may not be sent now.
func (s *Sender) NextLost() (lsn serial.U32, ok bool) {
	if s.loss.lost == 0 {
		return 0, false
	}
	for lsn = s.loss.hint.Max(s.una); lsn != s.nxt; lsn++ {
		if r := s.Unit(lsn); r.state&lost != 0 {
			s.loss.hint = lsn
			return lsn, s.network(r.resendVia(s.use, s.alive)).allows(r.bytes())
		}
	}
	panic("arq: lost units are counted that are not there")
}

// Resent notes that the unit which NextLost named was sent again.
func (s *Sender) Resent(now mono.Time, lsn serial.U32) {
	r := s.Unit(lsn)
	via := r.resendVia(s.use, s.alive)
	f := s.network(via)
	r.state = r.state&^(lost|viaMask) | resent | unitState(via)<<viaShift
	r.sent = now
	s.loss.lost--
	f.push(now, r.bytes())
	if f.deadline == mono.Never {
		f.deadline = now.Add(f.timeout(s))
	}
}

// timeout is how long to wait before everything in flight counts as lost. It
// doubles with every second one: a single datagram often finds a queue full that
// others share well. It differs by up to a quarter from peer to peer and from time to
// time, so that senders that lost datagrams in one full queue do not all send again at
// the same time.
func (f *subflow) timeout(s *Sender) mono.Duration {
	d := f.rtt.retransmit(&f.sh.cfg)
	if f.rtt.smoothed == 0 {
		d <<= f.tries
	}
	d = min(d<<(s.loss.backoff/2), s.sh.cfg.RTOMax)
	jitter := (uint32(s.una) + uint32(s.loss.backoff)) * 0x9e3779b1 >> 20 // Knuth's multiplicative hash
	return d + d/4*mono.Duration(jitter)/(1<<12)
}

// Deadline returns when OnTimer must be called.
func (s *Sender) Deadline() mono.Time {
	at := min(s.deadline, s.loss.reorderAt, s.paceAt)
	for i := 1; i < s.networks(); i++ {
		at = min(at, s.network(i).deadline, s.network(i).paceAt)
	}
	return at
}

// OnTimer does what is due at now: ends a pause, looks for losses, then probes
// for a lost tail by sending the last unit again, then gives up all that is
// in flight with growing intervals. Ask NextLost and CanPush afterwards. It
// never gives up on the peer: one may be alive and have no receive for long, so
// whether it is there is found out by asking it (llp, Hello).
func (s *Sender) OnTimer(now mono.Time) {
	for i := range s.networks() {
		if f := s.network(i); now >= f.paceAt {
			f.paceAt = mono.Never
		}
	}
	if now >= s.loss.reorderAt {
		s.detect(now)
	}
	if s.una == s.nxt {
		return
	}
	for i := range s.networks() {
		if f := s.network(i); now >= f.deadline {
			f.expire(s, now, i)
		}
	}
}

// expire probes the network, number via, or gives up what is in flight there.
func (f *subflow) expire(s *Sender, now mono.Time, via int) {
	f.deadline = now.Add(f.timeout(s))
	renege(s, now)
	if f.pipe == 0 {
		return // what is lost goes out as soon as it may
	}
	if s.more != nil {
		f.tries = min(f.tries+1, 6)
	}
	if !f.probed {
		f.probed = true
		lsn := f.newest(s)
		s.markLost(lsn)
		s.Unit(lsn).state |= probe
		return
	}
	s.loss.backoff = min(s.loss.backoff+1, backoffMost)
	for lsn := s.una; lsn != s.nxt; lsn++ {
		if s.Unit(lsn).via() == via {
			s.markLost(lsn)
		}
	}
	f.onTimeout()
	s.timedOut |= 1 << via
}

// renege takes back that all in flight has arrived, if the peer has said so unit by unit: it
// would have acknowledged the first, so it has lost them since, or never had them (RFC 2018,
// section 8). Otherwise nothing would be sent again, and a peer that is gone not found out.
func renege(s *Sender, now mono.Time) {
	if int(s.loss.sacked) != s.InFlight() {
		return
	}
	for lsn := s.una; lsn != s.nxt; lsn++ {
		r := s.Unit(lsn)
		r.state = r.state&^sacked | resent
		f := s.network(r.via())
		f.pipe += r.bytes()
		if f.deadline == mono.Never { // the timer that has expired may be another network's
			f.deadline = now.Add(f.timeout(s))
		}
	}
	s.loss.sacked = 0
}

// TimeOuts returns how many time-outs there were in a row since anything was
// acknowledged.
func (s *Sender) TimeOuts() int { return int(s.loss.backoff) }

// stuckTries is after how many time-outs in a row something does not get through.
const stuckTries = 8

// Stuck reports whether something does not get through, though the receiver may answer
// when it is asked.
func (s *Sender) Stuck() bool { return s.loss.backoff >= stuckTries }

// Repeat has all that is in flight sent again: the peer had no receive for it,
// and has one now. The network is not to blame, so the window stays as it is.
func (s *Sender) Repeat(now mono.Time) {
	if s.una == s.nxt {
		return
	}
	for lsn := s.una; lsn != s.nxt; lsn++ {
		if r := s.Unit(lsn); r.state&(lost|sacked) == 0 {
			s.markLost(lsn)
			r.state |= probe
		}
	}
	s.loss.backoff = 0
	for i := range s.networks() {
		f := s.network(i)
		f.probed, f.deadline = false, now.Add(f.timeout(s))
	}
}

// newest returns the last unit that is on the wire of the network as far as is known.
// There is one when pipe is not 0.
func (f *subflow) newest(s *Sender) serial.U32 {
	lsn := s.nxt - 1
	for r := s.Unit(lsn); r.state&(sacked|lost) != 0 || s.network(r.via()) != f; r = s.Unit(lsn) {
		lsn--
	}
	return lsn
}
