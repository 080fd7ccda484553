package rma

import "github.com/xwarp/xwarp/internal/base/mono"

// counters are what is counted on the way.
type counters struct {
	epochs Epochs
	served []Served   // operations by what has done them: the first ones are ByItself, ByOwn and ByTarget
	clock  mono.Clock // or nil: how long is waited is not measured
}

// Account tells code that watches a rank what it does with a window.
type Account struct{ w *Window }

// Account returns the account of a window.
func (w *Window) Account() Account { return Account{w} }

// Counts is what a rank has done with a window up to now.
type Counts struct {
	Epochs Epochs
	Served []Served // by what has done them
	Waited mono.Duration
	Most   mono.Duration // of that, for one rank
	For    int           // for which; -1: for none
}

// Epochs are how many of each kind have begun.
type Epochs struct{ Fences, Starts, Posts, Locks, LockAlls uint64 }

// Served counts the operations of this rank that one has done.
type Served struct {
	By                      int // what has done them: see Server
	Puts, Gets, Accumulates uint64
}

// What does the operations of a rank. ByGhost and what is above it are the ghosts of the job
// by their numbers.
const (
	ByItself = iota // this rank, by loads and stores in memory that ranks of its host have in common
	ByOwn           // this rank, on its own memory
	ByTarget        // the rank whose memory it is
	ByGhost
)

// by returns where the operations of one are counted.
func (c *counters) by(who int) int32 {
	for i := range c.served {
		if c.served[i].By == who {
			return int32(i)
		}
	}
	c.served = append(c.served, Served{By: who})
	return int32(len(c.served) - 1)
}

// Server returns what does an operation on the memory of a rank: the accumulate o, or, if that
// is nil, a Put or a Get.
func (a Account) Server(rank int32, o *Op) int {
	w, t := a.w, a.w.target(rank)
	return w.counts.accumulate(t, rank == w.me, o == nil || atomicKind(o.Kind)).By
}

// accumulate returns what counts an accumulate, which is done directly, or by a message to a
// rank whose memory is mapped here, the own one perhaps.
func (c *counters) accumulate(t *target, own, direct bool) *Served {
	switch {
	case t.near == nil || direct:
		return &c.served[t.by]
	case own:
		return &c.served[ByOwn]
	}
	return &c.served[ByTarget]
}

// waiting returns what time it is, where it is measured how long is waited.
func (c *counters) waiting() mono.Time {
	if c.clock == nil {
		return 0
	}
	return c.clock.Now()
}

// waited notes that a target was waited for since.
func (c *counters) waited(t *target, since mono.Time) {
	if c.clock != nil {
		t.waited += c.clock.Now().Sub(since)
	}
}

// Counts returns the counters of now.
func (a Account) Counts() Counts {
	w := a.w
	c := Counts{Epochs: w.counts.epochs, Served: w.counts.served, For: -1}
	for i := range w.targets {
		took := w.targets[i].waited
		c.Waited += took
		if took > c.Most {
			c.Most, c.For = took, int(w.rankOf(w.targets[i].home, 0))
		}
	}
	return c
}
