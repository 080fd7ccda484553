package verbs_test

import (
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// sharing gives b a shared receive queue, which its reliable queue pair and an
// unreliable one receive from.
func sharing(t *testing.T, a, b *end, init verbs.SRQInit) (s *verbs.SRQ, ud *verbs.QP, udCQ *verbs.CQ) {
	t.Helper()
	for _, e := range []*end{a, b} {
		e.qp.Destroy() // and with it the associations
	}
	s, err := b.pd.CreateSRQ(init)
	must(t, err)
	b.qp, err = b.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: b.scq, RecvCQ: b.rcq, SRQ: s})
	must(t, err)
	a.qp, err = a.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: a.scq, RecvCQ: a.rcq})
	must(t, err)
	for _, e := range []*end{a, b} {
		e.ah, err = e.pd.CreateAH(e.ah.Remote())
		must(t, err)
	}
	udCQ, err = b.ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	ud, err = b.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: b.scq, RecvCQ: udCQ, SRQ: s})
	must(t, err)
	return s, ud, udCQ
}

func postShared(t *testing.T, b *end, s *verbs.SRQ, wrid uint64) {
	t.Helper()
	must(t, s.PostRecv(&verbs.RecvWR{WRID: wrid, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{b.mr.SGE(int(wrid)*100, 100)}}))
}

func TestSRQ_servesAllQueuePairs(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	s, ud, udCQ := sharing(t, a, b, verbs.SRQInit{Limit: 2})
	aUD, err := a.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: a.scq, RecvCQ: a.rcq})
	must(t, err)
	for i := range uint64(4) {
		postShared(t, b, s, i)
	}
	wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: []byte("x"), AH: a.ah, RemoteQPN: ud.Num()}
	for i, c := range []struct {
		from *verbs.QP
		cq   *verbs.CQ
		to   *verbs.QP
	}{{a.qp, b.rcq, b.qp}, {aUD, udCQ, ud}, {aUD, udCQ, ud}, {a.qp, b.rcq, b.qp}} {
		must(t, c.from.PostSend(&wr))
		if wc := wait(a, b, c.cq); wc.Status != verbs.Success || wc.WRID != uint64(i) || wc.QPNum != c.to.Num() {
			t.Errorf("message %d: %+v", i, wc)
		}
		e, got := b.ctx.GetAsyncEvent()
		if want := i == 2; got != want || got && (e.Type != verbs.EventSRQLimitReached || e.SRQ != s) {
			t.Errorf("message %d: event %+v, %v", i, e, got)
		}
	}
	if err := b.qp.PostRecv(&verbs.RecvWR{}); err == nil {
		t.Error("a queue pair with a shared queue took a receive of its own")
	}
	b.qp.Destroy()
	if s.Destroy() == nil {
		t.Error("the queue was destroyed under a queue pair")
	}
	ud.Destroy()
	must(t, s.Destroy())
}

// A message that finds the shared queue empty waits until a receive is posted
// there.
func TestSRQ_messagesWaitForReceives(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	s, _, _ := sharing(t, a, b, verbs.SRQInit{})
	for i := range 5 {
		wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: []byte{byte(i)}, AH: a.ah}
		must(t, a.qp.PostSend(&wr))
	}
	for range 100 {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
	}
	for i := range 5 {
		postShared(t, b, s, uint64(i))
		if wc := wait(a, b, b.rcq); wc.Status != verbs.Success || b.mr.Bytes()[100*i] != byte(i) {
			t.Fatalf("message %d: %+v", i, wc)
		}
	}
}

// An error of one queue pair takes nothing from the others.
func TestSRQ_survivesAQueuePairInErr(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	s, ud, _ := sharing(t, a, b, verbs.SRQInit{})
	postShared(t, b, s, 1)
	must(t, ud.Modify(verbs.StateErr))
	if e, got := b.ctx.GetAsyncEvent(); !got || e.Type != verbs.EventQPLastWQEReached || e.QP != ud {
		t.Errorf("event %+v, %v", e, got)
	}
	if s.Len() != 1 {
		t.Fatal("the shared receive was flushed")
	}
	send(t, a, 0, a.mr.SGE(0, 3))
	if wc := wait(a, b, b.rcq); wc.Status != verbs.Success || wc.WRID != 1 {
		t.Errorf("%+v", wc)
	}
}
