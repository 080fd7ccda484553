package verbs_test

import (
	"errors"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

func drainEvent(c *verbs.Context) bool {
	e, ok := c.GetAsyncEvent()
	return ok && e.Type == verbs.EventSQDrained
}

// In SQD what has begun ends, what has not waits, and in between is the event.
func TestModify_drains(t *testing.T) {
	a, b := newPair(t, 9000, 1<<20)
	b.recv(t, 0, 100)
	b.recv(t, 0, 100)
	write(t, a, a.mr.SGE(0, 1<<20), b.mr.Addr(), b.mr.RKey()) // goes out in many steps
	must(t, a.qp.Modify(verbs.StateSQD))
	if drainEvent(a.ctx) {
		t.Fatal("drained with a request under way")
	}
	send(t, a, verbs.Signaled, a.mr.SGE(0, 10))
	if wc := wait(a, b, a.scq); wc.Opcode != verbs.OpRDMAWrite || wc.Status != verbs.Success {
		t.Fatalf("%+v", wc)
	}
	if !drainEvent(a.ctx) {
		t.Error("the last request that had begun ended, but no event came")
	}
	for range 100 {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
	}
	if a.scq.Len()+b.rcq.Len() != 0 || drainEvent(a.ctx) {
		t.Error("a request began in SQD")
	}
	must(t, a.qp.Modify(verbs.StateRTS))
	if wc := wait(a, b, b.rcq); wc.ByteLen != 10 {
		t.Errorf("%+v", wc)
	}
	if wc := wait(a, b, a.scq); wc.Opcode != verbs.OpSend || wc.Status != verbs.Success {
		t.Errorf("%+v", wc)
	}
}

// In Err everything that is outstanding is flushed, and what is posted then.
func TestModify_errFlushes(t *testing.T) {
	a, _ := newPair(t, 9000, 64)
	flushed := func(name string, q *verbs.CQ, want int) {
		t.Helper()
		var wcs [8]verbs.WC
		n := q.Poll(wcs[:])
		if n != want {
			t.Errorf("%s: %d completions, want %d", name, n, want)
		}
		for _, wc := range wcs[:n] {
			if wc.Status != verbs.WRFlushErr {
				t.Errorf("%s: %+v", name, wc)
			}
		}
	}
	a.recv(t, 0, 10)
	a.recv(t, 10, 10)
	send(t, a, 0, a.mr.SGE(0, 1))
	must(t, a.qp.Modify(verbs.StateErr))
	flushed("sends", a.scq, 1)
	flushed("receives", a.rcq, 2)
	send(t, a, 0, a.mr.SGE(0, 1))
	a.recv(t, 0, 10)
	flushed("a send posted afterwards", a.scq, 1)
	flushed("a receive posted afterwards", a.rcq, 1)
}

func TestModify_postingNeedsAState(t *testing.T) {
	a, _ := newPair(t, 9000, 64)
	a.qp.Destroy()
	q, err := a.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: a.scq, RecvCQ: a.rcq, Reset: true})
	must(t, err)
	post := func() (send, recv error) {
		wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, AH: a.ah}
		return q.PostSend(&wr), q.PostRecv(&verbs.RecvWR{})
	}
	for _, s := range []verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR} {
		must(t, q.Modify(s))
		send, recv := post()
		if e, ok := errors.AsType[*verbs.StateError](send); !ok || e.From != s {
			t.Errorf("sending in %v: %v", s, send)
		}
		if (recv == nil) != (s != verbs.StateReset) {
			t.Errorf("posting a receive in %v: %v", s, recv)
		}
	}
	must(t, q.Modify(verbs.StateRTS))
	send, recv := post()
	must(t, errors.Join(send, recv))
}
