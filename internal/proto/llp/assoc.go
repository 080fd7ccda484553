package llp

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/base/wheel"
	"github.com/xwarp/xwarp/internal/proto/arq"
)

// Assoc is a reliable datagram association as its own end keeps it, whatever a datagram
// looks like: what is under way in both directions, when something is due, and for how
// long the peer was silent. It is part of a Peer, which has handshake and path
// beside it, and of a connection of mpi/internal/reliable.
type Assoc struct {
	// What every datagram needs comes first.
	heardAt    mono.Time  // when anything was heard
	period     uint32     // of the active senders, in which it was counted last
	Index      int32      // its number among those of its Assocs, used again when the association is over
	ack        serial.U32 // what the peer last said to have,
	window     uint16     // how much from there on it takes,
	kept       uint16     // and for how long it had the newest, see arq.HeldOf
	noted      bool       // Snd has yet to learn that
	soon       bool       // the peer waits for the acknowledgement of what came with it
	unanswered uint8      // questions since anything was heard
	timeOuts   uint8      // of Snd that were noticed
	closed     bool       // over: nothing is sent or taken any more
	ready      bool       // is in the line of those with something to send

	Rcv arq.Receiver
	Snd arq.Sender

	askAt    mono.Time // when the next question is due: is the peer there?
	silentAt mono.Time // when the first one went out that was not answered
}

// Closed reports whether the association is over.
func (a *Assoc) Closed() bool { return a.closed }

// PutSack writes up to max words of the selective acknowledgement of what has arrived,
// and returns how many.
func (a *Assoc) PutSack(b []byte) (words int) {
	words = min(a.Rcv.SackWords(), arq.MaxSackWords)
	for w := range words {
		binary.BigEndian.PutUint64(b[8*w:], a.Rcv.Sack(w))
	}
	return words
}

// lostTries is how many answers must be missing for a peer to be lost.
const lostTries = 3

// asked notes that something went out that the peer must answer.
func (a *Assoc) asked(now mono.Time) {
	if a.unanswered == 0 {
		a.silentAt = now
	}
	a.unanswered = min(a.unanswered+1, 250)
}

// Quota is how many datagrams one peer may be sent before the next of the line has its
// turn: what one system call takes. Fewer cost bandwidth.
const Quota = 32

// Assocs are the associations of one endpoint: their timers, the line of those with
// something to send, what is to be dated, and the division of the receive room.
//
// A step of the user goes: Date, and Apply what NextNoted returns; take in what has arrived
// (Heard, OnAck or Note, Arrived, ScheduleAck); Expire and Rearm when Due says so; then Take
// until there is no room or no association left.
//
// Owner: engine.
type Assocs struct {
	shared  *arq.Shared
	count   int32       // numbers that were given out
	free    []int32     // those of them that are not in use
	timers  wheel.Wheel // by Assoc.Index
	wakeAt  mono.Time   // never later than the earliest timer
	senders senders
	line    []*Assoc // those with something to send,
	taken   int      // but for so many
	undated []undated
	noted   []*Assoc // those with an acknowledgement that is not applied, and some that had one
}

// undated is an association of which the units from first on have yet to get their time.
type undated struct {
	*Assoc
	first serial.U32
}

// Init makes s ready. depth is how many datagrams may wait to be received.
func (s *Assocs) Init(c arq.Config, depth int, now mono.Time) {
	*s = Assocs{shared: arq.NewShared(c, depth), wakeAt: mono.Never}
	s.timers.Init(now)
	s.senders.init(depth, s.Config().Window)
}

// Config returns the tuning with defaults filled in.
func (s *Assocs) Config() *arq.Config { return s.shared.Config() }

// Window returns how many units a peer may have in flight now.
func (s *Assocs) Window() uint16 { return s.senders.window }

// Active returns how many peers send data at present, at least 1.
func (s *Assocs) Active() int { return s.senders.active() }

// Add begins an association. out and in are the numbers of the first unit in each
// direction. Its timer is due at askAt.
func (s *Assocs) Add(now mono.Time, a *Assoc, out, in serial.U32, askAt mono.Time) {
	a.heardAt, a.askAt = now, askAt
	a.Snd.Init(s.shared, out)
	a.Rcv.Init(s.shared, in)
	if n := len(s.free); n > 0 {
		a.Index = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		a.Index = s.count
		s.count++
		s.timers.Grow(int(s.count))
	}
	s.Wake(a, askAt)
}

