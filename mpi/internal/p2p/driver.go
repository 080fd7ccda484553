package p2p

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
)

// Spins are looks at the channels before a step of the engine, which looks at the
// network too: that may be a system call, a hundred times as long. A step comes
// before a rank gives its core away, too: 8 ranks on 4 cores take 66 us for a
// barrier when they spin for long and 32 when they do not.
const (
	spinsMost  = 200 // after something came
	spinsLeast = 4   // when nothing came for long, or cores are scarce
	spinsNear  = 100 // when nothing came for long where all ranks are on this host, and have cores
	hitsFar    = 32  // messages in a row before the network has its turn
	hitsNear   = 512 // the same where all ranks are on this host
	stepEvery  = 4   // questions whether something is done before it has
	asksNear   = 64  // steps for such questions in vain, where all ranks are on this host, after which others have the core
)

// driver makes progress for the goroutine that calls.
type driver struct {
	ep       *Endpoint
	lock     *progressLock // nil: one goroutine at a time
	waits    *waits
	spins    int // see spin
	hits     int // see spin
	vain     int // see ask
	minSpins int // the least that spins are
	maxSpins int // and the most
	maxHits  int // the most that hits are
	far      farWait
}

// Enter takes the progress lock, and Leave gives it back.
func (d *driver) Enter() {
	if d.lock != nil {
		d.lock.enter()
	}
}

// Leave ends what Enter began.
func (d *driver) Leave() {
	if d.lock != nil {
		d.lock.leave()
	}
}

// TryEnter is Enter that does not wait, and reports whether it has the lock.
func (d *driver) TryEnter() bool { return d.lock == nil || d.lock.mu.TryLock() }

// Threads reports whether several goroutines may use the endpoint at the same
// time.
func (d *driver) Threads() bool { return d.lock != nil }

// progress makes one step, and waits until there may be more to do when there
// was nothing. r is what the caller waits for; nil: anything.
func (d *driver) progress(r *Request) {
	if d.lock != nil {
		d.lock.progress(r)
		return
	}
	if d.ep.near.channels != nil && d.spin() {
		return
	}
	if d.step() == 0 && !d.looksOn(r) {
		d.waits.target = r
		d.ep.eng.Park()
	}
}

// farWait is a wait for another host, where ranks share processors. What comes from there takes less
// time than to give the processor away and to get it back, which is two switches, and no rank of this processor has
// to do anything for it. So a rank looks for farLook and more before it gives its own away: not if that was in vain
// farVain times in a row, and then in one wait of farAgain.
type farWait struct {
	of    *Request
	gen   uint32
	until mono.Time
	over  bool // it has looked for long enough
	gives bool // the rank sends data, too: see Inside.Await
	vain  int
}

const (
	farLook   = 10 * mono.Microsecond
	farKiB    = 4 * mono.Microsecond // more for each KiB,
	farLength = 4 << 10              // of so many bytes at most
	farVain   = 8
	farAgain  = 16
)

// looksOn reports whether a rank goes on to look for what r waits for, and keeps its processor.
func (d *driver) looksOn(r *Request) bool {
	ep, w := d.ep, &d.far
	if d.maxSpins != spinsLeast || r == nil || r.peer < 0 || ep.peers[r.peer].channel != nil || r.peer == ep.rank {
		return false
	}
	now := ep.eng.Now()
	if w.of != r || w.gen != r.gen {
		if !w.over {
			w.vain = 0
		}
		w.of, w.gen, w.until = r, r.gen, now.Add(farLook+farKiB*mono.Duration(min(r.data.len(), farLength))>>10)
		if w.over = w.gives && r.data.len() > farLength; w.over {
			return false
		}
		if w.over = w.vain >= farVain && w.vain%farAgain != 0; w.over {
			w.vain++
		}
	}
	if !w.over && now >= w.until {
		w.over = true
		w.vain++
	}
	return !w.over
}

// Attend makes progress until stop says so and the engine is woken, beside the goroutines of
// the program, of an endpoint that is for several of them. It leads where none of these does,
// and waits for nothing that comes, so that calls which change nothing for it do not wake it.
func (d *driver) Attend(stop *atomic.Bool) {
	never := &Request{ep: d.ep, peer: d.ep.rank}
	d.Enter()
	for !stop.Load() && !d.ep.failures.ended {
		d.progress(never)
	}
	d.Leave()
}

