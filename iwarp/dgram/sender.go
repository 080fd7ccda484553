package dgram

import (
	"fmt"
	"math/bits"

	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
)

// Record is what the sender remembers of a ULPDU in flight: not its bytes, but
// where they came from. The owner of the token builds it again from the source
// buffer when it is lost (DESIGN.md, rule 4).
type Record struct {
	Token uint32 // whose bytes: the caller's
	Off   uint32 // offset of the payload in the message
	Len   uint32 // bytes of payload
	Last  bool   // last ULPDU of its message

	sent  mono.Time // when it was last sent
	state recordState
}

type recordState uint8

const (
	sacked recordState = 1 << iota // arrived, though something before it did not
	lost                           // to be sent again
	resent                         // was sent more than once: no RTT sample
)

// Sender is the sending half of a peer: the window of ULPDUs in flight, what
// of it is lost, and when to try again.
//
// Loss is found as RACK-TLP does (RFC 8985): by time and not by counting, so
// that reordering costs nothing.
type Sender struct {
	cfg  *Config
	una  serial.U32 // oldest ULPDU in flight
	nxt  serial.U32 // next to be sent
	recs []Record   // ring, indexed by LSN

	sackedCount, lostCount int
	lostHint               serial.U32 // nothing before it is lost

	peerWindow uint32 // what the peer takes, from una on
	cwnd       uint32 // congestion window in ULPDUs
	ssthresh   uint32
	credit     uint32     // acknowledged ULPDUs towards the next step of cwnd
	recovery   serial.U32 // cwnd is not reduced again before this one is acknowledged

	rtt      rtt
	rackTime mono.Time // latest sending time of anything that has arrived
	deadline mono.Time // of the reorder timer, the probe or the time-out
	probed   bool
	backoff  uint
	heard    mono.Time // when the peer last acknowledged something, or owed nothing
}

const (
	cwndMin     = 4
	cwndInitial = 64
)

// Init makes s ready. first is the LSN of the first ULPDU.
func (s *Sender) Init(c *Config, first serial.U32) {
	if c.Window > windowMax || c.Window&(c.Window-1) != 0 || c.Window <= 0 {
		panic(fmt.Sprintf("dgram: window %d is not a power of two up to %d", c.Window, windowMax))
	}
	*s = Sender{
		cfg: c, una: first, nxt: first, lostHint: first, recovery: first,
		recs:       make([]Record, c.Window),
		peerWindow: min(cwndInitial, uint32(c.Window)),
		cwnd:       min(cwndInitial, uint32(c.Window)),
		ssthresh:   uint32(c.Window),
		deadline:   mono.Never,
	}
}

// InFlight returns how many ULPDUs are not acknowledged.
func (s *Sender) InFlight() int { return int(s.nxt - s.una) }

// Next returns the LSN that the next Push will use.
func (s *Sender) Next() serial.U32 { return s.nxt }

// Record returns the record of a ULPDU in flight, or of one that the last
// OnAck took out of flight, until the next Push.
func (s *Sender) Record(lsn serial.U32) *Record { return &s.recs[uint32(lsn)&uint32(len(s.recs)-1)] }

// pipe is how many ULPDUs are believed to be on the wire.
func (s *Sender) pipe() uint32 { return uint32(s.InFlight() - s.sackedCount - s.lostCount) }

// CanPush reports whether a new ULPDU may be sent now.
func (s *Sender) CanPush() bool {
	n := uint32(s.nxt - s.una)
	return n < s.peerWindow && n < uint32(len(s.recs)) && s.pipe() < s.cwnd
}

// Push takes the next LSN for a ULPDU that is sent now. The caller has asked
// CanPush.
func (s *Sender) Push(now mono.Time, token, off, n uint32, last bool) serial.U32 {
	lsn := s.nxt
	*s.Record(lsn) = Record{Token: token, Off: off, Len: n, Last: last, sent: now}
	if s.una == s.nxt {
		s.heard = now
		s.probed, s.backoff = false, 0
		s.deadline = now.Add(s.rtt.probe(s.cfg))
	}
	s.nxt++
	return lsn
}

// Date gives the ULPDUs from first on their sending time, after they were
// pushed with one that was too early.
func (s *Sender) Date(now mono.Time, first serial.U32) {
	if !first.In(s.una, uint32(s.nxt-s.una)) {
		return
	}
	for lsn := first; lsn != s.nxt; lsn++ {
		s.Record(lsn).sent = now
	}
	if first == s.una {
		s.heard = now
		s.deadline = now.Add(s.rtt.probe(s.cfg))
	}
}

// NextLost returns the oldest ULPDU that must be sent again and may be now.
func (s *Sender) NextLost() (lsn serial.U32, ok bool) {
	if s.lostCount == 0 || s.pipe() >= s.cwnd {
		return 0, false
	}
	for lsn = s.lostHint.Max(s.una); lsn != s.nxt; lsn++ {
		if s.Record(lsn).state&lost != 0 {
			s.lostHint = lsn
			return lsn, true
		}
	}
	panic("dgram: lost ULPDUs are counted that are not there")
}

// Resent notes that the ULPDU which NextLost named was sent again.
func (s *Sender) Resent(now mono.Time, lsn serial.U32) {
	r := s.Record(lsn)
	r.state = r.state&^lost | resent
	r.sent = now
	s.lostCount--
	if s.deadline == mono.Never {
		s.deadline = now.Add(s.rtt.retransmit(s.cfg) << s.backoff)
	}
}

