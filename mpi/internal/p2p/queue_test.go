package p2p

import "testing"

func TestRequestQueue(t *testing.T) {
	var q requestQueue
	rs := make([]*Request, 4)
	for i := range rs {
		rs[i] = &Request{id: uint32(i)}
		q.push(rs[i])
	}
	want := func(ids ...uint32) {
		t.Helper()
		r := q.head
		for _, id := range ids {
			if r == nil || r.id != id {
				t.Fatalf("the queue does not hold %v", ids)
			}
			r = r.next
		}
		if r != nil || (q.tail == nil) != (len(ids) == 0) || q.tail != nil && q.tail.id != ids[len(ids)-1] {
			t.Fatalf("the queue holds more than %v, or its tail is wrong", ids)
		}
	}
	want(0, 1, 2, 3)
	q.pop()
	want(1, 2, 3)
	q.pushFront(rs[0])
	want(0, 1, 2, 3)
	q.remove(rs[3])
	want(0, 1, 2)
	q.remove(rs[0])
	q.remove(rs[0]) // not there any more
	want(1, 2)
	q.pop()
	q.pop()
	want()
	q.pushFront(rs[2])
	want(2)
}
