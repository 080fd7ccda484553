package mpi

import (
	"math/bits"
)

// Every communicator has two contexts, 2i and 2i+1, with the same i on all its
// ranks: they agree on the lowest one that is free on all of them. World has
// i = 0.

// contextWords is how many words of 64 contexts there are. 2048 communicators
// are more than programs have at a time, and 256 bytes to agree on one.
const contextWords = 32

// contextSet has a bit for each context that is free.
type contextSet [contextWords]uint64

func newContextSet() (s contextSet) {
	for i := range s {
		s[i] = ^uint64(0)
	}
	s[0] &^= 1 // World
	return s
}

// lowest returns the first n contexts of the set; fewer when it has no more.
func (s contextSet) lowest(n int) (free []uint32) {
	for w := range s {
		for ; s[w] != 0 && len(free) < n; s[w] &= s[w] - 1 {
			free = append(free, uint32(64*w+bits.TrailingZeros64(s[w])))
		}
	}
	return free
}

func (s *contextSet) take(i uint32) { s[i/64] &^= 1 << (i % 64) }
func (s *contextSet) give(i uint32) { s[i/64] |= 1 << (i % 64) }

// agree returns n contexts that are free on all ranks of c, and takes them. All
// of these call it. between, when not nil, is called with what is free on all of
// them, for ranks that are not of c; it returns what is free on those too.
func (c *Comm) agree(op string, n int, between func(free *contextSet) error) ([]uint32, error) {
	free := c.p.contexts
	c.coll.op = op
	if err := c.coll.allreduce(free[:], BAnd); err != nil {
		return nil, err
	}
	if between != nil {
		if err := between(&free); err != nil {
			return nil, err
		}
	}
	got := free.lowest(n)
	if len(got) < n {
		return nil, fail(ErrOther, op, "there are %d communicators already: free some", 64*contextWords)
	}
	for _, i := range got {
		c.p.contexts.take(i)
	}
	return got, nil
}

// gatherInts gives all ranks of c the numbers of all of them, in the order of
// ranks. All give the same number of numbers.
func (c *Comm) gatherInts(op string, mine ...int64) ([]int64, error) {
	all := make([]int64, len(mine)*c.Size())
	copy(all[len(mine)*c.rank:], mine)
	c.coll.op = op
	return all, c.coll.sum(all)
}
