// Package addrtable finds what an endpoint knows of a peer by the hash of its address.
package addrtable

// Table is a hash table with linear probing over a power of two, at most three quarters
// full. It knows hashes and not what they are of, so that no key is kept twice and none
// is compared or hashed through an interface: the caller that looks for a key compares it.
//
//	for p, at := t.First(hash); p != nil; p, at = t.Next(hash, at) {
//		if p.key == key {
//			return p
//		}
//	}
//
// Home is in the upper half of a hash. The zero Table is empty.
type Table[V any] struct {
	slots []slot[V]
	n     int
}

type slot[V any] struct {
	hash  uint64
	value *V // nil: the slot is free
}

// Len returns how many values there are.
func (t *Table[V]) Len() int { return t.n }

func (t *Table[V]) home(hash uint64) int { return int(hash>>32) & (len(t.slots) - 1) }

// First returns a value with a hash and where it is, or nil.
func (t *Table[V]) First(hash uint64) (value *V, at int) {
	if t.n == 0 {
		return nil, 0
	}
	return t.from(hash, t.home(hash))
}

// Next returns the next value with the hash behind the one at a place, or nil.
func (t *Table[V]) Next(hash uint64, at int) (value *V, next int) {
	return t.from(hash, (at+1)&(len(t.slots)-1))
}

func (t *Table[V]) from(hash uint64, at int) (*V, int) {
	for t.slots[at].value != nil && t.slots[at].hash != hash {
		at = (at + 1) & (len(t.slots) - 1)
	}
	return t.slots[at].value, at
}

// Add enters a value.
func (t *Table[V]) Add(hash uint64, value *V) {
	if 4*(t.n+1) > 3*len(t.slots) {
		old := t.slots
		t.slots = make([]slot[V], max(16, 2*len(old)))
		for i := range old {
			if old[i].value != nil {
				t.put(old[i])
			}
		}
	}
	t.put(slot[V]{hash, value})
	t.n++
}

func (t *Table[V]) put(s slot[V]) {
	at := t.home(s.hash)
	for t.slots[at].value != nil {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = s
}

// Remove takes out a value that was added with a hash, if it is there, and moves those
// behind it up, so that no search ends at the gap.
func (t *Table[V]) Remove(hash uint64, value *V) {
	found, gap := t.First(hash)
	for found != value && found != nil {
		found, gap = t.Next(hash, gap)
	}
	if found == nil {
		return
	}
	mask := len(t.slots) - 1
	for i := (gap + 1) & mask; t.slots[i].value != nil; i = (i + 1) & mask {
		if (i-t.home(t.slots[i].hash))&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = slot[V]{}
	t.n--
}
