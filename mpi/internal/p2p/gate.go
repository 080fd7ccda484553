package p2p

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/mono"
)

// gate keeps the goroutines of a rank apart that use its endpoint at the same
// time (MPI_THREAD_MULTIPLE). One of them at a time is inside. An endpoint
// without a gate is for one goroutine at a time.
//
// Nobody is inside while it waits, so that a receive of one goroutine never
// stops a send of another. Of those that wait, one leads: it makes the steps of
// the engine and sleeps in its Park, outside of the gate. The others sleep until
// what they wait for has come, which the one knows that brings it about. A
// leader that has got what it waited for wakes another one that takes its place;
// there is no goroutine of our own.
//
// For those who write the code inside:
//
//   - Exported methods of Endpoint and Request go through the gate; they are in
//     calls.go. What they call, and everything else here, is inside already.
//     Code inside that calls an exported method waits for itself for ever.
//   - What must not be divided, such as to look whether something is there and
//     else to wait for it, goes between Enter and Leave, and uses [Inside].
//   - To wait inside is: for !there { progress() }. Others come in meanwhile.
type gate struct {
	mu     sync.Mutex
	asking atomic.Int32 // goroutines that wait for mu: who makes steps lets them in
	naps   atomic.Int32 // goroutines that spin before they sleep
	spins  int          // how often they look

	// The rest belongs to who is inside.
	ep     *Endpoint
	led    bool      // somebody leads
	target *Request  // what the leader waits for; nil: anything
	parked bool      // the leader is in Park
	until  mono.Time // and comes back then
	last   *sleeper  // those that wait and do not lead, the latest first
	heir   *sleeper  // woken to lead
	many   int       // of these, how many wait for anything
	spare  *sleeper  // pool
}

// sleeper is a goroutine that waits while another one leads.
type sleeper struct {
	next, prev *sleeper
	target     *Request // nil: anything
	state      atomic.Uint32
	bell       chan struct{}
}

// The states of a sleeper.
const (
	looking = iota // it looks at its state now and then
	asleep         // it waits for its bell
	woken
)

// How often a goroutine looks before it sleeps: for others to leave the gate,
// which takes them less than a microsecond, and for what it waits for. To be
// woken takes some 10 us.
const (
	gateSpins = 300
	napSpins  = 10_000
)

// newGate returns a gate for ep, or nil if its engine cannot be shared.
func newGate(ep *Endpoint) *gate {
	g := &gate{ep: ep}
	shared, patient := ep.eng.Share(g)
	if !shared {
		return nil
	}
	if patient {
		g.spins = napSpins
	}
	return g
}

// Enter goes inside: until Leave no other goroutine is. See gate.
func (ep *Endpoint) Enter() {
	if ep.gate != nil {
		ep.gate.enter()
	}
}

// Leave ends what Enter began.
func (ep *Endpoint) Leave() {
	if ep.gate != nil {
		ep.gate.leave()
	}
}

// TryEnter is Enter that does not wait, and reports whether it went inside.
func (ep *Endpoint) TryEnter() bool { return ep.gate == nil || ep.gate.mu.TryLock() }

// Threads reports whether several goroutines may use the endpoint at the same
// time.
func (ep *Endpoint) Threads() bool { return ep.gate != nil }

func (g *gate) enter() {
	if g.mu.TryLock() {
		return
	}
	g.asking.Add(1)
	for range g.patience(gateSpins) {
		if g.mu.TryLock() {
			g.asking.Add(-1)
			return
		}
	}
	g.mu.Lock()
	g.asking.Add(-1)
}

// patience is n, or nothing where there is no core to spin on.
func (g *gate) patience(n int) int {
	if g.spins == 0 {
		return 0
	}
	return n
}

func (g *gate) leave() {
	g.ep.eng.Moved() // the leader, if it is about to sleep, stays awake for a while
	g.wakeMany()
	g.exit()
}

