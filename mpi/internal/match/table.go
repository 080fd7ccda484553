package match

// table is a hash table of lists. A list holds the entries of one bucket in
// the order in which they came; patterns that collide share a list. The table
// doubles when it holds more than two entries per bucket and never shrinks, so
// a program in its steady state allocates nothing.
type table[T any] struct {
	buckets []list[T] // a power of two of them, nil while nothing was ever added
	count   int
}

type list[T any] struct{ head, tail *Entry[T] }

const firstBuckets = 64

// bucket mixes all bits of p into an index: ranks and tags are small numbers.
func (t *table[T]) bucket(p Envelope) *list[T] {
	const golden = 0x9e3779b97f4a7c15 // 2^64 / golden ratio (Knuth, 6.4)
	h := (uint64(uint32(p.Source))<<32|uint64(uint32(p.Tag)))*golden ^ uint64(p.Context)
	h *= golden
	return &t.buckets[(h>>32)&uint64(len(t.buckets)-1)]
}

// push adds e, chained through its links of number link, under the pattern p.
func (t *table[T]) push(e *Entry[T], link int, p Envelope) {
	if t.count >= 2*len(t.buckets) {
		t.grow(link)
	}
	t.bucket(p).push(e, link)
	t.count++
}

// first returns the oldest entry under p. Entries that collide are told apart
// by their envelopes: those of messages have values where p may say Any, and
// receives of one table say it where p does.
func (t *table[T]) first(link int, p Envelope) *Entry[T] {
	for e := t.bucket(p).head; e != nil; e = e.links[link].next {
		if e.Context == p.Context && (e.Source == p.Source || p.Source == Any) && (e.Tag == p.Tag || p.Tag == Any) {
			return e
		}
	}
	return nil
}

func (t *table[T]) remove(e *Entry[T], link int) {
	at := &e.links[link]
	l := at.in
	if at.prev != nil {
		at.prev.links[link].next = at.next
	} else {
		l.head = at.next
	}
	if at.next != nil {
		at.next.links[link].prev = at.prev
	} else {
		l.tail = at.prev
	}
	*at = links[T]{}
	t.count--
}

func (l *list[T]) push(e *Entry[T], link int) {
	e.links[link] = links[T]{prev: l.tail, in: l}
	if l.tail != nil {
		l.tail.links[link].next = e
	} else {
		l.head = e
	}
	l.tail = e
}

// grow doubles the table. Entries under one pattern were in one bucket and are
// moved front to back, so their order stays.
func (t *table[T]) grow(link int) {
	old := t.buckets
	t.buckets = make([]list[T], max(firstBuckets, 2*len(old)))
	for i := range old {
		for e := old[i].head; e != nil; {
			next := e.links[link].next
			// Receives use number 0 only and are filed as they are, messages
			// use number k for kind k: e.as(link) is right for both.
			t.bucket(e.as(link)).push(e, link)
			e = next
		}
	}
}
