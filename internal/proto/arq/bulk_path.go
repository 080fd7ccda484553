package arq

import "github.com/xwarp/xwarp/internal/base/mono"

// There may be a second path to a peer, for large data (the bulk path): cheaper by the
// byte than the first, with more latency. Nothing may overtake anything, for that would be
// taken for loss. So all of a burst takes one path, but for its beginning, which must show
// first that it is one; and what is lost is sent again by the first path.

// LongMin is from how many bytes on a message is long. A peer is sent to the second
// path after BurstAfter datagrams of long messages, of which not all have arrived yet: a
// stream of short ones loses more by the slower way than it gains.
const (
	LongMin    = 32 << 10
	BurstAfter = 4
)

// PathChoice is the path that a datagram takes.
type PathChoice uint8

// Path choices.
const (
	FirstPath PathChoice = iota
	LastFirst            // the first path, and the peer is to look at the second: what follows may come there
	SecondPath
)

// Burst is what is sent to a peer from when it has everything until it has
// everything again.
type Burst struct {
	long   uint8 // datagrams of long messages, up to BurstAfter
	second bool  // what is sent goes by the second path
}

// Idle reports whether the burst has no datagram of a long message: Next would
// answer FirstPath to a short one, and change nothing.
func (r *Burst) Idle() bool { return r.long == 0 }

// Large reports whether the burst has become one for the second path.
func (r *Burst) Large() bool { return r.long == BurstAfter }

// Second reports whether what is sent goes by the second path.
func (r *Burst) Second() bool { return r.second }

// Next chooses the path of the next datagram, which belongs to a long message or not. s is
// the Sender of the burst; whole tells that all has arrived that was sent before.
func (r *Burst) Next(now mono.Time, w *BulkPath, s *Sender, whole, long bool) PathChoice {
	switch {
	case whole:
		r.end(now, w)
	case r.second && s.TimeOuts() > 0: // nothing arrives there
		r.second = false
		w.lose(now)
	}
	switch {
	case r.second || !long:
	case r.long < BurstAfter:
		if r.long++; r.long == BurstAfter {
			return LastFirst
		}
	default:
		r.second = w.found
	}
	if r.second {
		return SecondPath
	}
	return FirstPath
}

// end ends the burst: all of it has arrived.
func (r *Burst) end(now mono.Time, w *BulkPath) {
	if r.second {
		w.judge(now)
	}
	*r = Burst{}
}

// BulkPath is what a sender knows of the second path to a peer. Whether it leads there is
// found out by asking: a firewall does not see AF_XDP, but may well see this.
type BulkPath struct {
	found bool      // it leads there
	asks  uint8     // questions sent there since large data did without loss
	askAt mono.Time // when the next may

	sent, resent uint32 // units of the present burst, and of them again
}

// Time between questions: after the first that is not answered, and the most.
const (
	askFirst = 20 * mono.Millisecond
	askMost  = 60 * mono.Second
)

// Found reports whether the path leads to the peer.
func (w *BulkPath) Found() bool { return w.found }

// Wanting reports whether a question is due.
func (w *BulkPath) Wanting(now mono.Time) bool { return !w.found && now >= w.askAt }

// Ask notes that a question is sent by the path.
func (w *BulkPath) Ask(now mono.Time) {
	w.lose(now)
	w.asks = min(w.asks+1, 250)
}

// Answered notes that a question was answered.
func (w *BulkPath) Answered() { w.found = w.found || w.asks > 0 }

// Sent notes that n units took the path.
func (w *BulkPath) Sent(n int) { w.sent += uint32(n) }

// Resent notes that n units of a burst on the path were sent again.
func (w *BulkPath) Resent(n int) { w.resent += uint32(n) }

// lose makes the path one that has to be found anew, later each time.
func (w *BulkPath) lose(now mono.Time) {
	w.found, w.askAt = false, now.Add(min(askFirst<<min(w.asks, 20), askMost))
}

// judge looks back at a burst, all of which has arrived. A path that has lost half of it
// counts as none.
func (w *BulkPath) judge(now mono.Time) {
	switch {
	case w.resent > w.sent/2:
		w.lose(now)
	case w.resent == 0:
		w.asks = 0
	}
	w.sent, w.resent = 0, 0
}
