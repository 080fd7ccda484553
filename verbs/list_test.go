package verbs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// A list is posted in its order, up to the first request that is wrong, and the
// number tells which that is.
func TestPostList(t *testing.T) {
	var x struct{ a, b *end }
	x.a, x.b = newPair(t, 1500, 4096)
	recvs := make([]verbs.RecvWR, 4)
	for i := range recvs {
		recvs[i] = verbs.RecvWR{WRID: uint64(10 + i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{x.b.mr.SGE(64*i, 64)}}
	}
	recvs[3].NumSGE = 0 // though there is an element
	if n, err := x.b.qp.PostRecvList(recvs); n != 3 || !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), "NumSGE") {
		t.Fatalf("%d receives were posted: %v", n, err)
	}
	sends := make([]verbs.SendWR, 4)
	for i := range sends {
		sends[i] = verbs.SendWR{WRID: uint64(i), Opcode: verbs.OpSend, Flags: verbs.Signaled | verbs.Inline, InlineData: []byte{byte(i)}, AH: x.a.ah}
	}
	sends[2].Opcode = verbs.OpSendWithImm
	if n, err := x.a.qp.PostSendList(sends); n != 2 || !errors.Is(err, verbs.ErrInvalid) {
		t.Fatalf("%d requests were posted: %v", n, err)
	}
	if n, err := x.a.qp.PostSendList(sends[3:]); n != 1 || err != nil {
		t.Fatalf("%d requests were posted: %v", n, err)
	}
	if n, err := x.a.qp.PostSendList(nil); n != 0 || err != nil {
		t.Fatalf("%d requests were posted: %v", n, err)
	}
	for i, want := range []byte{0, 1, 3} {
		wc := wait(x.a, x.b, x.b.rcq)
		if wc.WRID != uint64(10+i) || wc.ByteLen != 1 || x.b.mr.Bytes()[64*i] != want {
			t.Errorf("message %d: %+v, %d", i, wc, x.b.mr.Bytes()[64*i])
		}
		if wc := wait(x.a, x.b, x.a.scq); wc.WRID != uint64(want) {
			t.Errorf("completion %d: %+v", i, wc)
		}
	}
}

// The same at a shared receive queue.
func TestPostList_srq(t *testing.T) {
	_, b := newPair(t, 1500, 4096)
	pd, err := b.ctx.AllocPD()
	must(t, err)
	mr, err := pd.RegMR(make([]byte, 64), verbs.LocalWrite)
	must(t, err)
	srq, err := pd.CreateSRQ(verbs.SRQInit{})
	must(t, err)
	recvs := make([]verbs.RecvWR, 3)
	for i := range recvs {
		recvs[i] = verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{mr.SGE(0, 64)}}
	}
	if n, err := srq.PostRecvList(recvs); n != 3 || err != nil || srq.Len() != 3 {
		t.Errorf("%d receives were posted, %d are there: %v", n, srq.Len(), err)
	}
	recvs[1].SGL[0].LKey++
	if n, err := srq.PostRecvList(recvs); n != 1 || err == nil || srq.Len() != 4 {
		t.Errorf("%d receives were posted, %d are there: %v", n, srq.Len(), err)
	}
}

func TestAllocs_postList(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	sends, recvs := make([]verbs.SendWR, 8), make([]verbs.RecvWR, 8)
	for i := range sends {
		sends[i] = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: []byte("hello"), AH: a.ah}
		recvs[i] = verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{b.mr.SGE(0, 64)}}
	}
	wcs := make([]verbs.WC, 8)
	if n := testing.AllocsPerRun(200, func() {
		if n, err := b.qp.PostRecvList(recvs); n != 8 {
			panic(err)
		}
		if n, err := a.qp.PostSendList(sends); n != 8 {
			panic(err)
		}
		for got := 0; got < 8; got += b.rcq.Poll(wcs) {
			a.ctx.Engine().Step()
			b.ctx.Engine().Step()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
