package p2p

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

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
	q.push(rs[0])
	q.push(rs[1])
	q.fail(func(r *Request) error {
		if r == rs[0] {
			return errors.New("no")
		}
		return nil
	})
	if want(2, 1); rs[0].state != done || rs[0].err == nil {
		t.Errorf("the request that was to fail is in state %d, with %v", rs[0].state, rs[0].err)
	}
}

// TestPending_peersDoNotWaitForEachOther holds up what goes to one rank and
// sends to another one.
func TestPending_peersDoNotWaitForEachOther(t *testing.T) {
	ep := newEnd(t)
	env := match.Envelope{Source: 0, Tag: 3}
	away := ep.peers[1].qp
	ep.peers[1].qp = nil // no way there yet
	var held []*Request
	for range 3 {
		held = append(held, ep.Isend(env, 1, []byte("held")))
	}
	if r := ep.Isend(env, 2, []byte("free")); !r.Done() {
		t.Error("a message to another rank is held up")
	}
	if ep.out.trySend(env, 1, view{}) {
		t.Error("a message overtakes those that wait")
	}
	for ep.eng.Step() > 0 {
	}
	for _, r := range held {
		if r.Done() {
			t.Error("a message went out without a way")
		}
	}
	ep.peers[1].qp = away
	ep.out.goOn(&ep.peers[1])
	ep.eng.Step()
	for i, r := range held {
		if !r.Done() {
			t.Errorf("message %d still waits", i)
		}
	}
	if ep.out.stuck.head != nil {
		t.Error("a peer is stuck for which nothing waits")
	}
}

// TestPending_orderWhenFull sends more short messages and announcements of long ones
// than the queue pair holds: those that wait keep their order.
func TestPending_orderWhenFull(t *testing.T) {
	a, b := newEnds(t)
	first := match.Envelope{Source: 0, Tag: 1}
	if _, _, sendErr, recvErr := both(t, a.Isend(first, 1, nil), b.Irecv(first, nil)); sendErr != nil || recvErr != nil {
		t.Fatal(sendErr, recvErr)
	}
	env := match.Envelope{Source: 0, Tag: 3}
	const n = 1500
	var sends, receives []*Request
	in := make([][4]byte, n)
	polling := a.poller.polling
	a.poller.polling = true // no steps meanwhile
	for i := range n {
		out := binary.BigEndian.AppendUint32(nil, uint32(i))
		if i%3 == 0 {
			sends = append(sends, a.Issend(env, 1, out))
		} else {
			sends = append(sends, a.Isend(env, 1, out))
		}
	}
	a.poller.polling = polling
	if a.peers[1].pending.head == nil {
		t.Fatal("there is room for all of them")
	}
	for i := range n {
		receives = append(receives, b.Irecv(env, in[i][:]))
	}
	for i := range n {
		_, _, sendErr, err := both(t, sends[i], receives[i])
		if got := binary.BigEndian.Uint32(in[i][:]); got != uint32(i) || err != nil || sendErr != nil {
			t.Fatalf("message %d is number %d: %v, %v", i, got, sendErr, err)
		}
	}
}
