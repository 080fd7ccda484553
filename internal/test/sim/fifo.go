package sim

// fifo is a queue of fixed capacity: a ring of an AF_XDP socket.
type fifo[T any] struct {
	slots []T
	head  int
	n     int
}

func (f *fifo[T]) init(capacity int) { f.slots = make([]T, capacity) }

func (f *fifo[T]) len() int { return f.n }
func (f *fifo[T]) cap() int { return len(f.slots) }

// at returns the i-th element from the head.
func (f *fifo[T]) at(i int) *T {
	i += f.head
	if i >= len(f.slots) {
		i -= len(f.slots)
	}
	return &f.slots[i]
}

// push adds v at the tail. The caller has checked that there is room.
func (f *fifo[T]) push(v T) {
	if f.n == len(f.slots) {
		panic("sim: ring overflow")
	}
	f.n++
	*f.at(f.n - 1) = v
}

// pop takes the head. The caller has checked that there is one.
func (f *fifo[T]) pop() T {
	v := *f.at(0)
	f.drop(1)
	return v
}

func (f *fifo[T]) popLast() T {
	f.n--
	return *f.at(f.n)
}

// drop forgets n elements at the head.
func (f *fifo[T]) drop(n int) {
	f.head += n
	if f.head >= len(f.slots) {
		f.head -= len(f.slots)
	}
	f.n -= n
}

// queue is a queue that grows as needed and keeps its memory.
type queue[T any] struct {
	slots []T
	head  int
}

// all returns what is in the queue, from the head on.
func (q *queue[T]) all() []T { return q.slots[q.head:] }

func (q *queue[T]) push(v ...T) {
	if len(q.slots)+len(v) > cap(q.slots) {
		q.slots = q.slots[:copy(q.slots, q.all())]
		q.head = 0
	}
	q.slots = append(q.slots, v...)
}

// drop forgets n elements at the head.
func (q *queue[T]) drop(n int) {
	if q.head += n; q.head == len(q.slots) {
		q.slots, q.head = q.slots[:0], 0
	}
}

// keep forgets all but n elements at the head.
func (q *queue[T]) keep(n int) { q.slots = q.slots[:q.head+n] }