// exit lets others in, after somebody among those who wait has been found who
// leads.
func (g *gate) exit() {
	switch {
	case !g.led:
		if g.last != nil && g.heir == nil {
			g.heir = g.last // the latest may be awake still
			g.heir.wake()
		}
	case !g.parked:
	case g.news():
		g.ep.eng.Wake()
	case g.ep.lanes != nil && !g.ep.lanes.Sleeping():
		g.ep.lanes.FD() // somebody has looked meanwhile: neighbours ring no bell any more
	}
	g.mu.Unlock()
}

// news reports whether the leader that is parked must come back: what it waits
// for may be there, or there is something to do that it does not know of.
func (g *gate) news() bool {
	ep := g.ep
	return g.target == nil || ep.impaired || g.target.state == done || ep.posts > 0 || ep.stuck.head != nil || ep.pulls.head != nil || ep.eng.NextDeadline() < g.until
}

// progress makes one step, and waits until there may be more to do when there
// was nothing. r is what the caller waits for; nil: anything.
func (ep *Endpoint) progress(r *Request) {
	if ep.gate != nil {
		ep.gate.progress(r)
		return
	}
	if ep.lanes != nil && ep.spin() {
		return
	}
	if ep.step() == 0 {
		ep.waits.target = r
		ep.eng.Park()
	}
}

func (g *gate) progress(r *Request) {
	ep, n := g.ep, 0
	if ep.lanes != nil && !g.led && ep.spin() {
		n = 1
	} else {
		n = ep.step()
	}
	switch {
	case n > 0 || r != nil && r.state == done:
		g.wakeMany()
		g.makeWay()
	case g.led:
		g.sleep(r)
	default:
		g.led, g.target, ep.waits.target = true, r, r
		ep.eng.Park()
		g.makeWay()
		g.led, g.target = false, nil
	}
}

// makeWay lets others in who ask for it. While somebody leads who has work to
// do, nobody else need be woken for that.
func (g *gate) makeWay() {
	if g.asking.Load() == 0 {
		return
	}
	lead := !g.led
	g.led = true
	g.mu.Unlock()
	for i := range gateSpins {
		if g.asking.Load() == 0 {
			break
		}
		if i%16 == 15 {
			runtime.Gosched()
		}
	}
	g.enter()
	if lead {
		g.led = false
	}
}

// Unlock and Lock are for the engine: it calls them around what a Park waits
// for.
func (g *gate) Unlock() {
	g.until = g.ep.eng.NextDeadline()
	g.parked = true
	g.mu.Unlock()
}

// Lock implements sync.Locker.
func (g *gate) Lock() {
	g.enter()
	g.parked = false
}

// sleep waits outside until r is done, or until it is to lead.
func (g *gate) sleep(r *Request) {
	s := g.spare
	if s == nil {
		s = &sleeper{bell: make(chan struct{}, 1)}
	} else {
		g.spare = s.next
	}
	s.state.Store(looking)
	if s.target = r; r != nil {
		r.sleeper = s
	} else {
		g.many++
	}
	if s.next, s.prev, g.last = g.last, nil, s; s.next != nil {
		s.next.prev = s
	}
	g.exit()
	g.nap(s)
	g.enter()
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		g.last = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	if r != nil {
		r.sleeper = nil
	} else {
		g.many--
	}
	if g.heir == s {
		g.heir = nil
	}
	s.target = nil
	s.next, g.spare = g.spare, s
}

// nap returns when s is woken.
func (g *gate) nap(s *sleeper) {
	// The leader has a core, and each that spins.
	if g.spins > 0 && int(g.naps.Add(1)) < runtime.GOMAXPROCS(0) {
		for range g.spins {
			if s.state.Load() == woken {
				break
			}
		}
	}
	if g.spins > 0 {
		g.naps.Add(-1)
	}
	if s.state.CompareAndSwap(looking, asleep) {
		<-s.bell
	}
}

// wake ends the nap of s, or lets it not begin.
func (s *sleeper) wake() {
	if s.state.Swap(woken) == asleep {
		s.bell <- struct{}{}
	}
}

// wakeMany wakes those that wait for anything, and when ranks are lost all, for
// what they wait for may never come.
func (g *gate) wakeMany() {
	if g.many == 0 && !g.ep.impaired {
		return
	}
	for s := g.last; s != nil; s = s.next {
		if s.target == nil || g.ep.impaired {
			s.wake()
		}
	}
}