// Expect sets the number of the first unit that the peer sends.
func (s *Assocs) Expect(a *Assoc, in serial.U32) { a.Rcv.Init(s.shared, in) }

// Remove ends an association. Its index is used again.
func (s *Assocs) Remove(a *Assoc) {
	a.closed = true
	s.timers.Cancel(a.Index)
	s.free = append(s.free, a.Index)
}

// Heard notes that the peer is alive.
func (s *Assocs) Heard(now mono.Time, a *Assoc) { a.heardAt, a.unanswered = now, 0 }

// Arrived is called once for each datagram with units, before they are marked.
func (s *Assocs) Arrived(now mono.Time, a *Assoc) {
	a.Rcv.Arrived(now)
	if a.period != s.senders.period || now >= s.senders.until {
		s.senders.count(a, now)
	}
}

// Note keeps an acknowledgement that came with data for the next step: the data is more
// urgent.
func (s *Assocs) Note(a *Assoc, ack serial.U32, window, held uint16) {
	switch {
	case !a.noted:
		a.noted = true
		s.noted = append(s.noted, a)
	case ack.Less(a.ack):
		return // an older one that was overtaken
	}
	a.ack, a.window, a.kept = ack, window, held
}

// NextNoted returns an association that is not over and whose acknowledgement is noted, or
// nil: it is to be applied.
func (s *Assocs) NextNoted() *Assoc {
	for n := len(s.noted); n > 0; n = len(s.noted) {
		a := s.noted[n-1]
		if s.noted = s.noted[:n-1]; a.noted && !a.closed {
			return a
		}
	}
	return nil
}

// Apply is OnAck with the acknowledgement that was noted, if one was.
func (s *Assocs) Apply(a *Assoc) (from, to serial.U32) {
	if !a.noted {
		return 0, 0
	}
	return s.OnAck(a, a.ack, a.window, a.kept, nil)
}

// OnAck takes in an acknowledgement that was heard last, with the words that tell of gaps:
// it finds what was lost, and asks for the acknowledgement of what came with one that was
// noted, unless an answer has carried that meanwhile. It returns the units that are no
// longer in flight; see arq.Sender.Unit.
func (s *Assocs) OnAck(a *Assoc, ack serial.U32, window, held uint16, sack []byte) (from, to serial.U32) {
	if a.noted && ack.Less(a.ack) {
		ack, window, held, sack = a.ack, a.window, a.kept, nil
	}
	a.ack, a.window, a.kept = ack, window, held
	from, ok := a.Snd.OnAck(a.heardAt, ack, max(window, 1), arq.HeldFor(held))
	for w := range len(sack) / 8 {
		a.Snd.OnSack(a.heardAt, ack.Add(int32(1+64*w)), binary.BigEndian.Uint64(sack[8*w:]))
	}
	a.Snd.Detect(a.heardAt)
	s.Wake(a, a.Snd.Deadline())
	if a.noted {
		a.noted = false
		s.ScheduleAck(a.heardAt, a, false, false)
	}
	if !ok {
		from = ack
	}
	return from, ack
}

// ScheduleAck sees to it that what has arrived is acknowledged, now or when that is due:
// see arq.Receiver.AckDue. What came with an acknowledgement that is noted waits for that,
// unless it is urgent: an answer may do it first.
func (s *Assocs) ScheduleAck(now mono.Time, a *Assoc, urgent, soon bool) {
	a.soon = a.soon || soon
	if a.noted && !urgent && !a.Rcv.Presses() {
		return
	}
	a.Rcv.AckDue(now, urgent, a.soon)
	a.soon = false
	if at := a.Rcv.Deadline(); at <= now {
		s.Ready(a)
	} else {
		s.Wake(a, at)
	}
}

// Ready puts an association at the end of the line of those that have something to
// send, an acknowledgement included.
func (s *Assocs) Ready(a *Assoc) {
	if a.ready || a.closed {
		return
	}
	a.ready = true
	if s.taken > 0 && len(s.line) == cap(s.line) {
		n := copy(s.line, s.line[s.taken:])
		clear(s.line[n:])
		s.line, s.taken = s.line[:n], 0
	}
	s.line = append(s.line, a)
}

// InLine reports whether the association is in the line.
func (a *Assoc) InLine() bool { return a.ready }

// First returns the first of the line. There is one; it may be over.
func (s *Assocs) First() *Assoc { return s.line[s.taken] }

