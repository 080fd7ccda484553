package mpi

import (
	"math/bits"
)

// Every communicator has two contexts, 2i and 2i+1, with the same i on all its
// ranks: they agree on one that is free on all of them. World has i = 0, Self 1, and
// where ranks meet that have no communicator yet 2: see sessionContext.

// contextWords is how many words of 64 contexts there are. 2048 communicators
// are more than programs have at a time, and 256 bytes to agree on one.
const contextWords = 32

// contextSet has a bit for each context that is free.
type contextSet [contextWords]uint64

func newContextSet() (s contextSet) {
	for i := range s {
		s[i] = ^uint64(0)
	}
	s[0] &^= 1<<0 | 1<<(selfContext/2) | 1<<(sessionContext/2)
	return s
}

// choose returns n contexts of the set; fewer when it has no more. They are the
// lowest behind the first skip ones, around the end of the set.
func (s *contextSet) choose(n, skip int) (free []uint32) {
	total := 0
	for _, word := range s {
		total += bits.OnesCount64(word)
	}
	if n = min(n, total); n == 0 {
		return nil
	}
	skip %= total
	free = make([]uint32, 0, n)
	for w := 0; len(free) < n; w++ { // around the end once at most
		word := s[w%contextWords]
		if in := bits.OnesCount64(word); skip >= in {
			skip -= in
			continue
		}
		for ; word != 0 && len(free) < n; word &= word - 1 {
			if skip--; skip < 0 {
				free = append(free, uint32(64*(w%contextWords)+bits.TrailingZeros64(word)))
			}
		}
		skip = 0
	}
	return free
}

// take takes all of these contexts out of the set, or none when one is not in it.
func (s *contextSet) take(all []uint32) bool {
	for _, i := range all {
		if s[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	for _, i := range all {
		s[i/64] &^= 1 << (i % 64)
	}
	return true
}

// give puts contexts back.
func (s *contextSet) give(all ...uint32) {
	for _, i := range all {
		s[i/64] |= 1 << (i % 64)
	}
}

// takeContexts is take of those that no communicator has.
func (p *Proc) takeContexts(all []uint32) bool {
	p.ep.Enter()
	defer p.ep.Leave()
	return p.contexts.take(all)
}

// giveContexts gives contexts back.
func (p *Proc) giveContexts(all ...uint32) {
	p.ep.Enter()
	p.contexts.give(all...)
	p.ep.Leave()
}

// fewContexts is how many contexts are left when Free begins to wait for the other ranks,
// whose contexts come back only when all of them have called it.
const fewContexts = 256

// contextsShort reports whether there are few contexts left.
func (p *Proc) contextsShort() bool {
	n := 0
	for _, w := range p.freeContexts() {
		n += bits.OnesCount64(w)
	}
	return n < fewContexts
}

// freeContexts returns what is free now.
func (p *Proc) freeContexts() contextSet {
	p.ep.Enter()
	free := p.contexts
	p.ep.Leave()
	return free
}

// alone is the bit of World in a set that ranks agree on: of this rank one
// goroutine at a time makes communicators, and no Idup is under way. It is the same
// in what they agree on when that holds for all of them.
const alone = 1

// agree returns n contexts that are free on all ranks of c, and takes them. All
// of these call it. between, when not nil, is called with a set that all of them
// have in common, for ranks that are not of c; it leaves in the set what those
// have in common with it.
//
// Other goroutines may take a context between the time when it was free on all
// ranks and the time when this one comes to take it. So the ranks tell one another
// whether they have got it, unless no rank has such goroutines, and else give it
// back and try another one, each communicator a different one. Nothing is held
// while a rank waits, so that communicators may be made in different orders.
func (c *Comm) agree(op string, n int, between func(set *contextSet) error) ([]uint32, error) {
	t := c.p.watch.begin(op, c, Undefined, Undefined, 0)
	got, err := c.agreed(op, n, between)
	t.end(err)
	return got, err
}

func (c *Comm) agreed(op string, n int, between func(set *contextSet) error) ([]uint32, error) {
	p := c.p
	common := func(set *contextSet) error {
		c.coll.op = op
		err := c.coll.allreduce(set[:], BAnd)
		if err == nil && between != nil {
			err = between(set)
		}
		return err
	}
	for try := 0; ; try++ {
		free := p.freeContexts()
		if !p.ep.Threads() && p.dups == 0 {
			free[0] |= alone
		}
		if err := common(&free); err != nil {
			return nil, err
		}
		certain := free[0]&alone != 0
		free[0] &^= alone
		got := free.choose(n, try*int(c.context/2+1))
		if len(got) < n {
			return nil, tooMany(op)
		}
		mine := p.takeContexts(got)
		if certain {
			return got, nil
		}
		var all contextSet
		if mine {
			all[0] = alone
		}
		err := common(&all)
		if err == nil && all[0] != 0 {
			return got, nil
		}
		if mine {
			p.giveContexts(got...)
		}
		if err != nil {
			return nil, err
		}
	}
}

func tooMany(op string) error {
	return fail(ErrOther, op, "there are %d communicators already: free some, and the persistent operations on those that were freed", 64*contextWords)
}

// gatherInts gives all ranks of c the numbers of all of them, in the order of
// ranks. All give the same number of numbers.
func (c *Comm) gatherInts(op string, mine ...int64) ([]int64, error) {
	all := make([]int64, len(mine)*c.Size())
	copy(all[len(mine)*c.rank:], mine)
	c.coll.op = op
	return all, c.coll.sum(all)
}