// step makes one step of the engine, which lets everything go out.
func (d *driver) step() int {
	if d.ep.net.batch.to != nil {
		d.ep.net.flush()
	}
	n := d.ep.eng.Step()
	if d.lock != nil {
		d.lock.saw(n)
	}
	return n
}

// stepUntil makes one step and sleeps until t at the latest.
func (d *driver) stepUntil(t mono.Time) {
	ep := d.ep
	ep.poller.wakeAt = t
	if d.step() == 0 {
		d.waits.target = nil
		ep.eng.Park()
	}
	ep.poller.wakeAt = mono.Never
}

// spin looks at the channels for a while, and reports whether something moved.
func (d *driver) spin() bool {
	if d.ep.net.posts > 0 || d.hits >= d.maxHits {
		d.hits = 0
		return false
	}
	for range d.spins {
		if d.look() {
			d.spins = d.maxSpins
			d.hits++
			return true
		}
	}
	d.spins = max(d.spins/2, d.minSpins)
	return false
}

// look looks at the channels once, and reports whether something moved.
func (d *driver) look() bool {
	ep := d.ep
	n := ep.poller.pollChannels(1)
	if ep.out.stuck.head != nil {
		n += ep.out.advanceStuck()
	}
	if d.lock != nil {
		d.lock.saw(n)
	}
	if n == 0 {
		return false
	}
	ep.eng.Moved()
	ep.poller.advanceHook()
	return true
}

// glance makes progress for a caller that does not wait but asks again and again,
// with a look at the network every now and then: see paceMost. Where ranks share processors and a
// step has found nothing, it gives the processor away: the rank that is to answer may wait for it, for
// milliseconds.
func (d *driver) glance() {
	if d.ep.near.channels != nil && d.ep.net.posts == 0 && d.hits < d.maxHits {
		d.hits++
		if d.look() || d.hits%stepEvery != 0 || d.maxHits == hitsNear && d.ep.eng.SinceStep() < paceMost {
			return
		}
	}
	d.hits = 0
	if d.step() == 0 {
		d.giveWay()
	}
}

// ask is glance with a step in any case.
func (d *driver) ask() {
	if d.step() > 0 {
		d.vain = 0
	} else if d.vain++; d.maxHits != hitsNear || d.vain%asksNear == 0 {
		d.giveWay()
	}
}

// giveWay gives the processor to another rank, where they share it.
func (d *driver) giveWay() {
	if d.maxSpins == spinsLeast {
		d.Leave()
		d.ep.eng.Yield()
		d.Enter()
	}
}

// paceMost is how long a rank may go without a step when calls that need none follow each
// other: others may wait for what it does in a step, and it learns there which ranks are lost. A step
// takes as long as several of those calls.
//
// Where all ranks are on this host, what they say comes through channels: there a rank looks at these,
// which takes 20 ns, and makes a step, which asks the kernel as well, once in paceNear.
const (
	paceMost = 50 * mono.Microsecond
	paceNear = 1 * mono.Millisecond
)

// Pace makes progress now and then, for a caller that needs none itself.
func (in Inside) Pace() {
	since := in.ep.eng.SinceStep()
	switch {
	case since < paceMost:
	case in.ep.maxHits == hitsNear && in.ep.net.posts == 0 && since < paceNear:
		in.ep.look()
	case in.ep.step() > 0:
		in.ep.step() // answers go out
	}
}

// pauseSpins is how often Pause gives the core away before it sleeps, and pauseSleep for how
// long it does then.
const (
	pauseSpins = 200
	pauseSleep = 50 * time.Microsecond
)

// Pause makes a step, and lets others have the core, for a caller that waits for a lock in memory of a
// rank, of which no engine tells. tries counts its calls: after some it sleeps, for a
// short time. Others come inside meanwhile.
func (in Inside) Pause(rank int32, tries int) {
	ep := in.ep
	in.Flush()
	ep.step()
	ep.Leave()
	if tries < pauseSpins {
		progress.Yield()
		if tries%8 == 7 {
			runtime.Gosched()
		}
	} else {
		ep.waits.tries(rank, tries)
		time.Sleep(pauseSleep)
	}
	ep.Enter()
}
