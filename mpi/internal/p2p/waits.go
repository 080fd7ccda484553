package p2p

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Wait is what a rank waits for, or has waited for last: long enough to sleep.
type Wait struct {
	For     string // in words; "" when it is no message
	From    bool   // Peer is where it comes from, and not where it goes
	Peer    int32  // rank of the job, or match.Any
	Tag     int32
	Context uint32
	Bytes   int       // of the message, or of the room for it
	Since   mono.Time // when it began
	Awake   mono.Time // when the rank has looked last whether it is over; Never while it sleeps
	Tries   int       // how often the rank has tried in vain: of ForLock and ForSegment
	Calls   []uintptr // program counters of the goroutine that waits, the innermost first
}

// What a rank waits for that no engine tells of. Peer is where it is.
const (
	ForLock    = "a lock"
	ForSegment = "a segment"
)

// waitCalls is how many program counters are kept.
const waitCalls = 32

// waits keeps the last Wait of an endpoint, for other goroutines. Only one that is
// about to sleep writes it, which takes much longer. It is a progress.SleepHook.
type waits struct {
	ep     *Endpoint
	target *Request // what the present wait is for; nil: anything
	shared Shared   // memory that it is for, or nil

	segment atomic.Pointer[fetching] // that a goroutine waits for, or nil

	mu      sync.Mutex // for what follows
	last    Wait
	request *Request // that it is for, and its Generation
	gen     uint32
	calls   [waitCalls]uintptr
}

// Waiting returns what the rank waits for or has waited for last. ok is false when
// it has not. Any goroutine may call it.
func (d *driver) Waiting() (w Wait, ok bool) {
	s := d.waits
	if f := s.segment.Load(); f != nil {
		return Wait{For: ForSegment, From: true, Peer: f.rank, Since: f.since, Awake: mono.Never, Tries: int(f.way.Unheard() - f.before)}, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.last
	w.Calls = append([]uintptr(nil), w.Calls...)
	return w, len(w.Calls) > 0
}

// Sleep implements progress.SleepHook.
func (s *waits) Sleep() {
	eng, r := s.ep.eng, s.target
	if s.shared != nil && !s.shared.Sleep() {
		eng.Wake() // it is there: do not sleep
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := len(s.last.Calls) > 0 && r == s.request && s.last.For != ForLock
	if r != nil {
		same = same && r.gen == s.gen
	} else {
		same = same && eng.Worked() <= s.last.Since
	}
	if s.last.Awake = mono.Never; same {
		return
	}
	s.request = r
	s.last = Wait{Since: eng.Worked(), Awake: mono.Never, Calls: s.calls[:runtime.Callers(2, s.calls[:])]}
	if r != nil {
		s.gen = r.gen
		s.describe(r)
	}
}

// tries notes that the rank has tried in vain to lock memory of another one.
func (s *waits) tries(peer int32, n int) {
	now := s.ep.eng.Clock().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := &s.last; w.For != ForLock || w.Peer != peer || w.Tries >= n {
		s.request = nil
		s.last = Wait{For: ForLock, From: true, Peer: peer, Since: now, Calls: s.calls[:runtime.Callers(2, s.calls[:])]}
	}
	s.last.Tries, s.last.Awake = n, now
}

// describe says what r waits for.
func (s *waits) describe(r *Request) {
	w := &s.last
	w.Peer, w.Tag, w.Context, w.Bytes = r.peer, r.entry.Tag, r.entry.Context, int(r.total)
	switch r.state {
	case posted, retracting:
		w.For, w.Bytes = "a message", r.data.len()
	case sendCTS, sendRead, waitFIN, waitRest, waitTurn, waitRead:
		w.For = "the rest of a message"
	case waitCTS:
		w.For = "the receive of a message"
	case sendEager, sendRTS, sendData:
		w.For = "room to send a message"
	case waitAck, waitPlaced:
		w.For = "the acknowledgement of a message"
	}
	switch r.state {
	case posted, retracting, sendCTS, sendRead, waitFIN, waitRest, waitTurn, waitRead:
		if w.From = true; r.state != posted && r.state != retracting {
			w.Peer = r.st.Source // a ghost may send what it waits for
		}
	}
}

// Wake implements progress.SleepHook.
func (s *waits) Wake() {
	now := s.ep.eng.Clock().Now()
	s.mu.Lock()
	s.last.Awake = now
	s.mu.Unlock()
}
