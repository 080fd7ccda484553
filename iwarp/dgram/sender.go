package dgram

import (
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

	state recordState
	sent  mono.Time // when it was last sent
}

type recordState uint8

const (
	sacked recordState = 1 << iota // arrived, though something before it did not
	lost                           // to be sent again
	resent                         // was sent more than once: no RTT sample
)

// recordOverhead is what a ULPDU takes beside its payload: its length field
// and the longer DDP header.
const recordOverhead = LengthLen + 18

// bytes returns how much of the congestion window the ULPDU takes.
func (r *Record) bytes() int32 { return int32(r.Len) + recordOverhead }

// Sender is the sending half of a peer: the window of ULPDUs in flight, what
// of it is lost (loss.go), how fast to go (congestion.go), and when to try
// again.
type Sender struct {
	sh   *Shared
	recs []Record   // ring, indexed by LSN; nil while nothing is in flight
	una  serial.U32 // oldest ULPDU in flight
	nxt  serial.U32 // next to be sent

	peerWindow uint32 // ULPDUs that the peer takes, from una on; at most the length of a ring
	pipe       int32  // bytes that are believed to be on the wire

	congestion
	rtt  rtt
	loss loss
}

// Init makes s ready. first is the LSN of the first ULPDU. A Sender may be
// made ready again for another association; what was in flight is forgotten.
func (s *Sender) Init(sh *Shared, first serial.U32) {
	if s.recs != nil {
		s.sh.giveRing(s.recs)
	}
	*s = Sender{sh: sh, una: first, nxt: first, peerWindow: uint32(min(windowInitial, sh.cfg.Window))}
	s.congestion.init()
	s.loss = loss{hint: first, deadline: mono.Never}
}

// windowInitial is what a peer takes before it has said so.
const windowInitial = 64

// Rest gives back the memory that is only needed while something is in flight.
// The round-trip time and the congestion window stay.
func (s *Sender) Rest() {
	if s.recs != nil && s.una == s.nxt {
		s.sh.giveRing(s.recs)
		s.recs = nil
	}
}

// InFlight returns how many ULPDUs are not acknowledged.
func (s *Sender) InFlight() int { return int(s.nxt - s.una) }

// Next returns the LSN that the next Push will use.
func (s *Sender) Next() serial.U32 { return s.nxt }

// RTT returns the smoothed round-trip time, 0 while it is not known.
func (s *Sender) RTT() mono.Duration { return s.rtt.smoothed }

// Record returns the record of a ULPDU in flight, or of one that the last
// OnAck took out of flight, until the next Push, Rest or Init.
func (s *Sender) Record(lsn serial.U32) *Record { return &s.recs[uint32(lsn)&uint32(len(s.recs)-1)] }

// CanPush reports whether a new ULPDU of n bytes, DDP header included, may be
// sent now.
func (s *Sender) CanPush(n int) bool {
	return uint32(s.nxt-s.una) < s.peerWindow && s.allows(int32(n)+LengthLen)
}

// allows reports whether n more bytes may be on the wire. One ULPDU may be
// whatever its size.
func (s *Sender) allows(n int32) bool { return s.pipe+n <= s.cwnd || s.pipe == 0 }

// Push takes the next LSN for a ULPDU with n bytes of payload that is sent
// now. The caller has asked CanPush.
func (s *Sender) Push(now mono.Time, token, off, n uint32, last bool) serial.U32 {
	if s.recs == nil {
		s.recs = s.sh.takeRing()
	}
	lsn := s.nxt
	r := s.Record(lsn)
	*r = Record{Token: token, Off: off, Len: n, Last: last, sent: now}
	s.pipe += r.bytes()
	if s.una == s.nxt {
		s.loss.begin(now, s.rtt.probe(&s.sh.cfg))
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
		s.loss.begin(now, s.rtt.probe(&s.sh.cfg))
	}
}

// OnAck takes in an acknowledgement: everything before ack has arrived, the
// peer takes window ULPDUs from there on, and has kept the newest that it
// acknowledges for held. It returns the range [from, ack) that is no longer in
// flight. ok is false when ack is none of ours, which is old news or nonsense;
// then nothing changed.
func (s *Sender) OnAck(now mono.Time, ack serial.U32, window uint16, held mono.Duration) (from serial.U32, ok bool) {
	from = s.una
	n := uint32(ack - from)
	if n > uint32(s.nxt-from) {
		return from, false
	}
	s.peerWindow = min(uint32(window), uint32(s.sh.cfg.Window))
	if n == 0 {
		return from, true
	}
	bytes := int32(0)
	for lsn := from; lsn != ack; lsn++ {
		r := s.Record(lsn)
		bytes += r.bytes()
		if r.state == 0 {
			s.loss.rackTime = max(s.loss.rackTime, r.sent)
			s.pipe -= r.bytes()
			continue
		}
		s.acked(now, r)
	}
	if r := s.Record(ack - 1); r.state&(resent|sacked) == 0 && held < HeldUnknown {
		s.rtt.sample(now.Sub(r.sent) - held)
	}
	s.una = ack
	s.grow(bytes)
	s.progress(now)
	return from, true
}

// Deadline returns when OnTimer must be called.
func (s *Sender) Deadline() mono.Time { return s.loss.deadline }
