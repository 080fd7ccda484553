package verbs_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// bind binds a window of b to [off, off+n) of mr and returns its key.
func bind(t *testing.T, b *end, w *verbs.MW, mr *verbs.MR, off, n int, access verbs.Access) uint32 {
	t.Helper()
	must(t, b.qp.PostSend(&verbs.SendWR{
		WRID: 9, Opcode: verbs.OpBindMW, Flags: verbs.Signaled,
		Bind: &verbs.Bind{MW: w, MR: mr, Offset: off, Length: n, Access: access},
	}))
	if wc := poll(b.scq); wc.Status != verbs.Success || wc.WRID != 9 || wc.Opcode != verbs.OpBindMW {
		t.Fatalf("%+v", wc)
	}
	return w.RKey()
}

func poll(q *verbs.CQ) (wc verbs.WC) {
	var one [1]verbs.WC
	q.Poll(one[:])
	return one[0]
}

// window is a region of b among canaries, and a window of a part of it.
func window(t *testing.T, b *end, access verbs.Access) (memory []byte, mr *verbs.MR, w *verbs.MW, rkey uint32) {
	t.Helper()
	memory = bytes.Repeat([]byte{0xc5}, 3000)
	mr, err := b.pd.RegMR(memory[1000:2000], verbs.LocalWrite|verbs.MWBind)
	must(t, err)
	w, err = b.pd.AllocMW()
	must(t, err)
	return memory, mr, w, bind(t, b, w, mr, 100, 50, access)
}

// A peer reaches what the window shows of a region that grants nothing itself.
func TestMW_isWrittenTo(t *testing.T) {
	a, b := newPair(t, 9000, 4096)
	fillRandom(a.mr.Bytes())
	memory, mr, _, rkey := window(t, b, verbs.RemoteWrite)
	write(t, a, a.mr.SGE(0, 50), mr.Addr()+100, rkey)
	if wc := wait(a, b, a.scq); wc.Status != verbs.Success {
		t.Fatalf("%+v", wc)
	}
	want := bytes.Repeat([]byte{0xc5}, 3000)
	copy(want[1100:], a.mr.Bytes()[:50])
	if !bytes.Equal(memory, want) {
		t.Error("not what was written, or more")
	}
}

// Beyond the window, without the right, or after its end, nothing changes.
func TestMW_refuses(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, a, b *end, mr *verbs.MR, w *verbs.MW, rkey uint32) (status verbs.Status){
		"before it": func(t *testing.T, a, b *end, mr *verbs.MR, _ *verbs.MW, rkey uint32) verbs.Status {
			write(t, a, a.mr.SGE(0, 2), mr.Addr()+99, rkey)
			return wait(a, b, a.scq).Status
		},
		"behind it": func(t *testing.T, a, b *end, mr *verbs.MR, _ *verbs.MW, rkey uint32) verbs.Status {
			write(t, a, a.mr.SGE(0, 2), mr.Addr()+149, rkey)
			return wait(a, b, a.scq).Status
		},
		"with the key of its region": func(t *testing.T, a, b *end, mr *verbs.MR, _ *verbs.MW, _ uint32) verbs.Status {
			write(t, a, a.mr.SGE(0, 2), mr.Addr()+100, mr.RKey())
			return wait(a, b, a.scq).Status
		},
		"read": func(t *testing.T, a, b *end, mr *verbs.MR, _ *verbs.MW, rkey uint32) verbs.Status {
			wr := verbs.SendWR{Opcode: verbs.OpRDMARead, AH: a.ah, RKey: rkey, RemoteAddr: mr.Addr() + 100, NumSGE: 1}
			wr.SGL[0] = a.mr.SGE(0, 2)
			must(t, a.qp.PostSend(&wr))
			return wait(a, b, a.scq).Status
		},
		"after LOCAL_INV": func(t *testing.T, a, b *end, mr *verbs.MR, _ *verbs.MW, rkey uint32) verbs.Status {
			must(t, b.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpLocalInv, Flags: verbs.Signaled, InvKey: rkey}))
			if wc := poll(b.scq); wc.Status != verbs.Success || wc.Opcode != verbs.OpLocalInv {
				t.Errorf("%+v", wc)
			}
			write(t, a, a.mr.SGE(0, 2), mr.Addr()+100, rkey)
			return wait(a, b, a.scq).Status
		},
		"after another bind": func(t *testing.T, a, b *end, mr *verbs.MR, w *verbs.MW, rkey uint32) verbs.Status {
			must(t, b.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpLocalInv, InvKey: rkey}))
			bind(t, b, w, mr, 100, 50, verbs.RemoteWrite)
			write(t, a, a.mr.SGE(0, 2), mr.Addr()+100, rkey)
			return wait(a, b, a.scq).Status
		},
		"through another queue pair": func(t *testing.T, a, b *end, mr *verbs.MR, _ *verbs.MW, rkey uint32) verbs.Status {
			far, err := b.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: b.scq, RecvCQ: b.rcq})
			must(t, err)
			near, err := a.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: a.scq, RecvCQ: a.rcq})
			must(t, err)
			wr := verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord, AH: a.ah, RemoteQPN: far.Num(), RKey: rkey, RemoteAddr: mr.Addr() + 100, NumSGE: 1}
			wr.SGL[0] = a.mr.SGE(0, 2)
			must(t, near.PostSend(&wr))
			for far.Stats.Refused == 0 {
				a.ctx.Engine().Step()
				b.ctx.Engine().Step()
			}
			return verbs.RemAccessErr // of which UD tells nobody
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t, 9000, 4096)
			memory, mr, w, rkey := window(t, b, verbs.RemoteWrite)
			if status := ask(t, a, b, mr, w, rkey); status != verbs.RemAccessErr {
				t.Errorf("status %v", status)
			}
			if !bytes.Equal(memory, bytes.Repeat([]byte{0xc5}, 3000)) {
				t.Error("memory changed")
			}
		})
	}
}

