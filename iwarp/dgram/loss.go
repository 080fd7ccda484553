package dgram

import (
	"math/bits"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
)

// loss finds what must be sent again, as RACK-TLP does (RFC 8985): by time and
// not by counting, so that reordering costs nothing.
type loss struct {
	sacked, lost int32      // ULPDUs in these states
	hint         serial.U32 // nothing before it is lost
	backoff      uint8
	probed       bool
	rackTime     mono.Time // latest sending time of anything that has arrived
	deadline     mono.Time // of the reorder timer, the probe or the time-out
}

// begin sets the timer when the first ULPDU goes into flight.
func (l *loss) begin(now mono.Time, probe mono.Duration) {
	l.probed, l.backoff = false, 0
	l.deadline = now.Add(probe)
}

// progress notes that an acknowledgement moved una, and sets the timer anew.
func (s *Sender) progress(now mono.Time) {
	l := &s.loss
	l.probed, l.backoff = false, 0
	if s.una == s.nxt {
		l.deadline = mono.Never
		return
	}
	l.deadline = now.Add(s.rtt.probe(&s.sh.cfg))
}

// acked takes a ULPDU with a history out of flight.
func (s *Sender) acked(now mono.Time, r *Record) {
	if r.state&sacked != 0 {
		s.loss.sacked--
		return
	}
	if r.state&lost != 0 {
		s.loss.lost--
	} else {
		s.pipe -= r.bytes()
	}
	s.arrived(now, r)
}

// arrived notes when something that has now arrived was sent. A segment that
// was sent twice and acknowledged sooner than any round trip was acknowledged
// for its first sending: its time says nothing (RFC 8985, section 6.2, step 2).
func (s *Sender) arrived(now mono.Time, r *Record) {
	if r.state&resent != 0 && now.Sub(r.sent) < s.rtt.lowest {
		return
	}
	s.loss.rackTime = max(s.loss.rackTime, r.sent)
}

// OnSack takes in one word of selective acknowledgement: bit i set means that
// base+i has arrived. Call Detect after the last word.
func (s *Sender) OnSack(now mono.Time, base serial.U32, word uint64) {
	for ; word != 0; word &= word - 1 {
		lsn := base.Add(int32(bits.TrailingZeros64(word)))
		if !lsn.In(s.una, uint32(s.nxt-s.una)) {
			continue // none of ours: the peer is confused or hostile
		}
		r := s.Record(lsn)
		if r.state&sacked != 0 {
			continue
		}
		s.acked(now, r)
		r.state = r.state&^lost | sacked
		s.loss.sacked++
	}
}

// Detect marks as lost what was sent so long before something that has arrived
// that reordering does not explain it, and sets the timer for the rest.
func (s *Sender) Detect(now mono.Time) {
	if s.loss.sacked == 0 {
		return
	}
	reorder := s.rtt.reorder(&s.sh.cfg)
	wait := mono.Never
	found := false
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
			s.markLost(lsn)
			found = true
		} else {
			wait = min(wait, due)
		}
	}
	if found {
		s.shrink(s.una, s.nxt)
	}
	if wait != mono.Never {
		s.loss.deadline = min(s.loss.deadline, wait)
	}
}

func (s *Sender) markLost(lsn serial.U32) {
	r := s.Record(lsn)
	if r.state&(lost|sacked) != 0 {
		return
	}
	if s.loss.lost == 0 || lsn.Less(s.loss.hint) {
		s.loss.hint = lsn
	}
	r.state |= lost
	s.loss.lost++
	s.pipe -= r.bytes()
}

// HasLost reports whether NextLost has something to send again now.
func (s *Sender) HasLost() bool {
	_, ok := s.NextLost()
	return ok
}

// NextLost returns the oldest ULPDU that must be sent again and may be now.
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
	panic("dgram: lost ULPDUs are counted that are not there")
}

// Resent notes that the ULPDU which NextLost named was sent again.
func (s *Sender) Resent(now mono.Time, lsn serial.U32) {
	r := s.Record(lsn)
	r.state = r.state&^lost | resent
	r.sent = now
	s.loss.lost--
	s.pipe += r.bytes()
	if s.loss.deadline == mono.Never {
		s.loss.deadline = now.Add(s.timeout())
	}
}

// timeout is how long to wait before everything in flight counts as lost.
func (s *Sender) timeout() mono.Duration {
	return s.rtt.retransmit(&s.sh.cfg) << s.loss.backoff
}

// OnTimer does what is due at now: looks for losses, then probes for a lost
// tail by sending the last ULPDU again, then repeats the oldest with growing
// intervals. It never gives up: a peer may be alive and have no receive for
// long, so whether it is there is found out by asking it (llp, Hello).
func (s *Sender) OnTimer(now mono.Time) {
	l := &s.loss
	if now < l.deadline || s.una == s.nxt {
		return
	}
	l.deadline = now.Add(s.timeout())
	before := l.lost
	s.Detect(now)
	if l.lost > before || s.pipe == 0 {
		return // what is lost goes out at once
	}
	if !l.probed {
		l.probed = true
		s.markLost(s.newest())
		return
	}
	if s.timeout() < s.sh.cfg.RTOMax {
		l.backoff++
	}
	for lsn := s.una; lsn != s.nxt; lsn++ {
		s.markLost(lsn)
	}
	s.shrink(s.una, s.nxt)
	s.collapse()
}

// newest returns the last ULPDU that is on the wire as far as we know. There
// is one when pipe is not 0.
func (s *Sender) newest() serial.U32 {
	lsn := s.nxt - 1
	for s.Record(lsn).state&(sacked|lost) != 0 {
		lsn--
	}
	return lsn
}
