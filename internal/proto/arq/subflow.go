package arq

import (
	"math"
	"math/bits"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// A peer may be reached over several networks. All of them carry the same units, under
// the same numbers, so what arrives where makes no difference to the receiver. The
// sender keeps apart what each network is like: a subflow (the term is that of RFC
// 8684) has a congestion window, a round-trip time and a loss detection of its own. A
// unit is compared only with later ones that went the same way, so that one which a
// slower network carries is not taken for lost, and neither loss nor delay on one
// network slows down another.
//
// Units go on one network, the one in use, but for those of large messages: Spread
// chooses for each datagram. What is lost is sent again on the network in use, for the
// other may be what has lost it; a probe goes where it is to find something out.

// MaxNetworks is the most networks of a Sender: a record has two bits for the number.
const MaxNetworks = 4

// subflow is what a Sender knows of one network.
type subflow struct {
	sh *Shared
	congestion
	rtt rtt
	rack
}

// further are the subflows on the networks after the first. Most senders have none.
type further struct {
	count int // of those that are in use
	on    [MaxNetworks - 1]subflow
}

func (f *subflow) init(sh *Shared) {
	f.sh = sh
	f.congestion.init()
	f.deadline = mono.Never
}

// push notes that n bytes are sent now.
func (f *subflow) push(now mono.Time, n int32) {
	f.pipe += n
	f.unasked += n
	if f.pipe+f.segment > f.cwnd {
		f.fill(now)
	}
}

// via returns the number of the network that a unit was sent on last.
func (r *Unit) via() int { return int(r.state >> viaShift) }

// networks returns how many there are.
func (s *Sender) networks() int {
	if s.more == nil {
		return 1
	}
	return 1 + s.more.count
}

// network returns the subflow on a network.
func (s *Sender) network(i int) *subflow {
	if i == 0 {
		return &s.subflow
	}
	return &s.more.on[i-1]
}

// current returns the subflow on the network that new units take.
func (s *Sender) current() *subflow { return s.network(int(s.via >> viaShift)) }

// SetSegment tells the largest datagram payload in bytes: the unit in which
// the congestion windows grow and shrink.
func (s *Sender) SetSegment(bytes int) {
	for i := range s.networks() {
		s.network(i).setSegment(bytes)
	}
}

// SetNetworks tells which network is in use, and which ones are alive, with a bit for
// each: large messages may take those, too. Until then the first one is alone.
func (s *Sender) SetNetworks(use int, alive uint8) {
	alive |= 1 << use
	if alive > 1 && s.more == nil {
		s.more = new(further)
	}
	for i := s.networks(); i < bits.Len8(alive); i++ {
		s.more.count = i
		f := s.network(i)
		f.init(s.sh)
		f.setSegment(int(s.segment))
	}
	s.use, s.alive = uint8(use), alive
	s.Gather()
}

// TimedOut returns on which networks there was a time-out since it was last asked, with
// a bit for each.
func (s *Sender) TimedOut() uint8 {
	m := s.timedOut
	s.timedOut = 0
	return m
}

// Via returns which network a unit in flight was sent on last or, if it is lost, is to
// be sent on again.
func (s *Sender) Via(lsn serial.U32) int {
	r := s.Unit(lsn)
	if r.state&lost != 0 {
		return r.resendVia(s.use, s.alive)
	}
	return r.via()
}

// resendVia returns which network a lost unit is to be sent on again, of the one in use
// and those alive.
func (r *Unit) resendVia(use, alive uint8) int {
	if r.state&probe != 0 && alive>>r.via()&1 != 0 {
		return r.via()
	}
	return int(use)
}

// Gather makes the network in use the one that new units take.
func (s *Sender) Gather() {
	s.via = unitState(s.use) << viaShift
}

// Spread chooses the network that the next datagram of a large message takes. Gather
// undoes it.
func (s *Sender) Spread() {
	if i := s.soonest(); i >= 0 {
		s.via = unitState(i) << viaShift
	}
}

// Spreads reports whether Spread has chosen another network than the one in use.
func (s *Sender) Spreads() bool { return s.via>>viaShift != unitState(s.use) }

// Several reports whether there are several networks: then CanSpread tells whether a
// datagram of a large message may be sent now, and CanPush whether another one may.
func (s *Sender) Several() bool { return s.more != nil }

// CanSpread reports whether there is a network for a datagram of a large message now.
func (s *Sender) CanSpread() bool {
	return uint32(s.nxt-s.una) < s.peerWindow && s.soonest() >= 0
}

// measureAgain is for how many of its round trips nothing may be sent on a network until
// what is known of it counts as old.
const measureAgain = 64

// soonest returns the number of the network, of those alive that have room, where a
// datagram is through first, or -1 if none has, or it is better to wait for another one.
func (s *Sender) soonest() int {
	best, least, full := -1, int64(math.MaxInt64), uint8(0)
	for m := s.alive; m != 0; m &= m - 1 {
		i := bits.TrailingZeros8(m)
		f := s.network(i)
		switch t := f.drains(s); {
		case !f.allows(1):
			full |= 1 << i
		case f.rtt.smoothed == 0 && f.pipe > 0 && i != int(s.use):
			// It was never measured: one datagram does that first.
		case t < least:
			best, least = i, t
		}
	}
	if best < 0 || full == 0 || !s.network(best).blocks(s, full) {
		return best
	}
	return -1
}

// drains returns how long it takes until what is on the wire of f, and a segment more,
// is through, in nanoseconds: at the rate that its window stands for. What is not known
// is taken for short, so that it is found out.
func (f *subflow) drains(s *Sender) int64 {
	if f.old(s.current().moved) {
		return 0
	}
	d := f.empty
	if d == 0 {
		d = s.network(int(s.use)).empty
	}
	return int64(f.pipe+f.segment) * int64(d) / int64(max(f.cwnd, 1))
}

// old reports whether nothing was sent on f for so long that what is known of it is old.
func (f *subflow) old(now mono.Time) bool {
	return f.pipe == 0 && now.Sub(f.moved) > measureAgain*f.empty
}

// blocks reports whether a datagram on f would make those that are full stand still,
// which are faster: before it is acknowledged they fill what is left of the peer's window
// (the estimate of Ferlin et al., BLEST, IFIP Networking 2016).
func (f *subflow) blocks(s *Sender, full uint8) bool {
	if f.old(s.current().moved) {
		return false
	}
	took := int64(f.latest)
	if f.pipe == 0 { // nothing of ours waits there
		took = int64(f.empty)
	}
	would := int64(0) // bytes that the others would send meanwhile
	for ; full != 0; full &= full - 1 {
		g := s.network(bits.TrailingZeros8(full))
		if round := int64(g.rtt.smoothed); 0 < round && round < took {
			would += int64(g.cwnd) * took / round
		}
	}
	return would > int64(s.peerWindow-uint32(s.nxt-s.una))*int64(s.segment)
}

// settle takes in what an acknowledgement has shown of each network.
func (s *Sender) settle(now mono.Time) {
	timer := mono.Never
	for i := range s.networks() {
		f := s.network(i)
		if s.una == s.nxt {
			f.deadline = mono.Never
		}
		if f.shown != 0 {
			f.measure(s, now, f.shown, f.shownOnce)
			f.shown = 0
			if s.more != nil {
				f.progress(now, f.pipe > 0)
			}
		}
		timer = min(timer, f.deadline)
	}
	if timer == mono.Never && s.una != s.nxt { // what is lost waits for room
		f := s.network(int(s.use))
		f.deadline = now.Add(f.timeout(s))
	}
}
