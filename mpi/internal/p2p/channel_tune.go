package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
)

// Up to which length a message is copied into the channel of a neighbour, and from
// which on the neighbour copies it from where it lies, depends on two things. A call
// of process_vm_readv takes a microsecond or two before it copies anything; that
// is measured once. And a channel copies twice, from one core to
// the other, which takes four times as long between some pairs of cores as between
// others, and where ranks are moved between cores from one second to the next. So
// each channel times some of the copies that it makes.
//
//	copies * length * copy = call + length * pull
//
// is where the two ways take the same time, with copies as below. The shortest of several copies counts:
// a core that was taken away in the middle of one says nothing about the channel.
//
// Nothing of this happens before messages of some length have been sent: ranks that
// start at the same time have better things to do.
type tuner struct {
	least float64 // ns per byte, of the copies since the last decision
	timed int
	tick  uint32
	tries uint32
}

const (
	tuneLeast  = 4 << 10  // bytes; the limit is not below,
	tuneMost   = 16 << 10 // nor above
	tuneTimed  = 2 << 10  // bytes of the shortest copy that is timed
	tuneCopies = 8        // timed for a decision
	tuneEvery  = 8        // one of so many copies is timed, after the first decision
	tuneTries  = 64       // one of so many messages above the limit is copied, to be timed
	pullTurn   = 300      // ns that RTS and FIN take

	// The copies of a message, in copies of the sender's. In a row of messages the receiver's go on at the
	// same time. Alone, a message is copied out behind that, from lines that come from the other core.
	copiesRow   = 1.5
	copiesAlone = 2.5
)

// due reports whether the next copy is to be timed.
func (t *tuner) due() bool {
	if t == nil {
		return false
	}
	t.tick++
	return t.tick <= tuneCopies || t.tick%tuneEvery == 0
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
func (t *tuner) copied(n int, took mono.Duration) bool {
	if each := float64(took) / float64(n); t.timed == 0 || each < t.least {
		t.least = each
	}
	t.timed++
	return t.timed == tuneCopies
}

// limit decides about messages whose copies take so many times as long as the sender's, and begins anew. most is the
// longest message that a channel takes.
func (t *tuner) limit(cost shm.PullCost, copies float64, most int) int {
	t.timed = 0
	gain := copies*t.least - cost.PerByte // of a pull, for each byte
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
	if !p.tune.copied(n, took) {
		return
	}
	top, alone := int(p.eagerCap), int(p.eagerCap)
	if p.channel.Pulls() {
		cost := nb.pulling()
		if cost.Call == 0 {
			p.tune = nil // the limit stays as it is
			return
		}
		top, alone = p.tune.limit(cost, copiesRow, top), p.tune.limit(cost, copiesAlone, alone)
	}
	p.setTop(top)
	p.plainMax = int32(alone)
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
