package p2p

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Up to which length a message is copied into the channel of a neighbour, and from
// which on the neighbour copies it from where it lies, depends on two things. A call
// of process_vm_readv takes a microsecond or two before it copies anything; that
// is measured once. And a channel copies twice, from one core to
// the other, which takes four times as long between some pairs of cores as between
// others, and where ranks are moved between cores from one second to the next. So
// each channel times some of the copies into it, and out of it. In a row of messages these go on at the
// same time. Alone, a message is copied out behind that, from lines that come from the other core.
//
//	length * copies = call + length * pull
//
// is where the two ways take the same time. Of several copies the shortest counts, or one that half of them are longer
// than: a core that was taken away in the middle of one says nothing about the channel.
//
// Nothing of this happens before messages of some length have been sent: ranks that
// start at the same time have better things to do.
type tuner struct {
	in, out copies  // of the channel to the neighbour, and of that from it
	known   float64 // ns per byte that copies out of that take
	tries   uint32
}

// copies are those of one end, of which some are timed.
type copies struct {
	took  [tuneCopies]float64 // ns per byte; from the shortest on, once there are all of a decision
	timed int
	tick  uint32
}

const (
	tuneLeast  = 4 << 10  // bytes; the limit is not below,
	tuneMost   = 16 << 10 // nor above
	tuneTimed  = 2 << 10  // bytes of the shortest copy that is timed
	tuneCopies = 8        // timed for a decision
	tuneEvery  = 8        // one of so many copies is timed, after the first decision
	tuneTries  = 64       // one of so many messages above the limit is copied, to be timed
	pullTurn   = 300      // ns that RTS and FIN take

	// Copies of a message in copies of the sender's: of one in a row; and those that the receiver of one alone
	// makes, while nothing has come from there.
	copiesRow     = 1.5
	copiesUnknown = 1.5
)

// due reports whether the next copy is to be timed.
func (c *copies) due() bool {
	c.tick++
	return c.tick <= tuneCopies || c.tick%tuneEvery == 0
}

// try reports whether a message that is above the limit is copied all the same.
func (t *tuner) try() bool {
	if t == nil {
		return false
	}
	t.tries++
	return t.tries%tuneTries == 0
}

// copied takes a copy into account, and returns whether that makes a decision.
func (c *copies) copied(n int, took mono.Duration) bool {
	c.took[c.timed] = float64(took) / float64(n)
	if c.timed++; c.timed < tuneCopies {
		return false
	}
	c.timed = 0
	slices.Sort(c.took[:])
	return true
}

// typical returns how long a copy takes that was not disturbed.
func (c *copies) typical() float64 { return c.took[tuneCopies/2-1] }

// row returns what the copies of a message in a row take, in ns per byte.
func (t *tuner) row() float64 { return copiesRow * t.in.took[0] }

// alone returns what those of a message take that is alone.
func (t *tuner) alone() float64 {
	if t.known == 0 {
		return (1 + copiesUnknown) * t.in.took[0]
	}
	return t.in.typical() + t.known
}

// tuneLimit returns up to which length messages are copied whose copies take so many ns per byte. most is the
// longest message that a channel takes.
func tuneLimit(cost shm.PullCost, copies float64, most int) int {
	gain := copies - cost.PerByte // of a pull, for each byte
	if gain <= 0 {
		return most
	}
	return int(min(max((cost.Call+pullTurn)/gain, tuneLeast), float64(most)))
}

// copyTimed copies into the channel to p, and times that.
func (nb *neighbours) copyTimed(p *peer, dst, src []byte) {
	clock := nb.eng.Clock()
	before := clock.Now()
	n := mem.CopyAcross(dst, src)
	nb.tuned(p, n, clock.Now().Sub(before))
}

// tuned takes a copy to p into account.
func (nb *neighbours) tuned(p *peer, n int, took mono.Duration) {
	if !p.tune.in.copied(n, took) {
		return
	}
	top, alone := int(p.eagerCap), int(p.eagerCap)
	if p.channel.Pulls() {
		cost := nb.pulling()
		if cost.Call == 0 {
			p.tune = nil // the limit stays as it is
			return
		}
		top, alone = tuneLimit(cost, p.tune.row(), top), tuneLimit(cost, p.tune.alone(), alone)
	}
	p.setTop(top)
	p.plainMax = int32(alone)
}

// deliver is Request.deliver of a message of p. Some copies out of its channel, if it has one, are timed.
func (nb *neighbours) deliver(p *peer, r *Request, env match.Envelope, b []byte) {
	t := p.tune
	if t == nil || !t.out.due() {
		r.deliver(env, b)
		return
	}
	clock := nb.eng.Clock()
	before := clock.Now()
	r.deliver(env, b)
	if t.out.copied(len(b), clock.Now().Sub(before)) {
		t.known = t.out.typical()
	}
}

// pulling returns what it takes to pull, 0 if that cannot be measured.
func (nb *neighbours) pulling() shm.PullCost {
	if nb.pullCost == nil {
		c, ok := shm.MeasurePull(nb.eng.Clock())
		if !ok {
			c = shm.PullCost{}
		}
		nb.pullCost = &c
	}
	return *nb.pullCost
}
