package verbs

import (
	"errors"
	"testing"
)

// newSharedQP returns a queue pair that receives from s, with a completion
// queue of depth.
func newSharedQP(t *testing.T, s *SRQ, depth int) *QP {
	t.Helper()
	q := newQP(s.pd)
	var err error
	q.recvCQ, err = s.pd.ctx.CreateCQ(CQInit{Depth: depth})
	ok(t, err)
	q.srq = s
	s.users++
	return q
}

func newSRQ(t *testing.T, init SRQInit) *SRQ {
	t.Helper()
	s, err := newPD(t, newContext()).CreateSRQ(init)
	ok(t, err)
	return s
}

func fill(t *testing.T, s *SRQ, n int) {
	t.Helper()
	for range n {
		ok(t, s.PostRecv(&RecvWR{WRID: uint64(s.Len())}))
	}
}

func TestSRQ_queuePairsTakeTurns(t *testing.T) {
	s := newSRQ(t, SRQInit{MaxWR: 4})
	a, b := newSharedQP(t, s, 8), newSharedQP(t, s, 8)
	fill(t, s, 4)
	if err := s.PostRecv(&RecvWR{}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("a fifth receive: %v", err)
	}
	for i, q := range []*QP{a, b, b, a} {
		if q.recvsLeft() != 4-i {
			t.Errorf("%d receives are left of %d", q.recvsLeft(), 4-i)
		}
		e, got := q.takeRecv()
		if !got || e.wrid != uint64(i) {
			t.Fatalf("receive %d: %+v, %v", i, e, got)
		}
	}
	if _, got := a.takeRecv(); got || s.Len() != 0 || a.recvsLeft() != 0 {
		t.Error("took from an empty queue")
	}
	if a.recvCQ.reserved != 2 || b.recvCQ.reserved != 2 {
		t.Errorf("%d and %d places are reserved, want 2 and 2", a.recvCQ.reserved, b.recvCQ.reserved)
	}
}

// With Latest the receive that was posted last is taken first, also when the ring has grown meanwhile.
func TestSRQ_latest(t *testing.T) {
	s := newSRQ(t, SRQInit{MaxWR: 40, Latest: true})
	q := newSharedQP(t, s, 64)
	fill(t, s, 3)
	for _, want := range []uint64{2, 1} {
		if first := s.rq.first().wrid; first != want {
			t.Errorf("the next receive is %d, want %d", first, want)
		}
		if e, got := q.takeRecv(); !got || e.wrid != want {
			t.Fatalf("receive %+v, %v, want %d", e, got, want)
		}
	}
	fill(t, s, 39)
	for want := uint64(39); s.Len() > 0; want-- {
		if e, got := q.takeRecv(); !got || e.wrid != want {
			t.Fatalf("receive %+v, %v, want %d", e, got, want)
		}
	}
}

// A receive stays where it is while its completion would find no place.
func TestSRQ_fullCompletionQueue(t *testing.T) {
	s := newSRQ(t, SRQInit{})
	q := newSharedQP(t, s, 1)
	fill(t, s, 2)
	if q.recvsLeft() != 1 {
		t.Errorf("%d receives can be taken with one place", q.recvsLeft())
	}
	if _, got := q.takeRecv(); !got {
		t.Fatal("the first was refused")
	}
	if _, got := q.takeRecv(); got || s.Len() != 1 || q.recvsLeft() != 0 {
		t.Fatal("a receive was taken that cannot complete")
	}
	q.recvCQ.release()
	if _, got := q.takeRecv(); !got {
		t.Error("there is a place again, but no receive")
	}
}

// The limit event fires once, then has to be armed again (ibv_modify_srq(3)).
func TestSRQ_limit(t *testing.T) {
	s := newSRQ(t, SRQInit{MaxWR: 16, Limit: 3})
	q := newSharedQP(t, s, 64)
	events := func() (n int) {
		for {
			e, got := s.pd.ctx.GetAsyncEvent()
			if !got {
				return n
			}
			if e.Type != EventSRQLimitReached || e.SRQ != s {
				t.Errorf("%+v", e)
			}
			n++
		}
	}
	take := func() { _, _ = q.takeRecv() }
	fill(t, s, 5)
	for i, want := range []int{0, 0, 1, 0, 0} { // 4, 3, 2, 1 and 0 are left
		if take(); events() != want {
			t.Errorf("after %d were taken: want %d events", i+1, want)
		}
	}
	fill(t, s, 5)
	ok(t, s.Modify(2))
	for i, want := range []int{0, 0, 0, 1, 0} {
		if take(); events() != want {
			t.Errorf("armed again, after %d were taken: want %d events", i+1, want)
		}
	}
	if ok(t, s.Modify(1)); events() != 1 {
		t.Error("armed too late: no event")
	}
	fill(t, s, 2)
	ok(t, s.Modify(2))
	ok(t, s.Modify(0))
	if take(); events() != 0 {
		t.Error("an event though disarmed")
	}
	for _, bad := range []int{-1, 17} {
		if err := s.Modify(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("limit %d: %v", bad, err)
		}
	}
}

func TestSRQ_Destroy(t *testing.T) {
	s := newSRQ(t, SRQInit{})
	q := newSharedQP(t, s, 1)
	fill(t, s, 1)
	if err := s.Destroy(); !errors.Is(err, ErrBusy) {
		t.Errorf("Destroy in use: %v", err)
	}
	s.users--
	q.srq = nil
	ok(t, s.Destroy())
	if err := s.Destroy(); !errors.Is(err, ErrInvalid) {
		t.Errorf("Destroy twice: %v", err)
	}
	if err := errors.Join(s.PostRecv(&RecvWR{}), s.Modify(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("afterwards: %v", err)
	}
	pd := newPD(t, newContext())
	for _, bad := range []SRQInit{{MaxWR: -1}, {MaxWR: maxQueue + 1}, {Limit: -1}, {MaxWR: 4, Limit: 5}} {
		if _, err := pd.CreateSRQ(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
