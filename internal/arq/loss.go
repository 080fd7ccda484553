package arq

import (
	"math/bits"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
)

// loss finds what must be sent again, as RACK-TLP does (RFC 8985): by time and
// not by counting, so that reordering costs nothing.
type loss struct {
	sacked, lost int32      // units in these states
	hint         serial.U32 // nothing before it is lost
	backoff      uint8      // time-outs in a row
	probed       bool       // a tail-loss probe is under way
	patience     uint8      // the reorder window is shifted left by it
	episodes     uint8      // losses since patience was last raised
	patientAt    mono.Time  // when that was
	rackTime     mono.Time  // latest sending time of anything that has arrived
	sackSent     mono.Time  // latest sending time of what the SACK words show, 0 = nothing new
	sackClean    bool       // it was sent once
	reorderAt    mono.Time  // when something that is missing counts as lost
	deadline     mono.Time  // of the probe or the time-out
	moved        mono.Time  // when una last moved, or something went into flight
}

const (
	patienceMost = 6
	patienceKept = 16                   // losses for which patience lasts (RFC 8985, section 6.2, step 4)
	backoffMost  = 32                   // keeps the shift sane; RTOMax ends it before
	restartAfter = 5 * mono.Millisecond // without traffic
)

// begin sets the timer when the first unit goes into flight.
func (s *Sender) begin(now mono.Time) {
	l := &s.loss
	if now.Sub(l.moved) > restartAfter {
		s.restart(now)
	}
	l.moved = now
	l.probed, l.backoff = false, 0
	l.deadline = now.Add(s.rtt.probe(&s.sh.cfg))
}

// progress notes that an acknowledgement moved una, and sets the timer anew.
func (s *Sender) progress(now mono.Time) {
	l := &s.loss
	l.moved = now
	l.probed, l.backoff = false, 0
	if s.una == s.nxt {
		l.deadline = mono.Never
		return
	}
	l.deadline = now.Add(s.rtt.probe(&s.sh.cfg))
}

// arrived takes a unit off the wire that has now arrived.
func (s *Sender) arrived(now mono.Time, r *Record) {
	if r.state&lost != 0 {
		r.state &^= lost
		s.loss.lost--
		if r.state&probe == 0 { // it was given up too soon
			s.lostBytes = max(0, s.lostBytes-r.bytes())
			s.bePatient(now)
			s.undoTimeout()
		}
	} else {
		s.pipe -= r.bytes()
	}
	s.arrivedBytes += r.bytes()
	if r.state&resent != 0 && now.Sub(r.sent)-s.held < s.rtt.lowest/2 {
		// Much sooner than any round trip: that was the first sending, and the
		// time of the second says nothing (RFC 8985, section 6.2, step 2).
		if r.state&probe == 0 {
			s.bePatient(now)
		}
		return
	}
	s.loss.rackTime = max(s.loss.rackTime, r.sent)
}

// bePatient widens the reorder window, at most once per round trip.
func (s *Sender) bePatient(now mono.Time) {
	l := &s.loss
	if now.Sub(l.patientAt) > s.rtt.smoothed {
		l.patientAt, l.episodes = now, 0
		l.patience = min(l.patience+1, patienceMost)
	}
}

