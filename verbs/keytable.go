package verbs

import (
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// region is what a key names: memory of a protection domain, and what may be
// done to it through this key. Memory regions have one all their life, windows
// while they are bound.
type region struct {
	pd     *PD
	qp     *QP // windows: the queue pair that bound it, through which alone it can be reached
	mr     *MR // whose memory it is
	mw     *MW // nil unless this is a window's
	buf    []byte
	addr   uint64
	key    uint32 // 0 while there is none
	access Access
	arena  mem.Addr // where buf lies in the arena, if it does
	inside bool
}

// slice returns the n bytes at addr if all of them lie in the region.
func (r *region) slice(addr uint64, n uint32) ([]byte, bool) {
	off := addr - r.addr
	if off > uint64(len(r.buf)) || uint64(n) > uint64(len(r.buf))-off {
		return nil, false
	}
	return r.buf[off : off+uint64(n) : off+uint64(n)], true
}

// keyTable finds regions by key. All 32 bits of a key are random, so that
// knowing some tells nothing of the others, and a guess has hardly a
// chance: with n keys valid one guess in 2^32/n is right, each is counted, and
// on RD the first wrong one ends the peer's association.
//
// Keys that are random are their own hash: the table is open addressing over a
// power of two, never more than half full. A key that is not valid any more
// stays in it for a while, so that it is not drawn again.
type keyTable struct {
	slots   []keySlot
	used    int // slots with a key, valid or resting
	rest    [restMax]resting
	rested  int // keys that have ever begun to rest
	spare   []*MR
	numbers *mrand.ChaCha8
}

// keySlot is a place in the table: free (key 0), valid, or resting (no region).
type keySlot struct {
	key uint32
	r   *region
}

// resting is a key that was valid, and the object that is used again when
// the one cannot be taken for the other any more.
type resting struct {
	key uint32
	mr  *MR
}

const (
	restMax = 64      // how many other keys must end before one can be drawn again
	keyMax  = 1 << 24 // valid keys
	mrBlock = 16      // regions that are made at once
)

// init makes the table ready. The keys follow from the seed.
func (t *keyTable) init(seed [32]byte) {
	t.numbers = mrand.NewChaCha8(seed)
	t.slots = make([]keySlot, 64)
}

// keySeed returns what the keys of a context follow from: chance, or what
// repeats itself in the simulator.
func (c *Config) keySeed() (seed [32]byte) {
	if c.ZeroBased {
		binary.BigEndian.PutUint64(seed[:], c.Key)
		binary.BigEndian.PutUint32(seed[8:], c.Epoch)
		return seed
	}
	_, _ = rand.Read(seed[:]) // never fails
	return seed
}

// lookup returns the region with this key, or nil.
func (t *keyTable) lookup(key uint32) *region {
	slots := t.slots
	for i := key; ; i++ {
		s := &slots[i&uint32(len(slots)-1)]
		if s.key == key {
			return s.r // nil if key is 0
		}
		if s.key == 0 {
			return nil
		}
	}
}

// find returns the slot of key, or the free one where it would be.
func (t *keyTable) find(key uint32) uint32 {
	mask := uint32(len(t.slots) - 1)
	i := key & mask
	for t.slots[i].key != key && t.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	return i
}

// add gives r a key. false: there are too many.
func (t *keyTable) add(r *region) bool {
	if t.used >= keyMax {
		return false
	}
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	for {
		key := uint32(t.numbers.Uint64())
		if i := t.find(key); key != 0 && t.slots[i].key == 0 {
			t.slots[i] = keySlot{key, r}
			t.used++
			r.key = key
			return true
		}
	}
}

func (t *keyTable) grow() {
	old := t.slots
	t.slots = make([]keySlot, 2*len(old))
	for _, s := range old {
		if s.key != 0 {
			t.slots[t.find(s.key)] = s
		}
	}
}

// end makes the key of r invalid. mr is what takeMR may return once the key
// has rested, if it is not nil.
func (t *keyTable) end(r *region, mr *MR) {
	t.slots[t.find(r.key)].r = nil
	oldest := &t.rest[t.rested%restMax]
	if oldest.key != 0 {
		t.free(t.find(oldest.key))
	}
	if oldest.mr != nil {
		*oldest.mr = MR{}
		t.spare = append(t.spare, oldest.mr)
	}
	*oldest = resting{r.key, mr}
	t.rested++
	r.key = 0
}

// free empties slot i and moves what was displaced by it closer to home.
func (t *keyTable) free(i uint32) {
	mask := uint32(len(t.slots) - 1)
	for j := (i + 1) & mask; t.slots[j].key != 0; j = (j + 1) & mask {
		if home := t.slots[j].key & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = keySlot{}
	t.used--
}

// takeMR returns an MR to fill: one that was used before if there is one, so
// that registering for the time of one message does not allocate.
func (t *keyTable) takeMR() *MR {
	if len(t.spare) == 0 {
		block := make([]MR, mrBlock)
		for i := range block {
			t.spare = append(t.spare, &block[i])
		}
	}
	n := len(t.spare) - 1
	m := t.spare[n]
	t.spare = t.spare[:n]
	return m
}
