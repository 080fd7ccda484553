package verbs

import (
	"testing"
)

// localInv posts the end of a key that is not valid: it fails at once, but that
// is told in its turn.
func (p *rcPeer) localInv(wrid uint64, flags SendFlags) {
	p.Helper()
	ok(p, p.q.PostSend(&SendWR{WRID: wrid, Opcode: OpLocalInv, Flags: flags, InvKey: p.rw.RKey() ^ 1}))
}

// A local request completes behind those that were posted before it, and before
// those that were posted behind it.
func TestRC_localInTurn(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	p.localInv(1, Signaled) // nothing is before it
	p.completed(p.scq, statuses{1: LocProtErr})

	p.post(2, OpRDMARead, 8)
	p.localInv(3, Signaled)
	p.post(4, OpSend, 8)
	p.localInv(5, Signaled|Fence)
	p.post(6, OpSend, 8)
	if n := len(p.heard()); n != 2 {
		t.Fatalf("%d messages are sent, and the fence is none", n)
	}
	p.completed(p.scq, nil)
	p.say(p.answer(8))
	p.step()
	p.completed(p.scq, statuses{2: Success, 3: LocProtErr, 4: Success, 5: LocProtErr, 6: Success})
	if n := len(p.heard()); n != 1 {
		t.Fatalf("%d messages are sent behind the fence", n)
	}
}

// What is bound can be named at once, though the queue is busy.
func TestRC_localAtOnce(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	p.s.room = 10
	p.post(1, OpSend, 3000)
	w, err := p.pd.AllocMW()
	ok(t, err)
	ok(t, p.q.PostSend(&SendWR{WRID: 2, Opcode: OpBindMW, Flags: Signaled, Bind: &Bind{MW: w, MR: p.rw, Offset: 8, Length: 8, Access: RemoteWrite}}))
	if w.RKey() == 0 {
		t.Fatal("the window is not bound")
	}
	p.step()
	p.completed(p.scq, nil)
	p.s.grant(1 << 20)
	p.step()
	p.completed(p.scq, statuses{1: Success, 2: Success})
	p.say(p.write(w.RKey(), 8, 8))
	if p.q.State() != StateRTS {
		t.Error("the window is not granted")
	}
}

// In state SQD a local request waits too; a step that completes it has done
// something. In Err it is flushed.
func TestRC_localInStates(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	ok(t, p.q.Modify(StateSQD))
	p.localInv(1, Signaled)
	p.step()
	p.completed(p.scq, nil)
	ok(t, p.q.Modify(StateRTS))
	if p.ctx.Engine().Step() == 0 {
		t.Error("whoever waits for the completion would sleep")
	}
	p.completed(p.scq, statuses{1: LocProtErr})
	p.post(2, OpRDMARead, 8)
	p.localInv(3, 0)
	ok(t, p.q.Modify(StateErr))
	p.localInv(4, 0)
	p.completed(p.scq, statuses{2: WRFlushErr, 3: WRFlushErr, 4: WRFlushErr})
}
