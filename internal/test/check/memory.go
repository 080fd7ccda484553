package check

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/verbs"
)

// canary is what lies before and behind everything that is registered, and in
// buffers that nobody may touch.
const (
	canary    = 0xc5
	canaryLen = 64
)

// chunk is registered memory with canaries around it.
type chunk struct {
	mr    *verbs.MR
	all   []byte
	arena *mem.Arena // that it was taken from, or nil
	at    mem.Addr
}

// release gives the memory back, when nobody can reach it any more.
func (c *chunk) release() {
	if c.arena != nil {
		c.arena.Free(c.at)
	}
}

func (c *chunk) bytes() []byte { return c.all[canaryLen : len(c.all)-canaryLen] }

// intact reports whether the canaries live.
func (c *chunk) intact() bool {
	for _, edge := range [][]byte{c.all[:canaryLen], c.all[len(c.all)-canaryLen:]} {
		for _, b := range edge {
			if b != canary {
				return false
			}
		}
	}
	return true
}

// newChunk registers n bytes in the arena or on the heap.
func newChunk(rng *rand.Rand, pd *verbs.PD, ctx *verbs.Context, n int, access verbs.Access) (*chunk, error) {
	c := &chunk{}
	if rng.IntN(2) == 0 {
		c.arena = ctx.Arena()
		var err error
		if c.at, err = c.arena.Alloc(n+2*canaryLen, 64); err != nil {
			return nil, err
		}
		c.all = c.arena.At(c.at, n+2*canaryLen)
	} else {
		c.all = make([]byte, n+2*canaryLen)
	}
	for i := range c.all {
		c.all[i] = canary
	}
	var err error
	c.mr, err = pd.RegMR(c.bytes(), access)
	return c, err
}

// slots is a chunk cut into buffers of one size. Those that are free hold
// canaries, which are looked at before a buffer is used again.
type slots struct {
	*chunk
	size  int
	avail []int
	blank []byte
}

func newSlots(rng *rand.Rand, pd *verbs.PD, ctx *verbs.Context, count, size int, access verbs.Access) (*slots, error) {
	c, err := newChunk(rng, pd, ctx, count*size, access)
	if err != nil {
		return nil, err
	}
	s := &slots{chunk: c, size: size, blank: bytes.Repeat([]byte{canary}, size)}
	for i := range count {
		s.avail = append(s.avail, i)
	}
	return s, nil
}

func (s *slots) at(i int) []byte { return s.bytes()[i*s.size:][:s.size] }

// take returns a free buffer, or false.
func (s *slots) take() (int, bool) {
	if len(s.avail) == 0 {
		return 0, false
	}
	i := s.avail[0]
	s.avail = s.avail[1:]
	return i, true
}

// give makes a buffer free. What is still read from it, or written to it, will
// be found out.
func (s *slots) give(i int) {
	copy(s.at(i), s.blank)
	s.avail = append(s.avail, i)
}

// check reports an error when somebody has written where nobody may.
func (s *slots) check(what string) error {
	for _, i := range s.avail {
		if !bytes.Equal(s.at(i), s.blank) {
			return fmt.Errorf("%s buffer %d was written to while nobody may use it", what, i)
		}
	}
	if !s.intact() {
		return fmt.Errorf("canaries around the %s buffers were overwritten", what)
	}
	return nil
}

// scatter cuts n bytes of buffer i into elements.
func (s *slots) scatter(rng *rand.Rand, i, n int) (count uint8, sgl [verbs.MaxSGE]verbs.SGE) {
	parts, at := 1, 0
	if rng.IntN(3) == 0 {
		parts += rng.IntN(verbs.MaxSGE)
	}
	for k := range parts {
		size := n - at
		if k < parts-1 {
			size = rng.IntN(size + 1)
		}
		sgl[k] = s.mr.SGE(i*s.size+at, size)
		at += size
	}
	return uint8(parts), sgl
}