// Send with Invalidate ends a window; the receiver is told which, and its
// region is free.
func TestMW_sendWithInvalidate(t *testing.T) {
	a, b := newPair(t, 9000, 4096)
	_, mr, w, rkey := window(t, b, verbs.RemoteRead)
	if err := mr.Dereg(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("Dereg under a window: %v", err)
	}
	b.recv(t, 0, 100)
	must(t, a.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSendWithInv, Flags: verbs.Inline, InlineData: []byte("bye"), AH: a.ah, InvKey: rkey}))
	if wc := wait(a, b, b.rcq); wc.Status != verbs.Success || wc.Flags != verbs.WCWithInv || wc.InvKey != rkey || wc.ByteLen != 3 {
		t.Errorf("%+v", wc)
	}
	if w.RKey() != 0 {
		t.Error("the window is still bound")
	}
	must(t, mr.Dereg())
}

// A region ends by Send with Invalidate only if it was registered for that.
func TestMR_sendWithInvalidate(t *testing.T) {
	for _, access := range []verbs.Access{verbs.RemoteInvalidate, 0} {
		a, b := newPair(t, 9000, 4096)
		mr, err := b.pd.RegMR(make([]byte, 100), access|verbs.LocalWrite|verbs.RemoteWrite)
		must(t, err)
		b.recv(t, 0, 100)
		must(t, a.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSendWithInv, Flags: verbs.Inline | verbs.Signaled, AH: a.ah, InvKey: mr.RKey()}))
		wc := wait(a, b, b.rcq)
		if access == 0 {
			if wc.Status == verbs.Success || mr.RKey() == 0 {
				t.Errorf("not registered for that: %+v, key %#x", wc, mr.RKey())
			}
			if e, got := b.ctx.GetAsyncEvent(); !got || e.Type != verbs.EventQPAccessErr || e.QP != b.qp || e.AH != b.ah {
				t.Errorf("event %+v, %v", e, got)
			}
			if wc := wait(a, b, a.scq); wc.Status != verbs.Success && wc.Status != verbs.RemAccessErr {
				t.Errorf("the peer: %+v", wc)
			}
			continue
		}
		if wc.Status != verbs.Success || mr.RKey() != 0 || mr.LKey() != 0 {
			t.Errorf("%+v, key %#x", wc, mr.RKey())
		}
		must(t, mr.Dereg())
	}
}

// A bind that cannot be makes a failed completion, signaled or not.
func TestMW_bindError(t *testing.T) {
	_, b := newPair(t, 9000, 4096)
	w, err := b.pd.AllocMW()
	must(t, err)
	must(t, b.qp.PostSend(&verbs.SendWR{WRID: 3, Opcode: verbs.OpBindMW, Bind: &verbs.Bind{MW: w, MR: b.mr, Length: 10}}))
	if wc := poll(b.scq); wc.Status != verbs.MWBindErr || wc.WRID != 3 {
		t.Errorf("%+v", wc)
	}
	must(t, b.qp.PostSend(&verbs.SendWR{WRID: 4, Opcode: verbs.OpLocalInv, InvKey: 0x1234}))
	if wc := poll(b.scq); wc.Status != verbs.LocProtErr || wc.WRID != 4 {
		t.Errorf("%+v", wc)
	}
}