// Alone reports whether a alone is in the line.
func (s *Assocs) Alone(a *Assoc) bool {
	n := s.Waiting()
	return n == 0 || n == 1 && s.First() == a
}

// Waiting returns how many are in the line.
func (s *Assocs) Waiting() int { return len(s.line) - s.taken }

// Take takes the first out of the line. There is one; it may be over.
func (s *Assocs) Take() *Assoc {
	a := s.line[s.taken]
	s.line[s.taken] = nil
	if s.taken++; s.taken == len(s.line) {
		s.line, s.taken = s.line[:0], 0
	}
	a.ready = false
	return a
}

// Early notes that what is sent from now on goes out between two steps, with the time of
// the one before: to read the clock would be a tenth of our own time for a small message.
// The next step gives it its time (Date).
func (s *Assocs) Early(a *Assoc) {
	if n := len(s.undated); n == 0 || s.undated[n-1].Assoc != a {
		s.undated = append(s.undated, undated{a, a.Snd.Next()})
	}
}

// Date gives what was sent since the last step its time.
func (s *Assocs) Date(now mono.Time) {
	for _, u := range s.undated {
		if !u.closed {
			u.Snd.Date(now, u.first)
			s.Wake(u.Assoc, u.Snd.Deadline())
		}
	}
	s.undated = s.undated[:0]
}

// Deferred reports whether the last step has left Date or NextNoted something.
func (s *Assocs) Deferred() bool { return len(s.undated)+len(s.noted) > 0 }

// Wake makes Expire return a no later than a tick after at, unless it is over.
func (s *Assocs) Wake(a *Assoc, at mono.Time) {
	if at != mono.Never && !a.closed {
		s.timers.Sooner(a.Index, at)
		s.wakeAt = min(s.wakeAt, at)
	}
}

// Due reports whether an association is in the line, or timers are due.
func (s *Assocs) Due(now mono.Time) bool { return len(s.line) > 0 || now >= s.wakeAt }

// TimersDue reports whether Expire is to be called.
func (s *Assocs) TimersDue(now mono.Time) bool { return now >= s.wakeAt }

// Deadline returns when the next step must be.
func (s *Assocs) Deadline() mono.Time {
	if len(s.line) > 0 || s.Deferred() {
		return 0
	}
	return s.wakeAt
}

// Expire returns the Index of an association whose timer is due at now, or false. The user
// does what is due of Snd, Rcv and KeepAlive, and then calls Rearm.
func (s *Assocs) Expire(now mono.Time) (int32, bool) {
	i, ok := s.timers.Expire(now)
	if !ok {
		s.wakeAt = s.timers.Deadline()
	}
	return i, ok
}

// Rearm sets the timer anew, and frees what an idle association does not need. idle tells
// that the user has nothing to send either. An acknowledgement that is due now is the
// user's to send.
func (s *Assocs) Rearm(now mono.Time, a *Assoc, idle bool) {
	if a.closed {
		return
	}
	if idle && a.Snd.InFlight() == 0 && a.Rcv.InOrder() {
		a.Snd.Rest()
		a.Rcv.Rest()
	}
	at := min(a.Snd.Deadline(), a.askAt)
	if ack := a.Rcv.Deadline(); ack > now {
		at = min(at, ack)
	}
	at = max(at, now+1)
	s.timers.Arm(a.Index, at)
	s.wakeAt = min(s.wakeAt, at)
}

// KeepAlive reports whether the peer is to be asked whether it is there: nothing was
// heard of it for long, or it owes an answer. The next question is due after the same
// time again.
func (s *Assocs) KeepAlive(now mono.Time, a *Assoc) bool {
	if now < a.askAt {
		return false
	}
	period := s.Config().KeepAlive
	if quiet := a.heardAt.Add(period); a.unanswered == 0 && now < quiet {
		a.askAt = quiet // it has spoken since
		return false
	}
	a.askAt = now.Add(period)
	return true
}

// Silent notes that the peer owes one more answer, or reports that it is lost for those
// that it owes.
func (s *Assocs) Silent(now mono.Time, a *Assoc) bool {
	if s.lost(now, a) {
		return true
	}
	a.asked(now)
	return false
}

// lost reports whether the peer owes answers for too long. Silence counts from the first
// of them, not from the last thing heard: a host that did not look for long does not take
// its own absence for the peer's.
func (s *Assocs) lost(now mono.Time, a *Assoc) bool {
	return a.unanswered >= lostTries && now.Sub(a.silentAt) > s.Config().PeerLost
}
