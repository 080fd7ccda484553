package p2p

// requestQueue is a first-in-first-out list of requests, chained through
// Request.next.
type requestQueue struct{ head, tail *Request }

func (q *requestQueue) push(r *Request) {
	r.next = nil
	if q.tail != nil {
		q.tail.next = r
	} else {
		q.head = r
	}
	q.tail = r
}

func (q *requestQueue) pop() {
	r := q.head
	q.head = r.next
	if q.head == nil {
		q.tail = nil
	}
	r.next = nil
}

// pushFront puts r back to where pop has taken it from.
func (q *requestQueue) pushFront(r *Request) {
	if r.next = q.head; r.next == nil {
		q.tail = r
	}
	q.head = r
}

// fail takes out the requests for which why has an error, and fails them.
func (q *requestQueue) fail(why func(*Request) error) {
	old := *q
	*q = requestQueue{}
	for r := old.head; r != nil; {
		next := r.next
		if err := why(r); err != nil {
			r.next = nil
			r.fail(err)
		} else {
			q.push(r)
		}
		r = next
	}
}

// remove takes r out wherever it is. It is for the failure of a peer, and
// walks the queue.
func (q *requestQueue) remove(r *Request) {
	old := *q
	*q = requestQueue{}
	for at := old.head; at != nil; {
		next := at.next
		if at.next = nil; at != r {
			q.push(at)
		}
		at = next
	}
}
