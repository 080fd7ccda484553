// Package match decides which message goes to which receive. MPI's rule (MPI
// 4.1, section 3.5): a message matches the oldest posted receive whose context,
// source and tag fit it, and a receive matches the oldest message that fits.
//
// [Posted] holds receives that wait for a message, [Unexpected] holds messages
// that wait for a receive. Both are pure data structures: no time, no memory
// of their own per entry (entries are embedded in the owner's objects), and
// O(1) for every operation that does not meet a full hash collision, with
// wildcards too. Order across hash tables is kept by a sequence number.
package match

// Any in Envelope.Source or Envelope.Tag of a receive fits every value.
const Any = -1

// Envelope is what matching looks at. Messages have concrete values; receives
// may say Any for the source, the tag or both.
type Envelope struct {
	Context uint32 // communicator, and whether the message is of a collective
	Source  int32
	Tag     int32
}

// The four kinds of patterns: which of the two fields is Any.
const (
	anySource = 1 << iota
	anyTag
	kinds = 4
)

func (p Envelope) kind() int {
	k := 0
	if p.Source == Any {
		k |= anySource
	}
	if p.Tag == Any {
		k |= anyTag
	}
	return k
}

// as returns the pattern of the given kind that fits the concrete envelope p.
func (p Envelope) as(kind int) Envelope {
	if kind&anySource != 0 {
		p.Source = Any
	}
	if kind&anyTag != 0 {
		p.Tag = Any
	}
	return p
}

// Entry is a place in a queue. Embed one in the object that waits and set
// Owner to it. The queue owns the envelope and the links from the moment the
// entry is added until it is matched or removed.
type Entry[T any] struct {
	Envelope
	Owner *T
	seq   uint64
	links [kinds]links[T]
}

// links chain an entry into a list, which is known so that removing needs no
// search.
type links[T any] struct {
	prev, next *Entry[T]
	in         *list[T]
}

// Posted holds the receives that wait. Each is in the one table of its kind;
// an arriving message looks into every table that has entries, which is one
// when no wildcards are about.
//
// The zero value is an empty queue.
type Posted[T any] struct {
	tables [kinds]table[T]
	wild   int // entries in the tables with Any
	seq    uint64
}

// Post adds a receive behind all others.
func (q *Posted[T]) Post(e *Entry[T]) {
	q.seq++
	e.seq = q.seq
	k := e.kind()
	if k != 0 {
		q.wild++
	}
	q.tables[k].push(e, 0, e.Envelope)
}

// Find returns the oldest receive that fits the message m and leaves it in the
// queue, or returns nil.
func (q *Posted[T]) Find(m Envelope) *Entry[T] {
	var best *Entry[T]
	if q.tables[0].count > 0 {
		best = q.tables[0].first(0, m)
	}
	if q.wild == 0 {
		return best
	}
	for k := 1; k < kinds; k++ {
		if q.tables[k].count == 0 {
			continue
		}
		if e := q.tables[k].first(0, m.as(k)); e != nil && (best == nil || e.seq < best.seq) {
			best = e
		}
	}
	return best
}

// Match removes and returns the oldest receive that fits the message m, or
// returns nil.
func (q *Posted[T]) Match(m Envelope) *Entry[T] {
	if t := &q.tables[0]; q.wild == 0 { // as most often
		if t.count == 0 {
			return nil
		}
		e := t.first(0, m)
		if e != nil {
			t.remove(e, 0)
		}
		return e
	}
	e := q.Find(m)
	if e != nil {
		q.Remove(e)
	}
	return e
}

// Remove takes out a receive that waits.
func (q *Posted[T]) Remove(e *Entry[T]) {
	k := e.kind()
	if k != 0 {
		q.wild--
	}
	q.tables[k].remove(e, 0)
}

// Len returns how many receives wait.
func (q *Posted[T]) Len() int {
	n := 0
	for k := range q.tables {
		n += q.tables[k].count
	}
	return n
}

// Unexpected holds the messages that wait. Each is in the tables of all four
// kinds, so that a receive with wildcards finds the oldest one at once too.
//
// The zero value is an empty queue.
type Unexpected[T any] struct {
	tables [kinds]table[T]
}

// Add adds a message behind all others.
func (q *Unexpected[T]) Add(e *Entry[T]) {
	for k := range kinds {
		q.tables[k].push(e, k, e.as(k))
	}
}

// Find returns the oldest message that fits the receive p and leaves it in the
// queue (MPI_Probe), or returns nil.
func (q *Unexpected[T]) Find(p Envelope) *Entry[T] {
	k := p.kind()
	if q.tables[k].count == 0 {
		return nil
	}
	return q.tables[k].first(k, p)
}

// Match removes and returns the oldest message that fits the receive p, or
// returns nil.
func (q *Unexpected[T]) Match(p Envelope) *Entry[T] {
	e := q.Find(p)
	if e != nil {
		q.Remove(e)
	}
	return e
}

// Remove takes out a message that waits.
func (q *Unexpected[T]) Remove(e *Entry[T]) {
	for k := range kinds {
		q.tables[k].remove(e, k)
	}
}

// All returns the messages that wait, in no order.
func (q *Unexpected[T]) All() []*Entry[T] {
	var all []*Entry[T]
	for i := range q.tables[0].buckets {
		for e := q.tables[0].buckets[i].head; e != nil; e = e.links[0].next {
			all = append(all, e)
		}
	}
	return all
}

// Len returns how many messages wait.
func (q *Unexpected[T]) Len() int { return q.tables[0].count }
