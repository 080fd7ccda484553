package p2p

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// code returns that of an error, or 0.
func code(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}

// TestLost_thisRankWithSeveralGoroutines: the word that this rank is taken for lost
// comes while a goroutine is inside, and ends the rank there.
func TestLost_thisRankWithSeveralGoroutines(t *testing.T) {
	w := newCrew(t, 2, Config{Threads: true})
	ep := w.eps[1]
	r := ep.Irecv(word(0, 1), nil)
	b := binary.BigEndian.AppendUint32(make([]byte, headerLen), 1)
	(&header{kind: kindLost}).put(b)
	ep.Enter()
	ep.poller.arrived(b)
	ep.Leave()
	if _, err := r.Wait(); code(err) != PeerLost {
		t.Errorf("the receive ends with %v", err)
	}
}

// TestAccept_sendHasFailed takes a large message of the own rank out of the queue,
// and lets its send fail before it is received.
func TestAccept_sendHasFailed(t *testing.T) {
	for _, used := range []bool{false, true} {
		ep := newEnd(t)
		ep.Inside().Register(2, []int32{0, 1}, 8)
		env := match.Envelope{Context: 2, Source: 0, Tag: 7}
		send := ep.Isend(env, 0, make([]byte, 100_000))
		m, _, found, err := ep.Improbe(env)
		if err != nil || !found {
			t.Fatal(found, err)
		}
		ep.Revoke(2)
		if _, err := send.Wait(); code(err) != Revoked {
			t.Errorf("the send ends with %v", err)
		}
		var other *Request
		if used { // the same request, for something else
			other = ep.Isend(match.Envelope{Source: 0, Tag: 8}, 0, make([]byte, 100_000))
		}
		if _, err := ep.Accept(m, make([]byte, 100_000)).Wait(); code(err) != Revoked {
			t.Errorf("the receive ends with %v", err)
		}
		if used && other.Done() {
			t.Error("the receive has ended a send that is not its own")
		}
	}
}

// TestFailPeer_manyThatWait fails sends that wait for room and leaves others in
// their order.
func TestFailPeer_manyThatWait(t *testing.T) {
	ep := newEnd(t)
	const n = 20_000
	var lost, left []*Request
	for range n {
		lost = append(lost, ep.Isend(match.Envelope{Tag: 1}, 1, make([]byte, 1000)))
		left = append(left, ep.Isend(match.Envelope{Tag: 2}, 2, make([]byte, 1000)))
	}
	ep.Enter()
	ep.failures.failPeer(1, &Error{Code: PeerLost, Peer: 1})
	ep.Leave()
	for i, r := range lost {
		if !r.Done() {
			t.Fatalf("send %d to the lost rank still waits in state %d", i, r.state)
		}
	}
	q := ep.peers[2].pending.head
	for i, r := range left {
		if r.state != sendEager {
			continue // it went out
		}
		if q != r {
			t.Fatalf("send %d to the other rank has lost its place", i)
		}
		q = q.next
	}
	for ; q != nil; q = q.next {
		if q.state != sendNotice {
			t.Fatalf("request in state %d at the end of the queue", q.state)
		}
	}
}
