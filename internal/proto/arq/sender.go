package arq

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// Unit is what the sender remembers of a unit in flight: not its bytes, but
// where they came from. The owner of the token builds it again from the source
// buffer when it is lost.
type Unit struct {
	Token uint32 // whose bytes: the caller's
	Off   uint32 // offset of the payload in the message
	Len   uint32 // bytes of payload
	Last  bool   // last unit of its message

	state unitState
	sent  mono.Time // when it was last sent
}

type unitState uint8

const (
	sacked unitState = 1 << iota // arrived, though something before it did not
	lost                         // to be sent again
	resent                       // was sent more than once: no RTT sample
	probe                        // is lost or was sent again only to get an answer

	viaShift = 6 // the bits above are the number of the network that it was sent on last
	viaMask  = (MaxNetworks - 1) << viaShift
)

// unitOverhead is what a unit takes beside its payload, in bytes: its length
// field and the longer DDP header.
const (
	lengthLen    = 2
	unitOverhead = lengthLen + 18
)

// bytes returns how much of the congestion window the unit takes.
func (r *Unit) bytes() int32 { return int32(r.Len) + unitOverhead }

// Sender is the sending half of a peer: the window of units in flight, what
// of it is lost (loss.go), how fast to go (congestion.go), when to try
// again, and which network to take if there are several (subflow.go).
type Sender struct {
	recs []Unit     // ring, indexed by LSN; nil while nothing is in flight
	una  serial.U32 // oldest unit in flight
	nxt  serial.U32 // next to be sent

	peerWindow uint32 // units that the peer takes, from una on; at most the length of a ring

	via      unitState // number of the network that new units take, as a record has it
	use      uint8     // number of the one in use
	alive    uint8     // a bit for each that large messages may take
	timedOut uint8     // a bit for each that had a time-out since TimedOut was asked

	held mono.Duration // of the acknowledgement that is being taken in
	loss loss

	more    *further // nil: there is one network
	subflow          // on the first
}

// Init makes s ready. first is the LSN of the first unit. A Sender may be
// made ready again for another association; what was in flight is forgotten.
func (s *Sender) Init(sh *Shared, first serial.U32) {
	if s.recs != nil {
		s.sh.giveRing(s.recs)
	}
	*s = Sender{una: first, nxt: first, peerWindow: uint32(min(windowInitial, sh.cfg.Window))}
	s.subflow.init(sh)
	s.loss = loss{hint: first, reorderAt: mono.Never}
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

// InFlight returns how many units are not acknowledged.
func (s *Sender) InFlight() int { return int(s.nxt - s.una) }

// Holds reports whether lsn is in flight.
func (s *Sender) Holds(lsn serial.U32) bool { return lsn.In(s.una, uint32(s.nxt-s.una)) }

// Next returns the LSN that the next Push will use.
func (s *Sender) Next() serial.U32 { return s.nxt }

// Unit returns the record of a unit in flight, or of one that the last
// OnAck took out of flight, until the next Push, Rest or Init.
func (s *Sender) Unit(lsn serial.U32) *Unit { return &s.recs[uint32(lsn)&uint32(len(s.recs)-1)] }

// CanPush reports whether a new unit of n bytes, header included, may be
// sent now.
func (s *Sender) CanPush(n int) bool {
	return uint32(s.nxt-s.una) < s.peerWindow && s.current().allows(int32(n)+lengthLen)
}

// Push takes the next LSN for a unit with n bytes of payload that is sent
// now. The caller has asked CanPush.
func (s *Sender) Push(now mono.Time, token, off, n uint32, last bool) serial.U32 {
	if s.recs == nil {
		s.recs = s.sh.takeRing()
	}
	lsn := s.nxt
	r, f := s.Unit(lsn), s.current()
	*r = Unit{Token: token, Off: off, Len: n, Last: last, state: s.via, sent: now}
	if s.una == lsn {
		s.loss.backoff = 0
		f.begin(now)
	} else if s.more != nil && f.pipe == 0 {
		f.begin(now)
	}
	f.push(now, r.bytes())
	s.nxt = lsn + 1
	if uint32(s.nxt-s.una) >= s.peerWindow || s.more != nil && f.pipe >= cwndSmall*f.segment {
		f.flight = max(f.flight, f.pipe) // something else than the window may end it
	}
	return lsn
}

// Date gives the units from first on their sending time, after they were
// pushed with one that was too early.
func (s *Sender) Date(now mono.Time, first serial.U32) {
	if !s.Holds(first) {
		return
	}
	for lsn := first; lsn != s.nxt; lsn++ {
		s.Unit(lsn).sent = now
	}
	if first == s.una {
		s.loss.backoff = 0
		s.network(s.Unit(first).via()).begin(now)
	}
}

// OnAck takes in an acknowledgement: everything before ack has arrived, the
// peer takes window units from there on, and has kept the newest that it
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
	s.held = held
	if n == 0 {
		return from, true
	}
	clean := int32(0) // bytes of what was sent once and not yet known to have arrived
	recs, mask := s.recs, uint32(len(s.recs)-1)
	var newest *Unit
	last := mono.Time(0) // when the newest of those was sent
	for lsn := from; lsn != ack; lsn++ {
		newest = &recs[uint32(lsn)&mask]
		if newest.state == 0 {
			clean += newest.bytes()
			last = newest.sent
			continue
		}
		s.ackedLessCommon(now, newest)
	}
	s.una = ack
	s.pipe -= clean
	s.arrivedBytes += clean
	s.rackTime = max(s.rackTime, last)
	s.loss.backoff = 0
	if s.more != nil {
		if clean > 0 {
			s.subflow.shows(last, true)
		}
		s.settle(now)
		return from, true
	}
	if newest.state&sacked == 0 {
		s.subflow.measure(s, now, newest.sent, newest.state&resent == 0)
	}
	s.subflow.progress(now, s.una != s.nxt)
	return from, true
}

// ackedLessCommon takes a unit out of flight that was lost, or is known to
// have arrived already.
func (s *Sender) ackedLessCommon(now mono.Time, r *Unit) {
	if r.state&sacked != 0 {
		s.loss.sacked--
		return
	}
	s.arrived(now, r)
}