// OnAck takes in an acknowledgement: everything before ack has arrived, and
// the peer takes window ULPDUs from there on. It returns the range [from, ack)
// that is no longer in flight. ok is false when ack is none of ours, which is
// old news or nonsense; then nothing changed.
func (s *Sender) OnAck(now mono.Time, ack serial.U32, window uint16) (from serial.U32, ok bool) {
	from = s.una
	n := uint32(ack - from)
	if n > uint32(s.nxt-from) {
		return from, false
	}
	s.peerWindow = uint32(window)
	if n == 0 {
		return from, true
	}
	for lsn := from; lsn != ack; lsn++ {
		r := s.Record(lsn)
		if r.state == 0 {
			s.arrived(now, r)
			continue
		}
		if r.state&lost != 0 {
			s.lostCount--
		}
		if r.state&sacked != 0 {
			s.sackedCount--
		} else {
			s.arrived(now, r)
		}
	}
	s.rttSample(now, ack-1)
	s.una = ack
	s.heard = now
	s.probed, s.backoff = false, 0
	s.grow(n)
	s.rearm(now)
	return from, true
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
		if r.state&lost != 0 {
			r.state &^= lost
			s.lostCount--
		}
		s.arrived(now, r)
		r.state |= sacked
		s.sackedCount++
		s.heard = now
	}
}

// arrived notes when something that has now arrived was sent. A segment that
// was sent twice and acknowledged sooner than any round trip was acknowledged
// for its first sending: its time says nothing (RFC 8985, section 6.2, step 2).
func (s *Sender) arrived(now mono.Time, r *Record) {
	if r.state&resent != 0 && now.Sub(r.sent) < s.rtt.lowest {
		return
	}
	s.rackTime = max(s.rackTime, r.sent)
}

func (s *Sender) rttSample(now mono.Time, lsn serial.U32) {
	if r := s.Record(lsn); r.state&(resent|sacked) == 0 {
		s.rtt.sample(now.Sub(r.sent))
	}
}

// Detect marks as lost what was sent so long before something that has arrived
// that reordering does not explain it, and sets the timer for the rest.
func (s *Sender) Detect(now mono.Time) {
	if s.sackedCount == 0 {
		return
	}
	reorder := s.rtt.reorder(s.cfg)
	wait := mono.Never
	found := false
	left := s.sackedCount
	for lsn := s.una; lsn != s.nxt && left > 0; lsn++ {
		r := s.Record(lsn)
		if r.state&sacked != 0 {
			left--
			continue
		}
		if r.state&lost != 0 || r.sent > s.rackTime {
			continue
		}
		if due := r.sent.Add(s.rtt.smoothed + reorder); r.sent.Add(reorder) < s.rackTime || due <= now {
			s.markLost(lsn)
			found = true
		} else {
			wait = min(wait, due)
		}
	}
	if found {
		s.shrink()
	}
	if wait != mono.Never {
		s.deadline = min(s.deadline, wait)
	}
}

func (s *Sender) markLost(lsn serial.U32) {
	r := s.Record(lsn)
	if r.state&(lost|sacked) != 0 {
		return
	}
	if s.lostCount == 0 || lsn.Less(s.lostHint) {
		s.lostHint = lsn
	}
	r.state |= lost
	s.lostCount++
}

// rearm sets the timer anew after progress.
func (s *Sender) rearm(now mono.Time) {
	if s.una == s.nxt {
		s.deadline = mono.Never
		return
	}
	s.deadline = now.Add(s.rtt.probe(s.cfg))
}

// Deadline returns when OnTimer must be called.
func (s *Sender) Deadline() mono.Time { return s.deadline }

// OnTimer does what is due at now: looks for losses, then probes for a lost
// tail by sending the last ULPDU again, then repeats the oldest with growing
// intervals. It reports whether the peer has been silent for too long.
func (s *Sender) OnTimer(now mono.Time) (peerLost bool) {
	if now < s.deadline || s.una == s.nxt {
		return false
	}
	if now.Sub(s.heard) > s.cfg.PeerLost {
		return true
	}
	s.deadline = now.Add(s.rtt.retransmit(s.cfg) << s.backoff)
	before := s.lostCount
	if s.sackedCount > 0 {
		s.Detect(now)
	}
	if s.lostCount > before || s.pipe() == 0 {
		return false // what is lost goes out at once
	}
	if !s.probed {
		s.probed = true
		s.markLost(s.newest())
		return false
	}
	if s.rtt.retransmit(s.cfg)<<s.backoff < s.cfg.RTOMax {
		s.backoff++
	}
	for lsn := s.una; lsn != s.nxt; lsn++ {
		s.markLost(lsn)
	}
	s.shrink()
	s.cwnd = cwndMin
	return false
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

// grow opens the congestion window for n ULPDUs that have arrived: slow start
// below ssthresh, then one per window.
func (s *Sender) grow(n uint32) {
	limit := uint32(len(s.recs))
	if s.cwnd >= limit {
		return
	}
	if s.cwnd < s.ssthresh {
		s.cwnd = min(s.cwnd+n, limit)
		return
	}
	for s.credit += n; s.credit >= s.cwnd && s.cwnd < limit; s.cwnd++ {
		s.credit -= s.cwnd
	}
}

// shrink halves the congestion window, once per window of data.
func (s *Sender) shrink() {
	if s.una.Less(s.recovery) {
		return
	}
	s.recovery = s.nxt
	s.ssthresh = max(s.cwnd/2, cwndMin)
	s.cwnd = s.ssthresh
	s.credit = 0
}

// HasLost reports whether NextLost has something to send again now.
func (s *Sender) HasLost() bool { return s.lostCount > 0 && s.pipe() < s.cwnd }
