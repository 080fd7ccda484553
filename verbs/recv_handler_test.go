package verbs_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// picky takes messages that begin with 1.
type picky struct{ taken []byte }

func (p *picky) HandleRecv(_ *verbs.AH, b []byte) bool {
	if b[0] != 1 {
		return false
	}
	p.taken = append(p.taken, b...)
	return true
}

// What a handler takes uses no receive. It is not offered what would overtake a
// message that has its receive and was not polled yet, nor what is not in one piece.
func TestRecvHandler(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	p := &picky{}
	b.qp.SetRecvHandler(p)
	for i := range 3 {
		b.recv(t, i, 9000)
	}
	send := func(wr verbs.SendWR) {
		t.Helper()
		wr.Opcode, wr.AH = verbs.OpSend, a.ah
		wr.Flags |= verbs.Signaled
		must(t, a.qp.PostSend(&wr))
		if wc := wait(a, b, a.scq); wc.Status != verbs.Success { // acknowledged, so it was taken in
			t.Fatalf("the send ended with %v", wc.Status)
		}
	}
	short := func(msg ...byte) verbs.SendWR { return verbs.SendWR{Flags: verbs.Inline, InlineData: msg} }
	received := func(want int) {
		t.Helper()
		var wcs [8]verbs.WC
		if n := b.rcq.Poll(wcs[:]); n != want {
			t.Fatalf("%d messages met receives, want %d", n, want)
		}
	}
	send(short(1, 10))
	send(short(1, 11))
	received(0)
	send(short(2, 12))
	send(short(1, 13)) // the one before was not polled yet
	received(2)
	a.mr.Bytes()[0] = 1
	send(verbs.SendWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{a.mr.SGE(0, 8000)}})
	received(1)
	send(short(1, 14)) // no receive is left
	received(0)
	if want := []byte{1, 10, 1, 11, 1, 14}; !bytes.Equal(p.taken, want) {
		t.Errorf("taken: %v, want %v", p.taken, want)
	}
	if st := b.qp.Stats; st.Recvs != 6 || st.RecvBytes != 5*2+8000 {
		t.Errorf("%d messages of %d bytes are counted", st.Recvs, st.RecvBytes)
	}
}

func TestRecvHandler_onlyRD(t *testing.T) {
	a, _ := newPair(t, 9000, 64)
	_, err := a.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: a.scq, RecvCQ: a.rcq, RecvHandler: &picky{}})
	if !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("a UD queue pair with a handler: %v", err)
	}
}
