package p2p

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// progressLock serializes the goroutines of a rank that use its endpoint at the same
// time (MPI_THREAD_MULTIPLE). An endpoint without one is for one goroutine at a time.
//
// The lock is not held while a goroutine waits, so that a receive of one goroutine
// never stops a send of another. Of the waiting goroutines one leads: it makes the
// steps of the engine and sleeps in its Park, without the lock. The others, the waiters,
// sleep until the goroutine that completes their request wakes them. A leader whose
// request is done wakes the next leader; the library has no goroutine of its own.
//
// For code that runs under the lock:
//
//   - Exported methods of Endpoint and Request take the lock; they are in calls.go.
//     What they call, and everything else here, runs under it already. Code under the
//     lock that calls an exported method deadlocks.
//   - What must not be divided, such as to look whether something is there and
//     else to wait for it, goes between Enter and Leave, and uses [Inside].
//   - To wait under the lock is: for !there { progress() }. Others take it meanwhile.
type progressLock struct {
	mu       sync.Mutex
	asking   atomic.Int32 // goroutines that wait for mu: the leader lets them have it between steps
	spinning atomic.Int32 // waiters that spin before they sleep
	spins    int          // how often they look

	// The rest is guarded by mu.
	ep     *Endpoint
	led    bool      // there is a leader
	target *Request  // what the leader waits for; nil: anything
	parked bool      // the leader is in Park
	looked bool      // a goroutine has looked for messages since it went there
	until  mono.Time // and comes back then
	last   *waiter   // waiters, the latest first
	next   *waiter   // woken to lead
	many   int       // of the waiters, how many wait for anything
	spare  *waiter   // pool
}

// waiter is a goroutine that waits while another one leads.
type waiter struct {
	next, prev *waiter
	target     *Request // nil: anything
	state      atomic.Uint32
	bell       chan struct{}
}

// The states of a waiter.
const (
	looking = iota // it looks at its state now and then
	asleep         // it waits for its bell
	woken
)

// How often a goroutine looks before it sleeps: at the lock, which others hold for
// less than a microsecond, and for what it waits for. To be woken takes some 10 us.
const (
	lockSpins = 300
	waitSpins = 10_000
)

// newProgressLock returns a lock for ep, or nil if its engine cannot be shared.
func newProgressLock(ep *Endpoint) *progressLock {
	l := &progressLock{ep: ep}
	shared, patient := ep.eng.Share(l)
	if !shared {
		return nil
	}
	if patient {
		l.spins = waitSpins
	}
	return l
}

func (l *progressLock) enter() {
	if l.mu.TryLock() {
		return
	}
	l.asking.Add(1)
	for range l.mostSpins(lockSpins) {
		if l.mu.TryLock() {
			l.asking.Add(-1)
			return
		}
	}
	l.mu.Lock()
	l.asking.Add(-1)
}

// mostSpins is n, or nothing where there is no core to spin on.
func (l *progressLock) mostSpins(n int) int {
	if l.spins == 0 {
		return 0
	}
	return n
}

func (l *progressLock) leave() {
	l.ep.eng.Moved() // the leader, if it is about to sleep, stays awake for a while
	l.wakeMany()
	l.exit()
}

// exit gives the lock back, after a waiter was woken to lead if no goroutine does.
func (l *progressLock) exit() {
	switch {
	case !l.led:
		if l.last != nil && l.next == nil {
			l.next = l.last // the latest may be awake still
			l.next.wake()
		}
	case !l.parked:
	case l.news():
		l.ep.eng.Wake()
	case l.looked: // so peers ring no bell any more
		l.ep.eng.Rearm()
		l.looked = false
	}
	l.mu.Unlock()
}

// news reports whether the leader that is parked must come back: what it waits
// for may be there, or there is something to do that it does not know of.
func (l *progressLock) news() bool {
	ep := l.ep
	return l.target == nil || ep.failures.impaired || l.target.state == done || ep.net.posts > 0 || ep.out.stuck.head != nil || ep.pulls.queue.head != nil || ep.eng.NextDeadline() < l.until
}

func (l *progressLock) progress(r *Request) {
	ep, n := l.ep, 0
	if ep.near.channels != nil && !l.led && ep.spin() {
		n = 1
	} else {
		n = ep.step()
	}
	switch {
	case n > 0 || r != nil && r.state == done:
		l.makeWay()
	case l.led:
		l.sleep(r)
	default:
		l.led, l.target, ep.waits.target = true, r, r
		ep.eng.Park()
		l.makeWay()
		l.led, l.target = false, nil
	}
}

// makeWay lets other goroutines have the lock that wait for it. A leader that has work
// to do stays the leader: no waiter is woken for that.
func (l *progressLock) makeWay() {
	if l.asking.Load() == 0 {
		return
	}
	lead := !l.led
	l.led = true
	l.mu.Unlock()
	for i := range lockSpins {
		if l.asking.Load() == 0 {
			break
		}
		if i%16 == 15 {
			runtime.Gosched()
		}
	}
	l.enter()
	if lead {
		l.led = false
	}
}

// Unlock and Lock are for the engine: it calls them around what a Park waits
// for.
func (l *progressLock) Unlock() {
	l.until = l.ep.eng.NextDeadline()
	l.parked, l.looked = true, false
	l.mu.Unlock()
}

// Lock implements sync.Locker.
func (l *progressLock) Lock() {
	l.enter()
	l.parked = false
}

// sleep waits without the lock until r is done, or until the goroutine is to lead.
func (l *progressLock) sleep(r *Request) {
	s := l.spare
	if s == nil {
		s = &waiter{bell: make(chan struct{}, 1)}
	} else {
		l.spare = s.next
	}
	s.state.Store(looking)
	if s.target = r; r != nil {
		r.waiter = s
	} else {
		l.many++
	}
	if s.next, s.prev, l.last = l.last, nil, s; s.next != nil {
		s.next.prev = s
	}
	l.exit()
	l.wait(s)
	l.enter()
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		l.last = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	if r != nil {
		r.waiter = nil
	} else {
		l.many--
	}
	if l.next == s {
		l.next = nil
	}
	s.target = nil
	s.next, l.spare = l.spare, s
}

// wait returns when s is woken.
func (l *progressLock) wait(s *waiter) {
	// The leader has a core, and each that spins.
	if l.spins > 0 && int(l.spinning.Add(1)) < runtime.GOMAXPROCS(0) {
		for range l.spins {
			if s.state.Load() == woken {
				break
			}
		}
	}
	if l.spins > 0 {
		l.spinning.Add(-1)
	}
	if s.state.CompareAndSwap(looking, asleep) {
		<-s.bell
	}
}

// wake ends the wait of s, or lets it not begin.
func (s *waiter) wake() {
	if s.state.Swap(woken) == asleep {
		s.bell <- struct{}{}
	}
}

// saw notes that a goroutine has looked for messages, and that n things moved.
func (l *progressLock) saw(n int) {
	l.looked = true
	if n > 0 { // here, for not every caller goes on to let others know
		l.wakeMany()
	}
}

// wakeMany wakes those that wait for anything, and when ranks are lost all, for
// what they wait for may never come.
func (l *progressLock) wakeMany() {
	if l.many == 0 && !l.ep.failures.impaired {
		return
	}
	for s := l.last; s != nil; s = s.next {
		if s.target == nil || l.ep.failures.impaired {
			s.wake()
		}
	}
}