// undoTimeout takes back the last time-out, if nothing has confirmed it: the
// peer or this host had lost its core, and what was sent has arrived.
func (s *Sender) undoTimeout() {
	if s.prior == 0 {
		return
	}
	s.cwnd = max(s.cwnd, s.prior)
	s.beganCwnd, s.prior = s.cwnd, 0
	for lsn := s.una; lsn != s.nxt && s.loss.lost > 0; lsn++ {
		if r := s.Record(lsn); r.state&lost != 0 {
			r.state &^= lost
			s.loss.lost--
			s.pipe += r.bytes()
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
		r := s.Record(lsn)
		if r.state&sacked != 0 {
			continue
		}
		s.arrived(now, r)
		r.state |= sacked
		l.sacked++
		if r.sent > l.sackSent {
			l.sackSent, l.sackClean = r.sent, r.state&resent == 0
		}
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
	if l := &s.loss; l.sackSent != 0 {
		s.measure(now, l.sackSent, l.sackClean)
		l.sackSent = 0
	}
	s.detect(now)
}

func (s *Sender) detect(now mono.Time) {
	found := false
	reorder := s.reorder()
	wait := mono.Never
	left := s.loss.sacked
	for lsn := s.una; lsn != s.nxt && left > 0; lsn++ {
		r := s.Record(lsn)
		if r.state&sacked != 0 {
			left--
			continue
		}
		if r.state&lost != 0 || r.sent > s.loss.rackTime {
			continue
		}
		if due := r.sent.Add(s.rtt.smoothed + reorder); r.sent.Add(reorder) < s.loss.rackTime || due <= now {
			s.lostBytes += r.bytes()
			s.markLost(lsn)
			found = true
		} else {
			wait = min(wait, due)
		}
	}
	if found {
		s.onLoss(now)
		if s.loss.episodes++; s.loss.episodes >= patienceKept {
			s.loss.episodes, s.loss.patience = 0, 0
		}
	}
	s.loss.reorderAt = wait
}

// reorder is how much later than its successors a segment may arrive before it
// counts as lost (RFC 8985, section 6.2).
func (s *Sender) reorder() mono.Duration {
	c := &s.sh.cfg
	w := max(s.rtt.smoothed/4, c.ReorderMin) << s.loss.patience
	return min(w, max(s.rtt.smoothed, c.ProbeMin))
}

func (s *Sender) markLost(lsn serial.U32) {
	r := s.Record(lsn)
	if r.state&(lost|sacked) != 0 {
		return
	}
	if s.loss.lost == 0 || lsn.Less(s.loss.hint) {
		s.loss.hint = lsn
	}
	r.state = r.state&^probe | lost
	s.loss.lost++
	s.pipe -= r.bytes()
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
		if r := s.Record(lsn); r.state&lost != 0 {
			s.loss.hint = lsn
			return lsn, s.allows(r.bytes())
		}
	}
	panic("arq: lost units are counted that are not there")
}

// Resent notes that the unit which NextLost named was sent again.
func (s *Sender) Resent(now mono.Time, lsn serial.U32) {
	r := s.Record(lsn)
	r.state = r.state&^lost | resent
	r.sent = now
	s.loss.lost--
	s.pipe += r.bytes()
	s.unasked += r.bytes()
	if s.pipe+s.segment > s.cwnd {
		s.fill(now)
	}
	if s.loss.deadline == mono.Never {
		s.loss.deadline = now.Add(s.timeout())
	}
}

// timeout is how long to wait before everything in flight counts as lost. It
// doubles with every second one: a single datagram often finds a queue full
// that others share well, and must not starve. It differs by up to a quarter from peer to peer and from time to time, so that
// those whom one full queue has hit do not come back all at once.
func (s *Sender) timeout() mono.Duration {
	d := s.rtt.retransmit(&s.sh.cfg)
	d = min(d<<(s.loss.backoff/2), s.sh.cfg.RTOMax)
	jitter := (uint32(s.una) + uint32(s.loss.backoff)) * 0x9e3779b1 >> 20 // Knuth's multiplicative hash
	return d + d/4*mono.Duration(jitter)/(1<<12)
}

// Deadline returns when OnTimer must be called.
func (s *Sender) Deadline() mono.Time { return min(s.loss.deadline, s.loss.reorderAt, s.paceAt) }

// OnTimer does what is due at now: ends a pause, looks for losses, then probes
// for a lost tail by sending the last unit again, then gives up all that is
// in flight with growing intervals. Ask NextLost and CanPush afterwards. It
// never gives up on the peer: one may be alive and have no receive for long, so
// whether it is there is found out by asking it (llp, Hello).
func (s *Sender) OnTimer(now mono.Time) {
	l := &s.loss
	if now >= s.paceAt {
		s.paceAt = mono.Never
	}
	if now >= l.reorderAt {
		s.detect(now)
	}
	if now < l.deadline || s.una == s.nxt {
		return
	}
	l.deadline = now.Add(s.timeout())
	if s.pipe == 0 {
		return // what is lost goes out as soon as it may
	}
	if !l.probed {
		l.probed = true
		lsn := s.newest()
		s.markLost(lsn)
		s.Record(lsn).state |= probe
		return
	}
	l.backoff = min(l.backoff+1, backoffMost)
	for lsn := s.una; lsn != s.nxt; lsn++ {
		s.markLost(lsn)
	}
	s.onTimeout()
}

// TimeOuts returns how many time-outs there were in a row since anything was
// acknowledged.
func (s *Sender) TimeOuts() int { return int(s.loss.backoff) }

// Repeat has all that is in flight sent again: the peer had no receive for it,
// and has one now. The network is not to blame, so the window stays as it is.
func (s *Sender) Repeat(now mono.Time) {
	if s.una == s.nxt {
		return
	}
	for lsn := s.una; lsn != s.nxt; lsn++ {
		if r := s.Record(lsn); r.state&(lost|sacked) == 0 {
			s.markLost(lsn)
			r.state |= probe
		}
	}
	s.loss.probed, s.loss.backoff = false, 0
	s.loss.deadline = now.Add(s.timeout())
}

// newest returns the last unit that is on the wire as far as we know. There
// is one when pipe is not 0.
func (s *Sender) newest() serial.U32 {
	lsn := s.nxt - 1
	for s.Record(lsn).state&(sacked|lost) != 0 {
		lsn--
	}
	return lsn
}
