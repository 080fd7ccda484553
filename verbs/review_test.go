package verbs_test

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/verbs"
)

// A peer that ends one message twice, and both before what comes before them,
// gets one completion: more would overrun the completion queue.
func TestSend_endsOnceWhateverThePeerSays(t *testing.T) {
	x := newBench(t, 1500, 1, 4096)
	for i := range 4 {
		x.a.recv(t, i*100, 100)
	}
	l := newLiar(t, x)
	seg := func(last bool, mo uint32) ddp.Header {
		return ddp.Header{Last: last, ULP: rdmap.Control(rdmap.Send), MSN: 5, MO: mo}
	}
	l.say(1, seg(false, 0), make([]byte, 10))
	for i := range 20 {
		l.say(2+i, seg(true, 10), make([]byte, 10))
	}
	l.move()
	l.say(0, ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Send), MSN: 4}, nil)
	l.move()
	x.a.qp.Destroy()
	if n := x.a.rcq.Len(); n != 4 {
		t.Errorf("4 receives made %d completions", n)
	}
}

// What is read of memory that is not granted any more is not sent, also when
// the answer shares a datagram with another one.
func TestRDMARead_revokedInASharedDatagram(t *testing.T) {
	x := newBench(t, 1500, 2, 1<<20)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	small := remote(t, b, 64)
	secret := remote(t, b, 64)
	read := func(dst verbs.SGE, mr *verbs.MR) {
		wr := verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, AH: a.ah, RemoteAddr: mr.Addr(), RKey: mr.RKey()}
		wr.NumSGE, wr.SGL = sge(dst)
		must(t, a.qp.PostSend(&wr))
	}
	read(a.mr.SGE(4096, 1<<19), b.mr)
	read(a.mr.SGE(0, 64), small)
	read(a.mr.SGE(64, 64), secret)
	a.ctx.Engine().Step()
	b.ctx.Engine().Step() // the answers wait in line behind the long one
	mem := secret.Bytes()
	must(t, secret.Dereg())
	copy(mem, bytes.Repeat([]byte{0xee}, 64))
	x.run(100 * mono.Millisecond)
	if bytes.Contains(a.mr.Bytes()[:256], []byte{0xee}) {
		t.Error("memory was read after its registration had ended")
	}
}

// A step that completes something says that it has done something: else the
// caller parks with the completion in the queue, maybe for ever.
func TestPoll_losingAPeerIsWork(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	x.run(100 * mono.Millisecond)
	send(t, x.a, verbs.Signaled, x.a.mr.SGE(0, 10))
	x.lose = func([]byte) bool { return true }
	for range 100000 {
		before := x.a.scq.Len()
		work := x.a.ctx.Engine().Step()
		if x.a.scq.Len() > before {
			if work == 0 {
				t.Error("the peer was lost, and the step that found out claims to have done nothing")
			}
			return
		}
		x.clock.now = max(min(x.a.ctx.Engine().NextDeadline(), x.clock.now+1e9), x.clock.now+1000)
	}
	t.Error("the peer was never lost")
}

// The same for acknowledgements, which are applied in the step that follows.
func TestPoll_applyingAcksIsWork(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	x.run(100 * mono.Millisecond)
	x.a.recv(t, 0, 100)
	x.b.recv(t, 0, 100)
	send(t, x.a, verbs.Signaled, x.a.mr.SGE(0, 10))
	x.b.ctx.Engine().Step()
	send(t, x.b, 0, x.b.mr.SGE(0, 10))
	for range 100 {
		before := x.a.scq.Len()
		work := x.a.ctx.Engine().Step()
		if x.a.scq.Len() > before {
			if work == 0 {
				t.Error("the step that applied the acknowledgement claims to have done nothing")
			}
			return
		}
	}
	t.Error("never acknowledged")
}

// A record that nobody completes wakes who waits for it.
func TestPoll_expiryIsWork(t *testing.T) {
	x := newBench(t, 1500, 2, 1<<16)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	ud, err := a.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: a.scq, RecvCQ: a.rcq})
	must(t, err)
	udb, err := b.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: b.scq, RecvCQ: b.rcq})
	must(t, err)
	wr := verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord, AH: a.ah, RemoteQPN: udb.Num(), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
	wr.NumSGE, wr.SGL = sge(a.mr.SGE(0, 2000))
	n := 0
	x.lose = func(f []byte) bool { n++; return n > 1 }
	must(t, ud.PostSend(&wr))
	a.ctx.Engine().Step()
	for range 100 {
		before := b.rcq.Len()
		work := b.ctx.Engine().Step()
		if b.rcq.Len() > before {
			if work == 0 {
				t.Error("the step that ended the record claims to have done nothing")
			}
			return
		}
		x.clock.now += 1e6
	}
	t.Error("the record never ended")
}

// What an engine has to say goes out in the step in which it says it, and not
// when the carrier happens to be flushed: the caller may park.
func TestPoll_helloGoesOutAtOnce(t *testing.T) {
	x := newBench(t, 1500, 0, 0)
	sent := 0
	x.lose = func([]byte) bool { sent++; return true }
	x.clock.now = 5e9
	e := x.open(t, 0, 64)
	e.ctx.Engine().Step()
	x.clock.now = max(x.clock.now+2000, e.ctx.Engine().NextDeadline())
	e.ctx.Engine().Step()
	if sent == 0 {
		t.Error("the first Hello is not on the wire after the step in which it was due")
	}
}

// In SQD the answers to peers go on: they neither delay nor prevent the event.
func TestModify_drainsWithAnswersUnderWay(t *testing.T) {
	x := newBench(t, 1500, 2, 1<<20)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	wr := verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, AH: a.ah, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
	wr.NumSGE, wr.SGL = sge(a.mr.SGE(0, 1<<19))
	must(t, a.qp.PostSend(&wr))
	a.ctx.Engine().Step()
	b.ctx.Engine().Step()
	must(t, b.qp.Modify(verbs.StateSQD))
	x.run(100 * mono.Millisecond)
	if a.scq.Len() != 1 {
		t.Error("the Read did not end")
	}
	if !drainEvent(b.ctx) {
		t.Error("nothing of the user was under way, but no event came")
	}
}

// What a peer has acknowledged before it closed is done.
func TestSend_acknowledgedThenClosed(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	a.recv(t, 0, 100)
	b.recv(t, 0, 100)
	send(t, a, verbs.Signaled, a.mr.SGE(0, 10))
	b.ctx.Engine().Step()
	send(t, b, 0, b.mr.SGE(0, 10))
	must(t, b.ctx.Close())
	x.b = nil
	for range 10 {
		a.ctx.Engine().Step()
	}
	var one [1]verbs.WC
	if a.scq.Poll(one[:]) != 1 || one[0].Status != verbs.Success {
		t.Errorf("the Send that the peer has received and acknowledged: %+v", one[0])
	}
}

// Handles of another protection domain do not take the place of those of the
// queue pair's, whichever was made first.
func TestCreateAH_ofTwoDomains(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	a := x.a
	a.qp.Destroy()
	other, err := a.ctx.AllocPD()
	must(t, err)
	early, err := a.pd.CreateAH(x.addrs[1])
	must(t, err)
	_, err = other.CreateAH(x.addrs[1])
	must(t, err)
	a.qp, err = a.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: a.scq, RecvCQ: a.rcq})
	must(t, err)
	x.b.recv(t, 0, 100)
	a.ah = early
	send(t, a, verbs.Signaled, a.mr.SGE(0, 10))
	x.run(100 * mono.Millisecond)
	if a.scq.Len() != 1 {
		t.Error("a request to a handle that was made before the queue pair never ended")
	}
	ud, err := other.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: a.scq, RecvCQ: a.rcq})
	must(t, err)
	late, err := other.CreateAH(x.addrs[1])
	must(t, err)
	if err := ud.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, AH: late, RemoteQPN: 2}); err != nil {
		t.Errorf("a handle of the UD queue pair's own domain: %v", err)
	}
}

// A queue pair is not made on a shared receive queue that is gone.
func TestCreateQP_onDestroyedSRQ(t *testing.T) {
	x := newBench(t, 1500, 1, 64)
	srq, err := x.a.pd.CreateSRQ(verbs.SRQInit{})
	must(t, err)
	must(t, srq.Destroy())
	if _, err := x.a.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: x.a.scq, RecvCQ: x.a.rcq, SRQ: srq}); err == nil {
		t.Error("made")
	}
}

// A peer that was silent for long before anybody wanted something of it gets
// its time from then on.
func TestSend_toAPeerThatComesLate(t *testing.T) {
	x := newBench(t, 1500, 1, 4096)
	a := x.a
	x.run(60 * mono.Second)
	send(t, a, verbs.Signaled, a.mr.SGE(0, 10))
	x.run(5 * mono.Second)
	if a.scq.Len() != 0 {
		t.Fatal("lost within 5 s, though 30 s are configured")
	}
	x.b = x.open(t, 1, 4096)
	x.b.recv(t, 0, 100)
	x.run(3 * mono.Second)
	if a.scq.Len() != 1 {
		t.Error("the request to a peer that came late never ended")
	}
}

// A refusal is heard though a Send before it finds no receive.
func TestTerminate_behindASendWithoutReceive(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	send(t, b, 0, b.mr.SGE(0, 10)) // finds nothing, for ever
	x.run(10 * mono.Millisecond)
	write(t, a, a.mr.SGE(0, 10), b.mr.Addr(), b.mr.RKey()+1)
	x.run(20 * mono.Second)
	var one [1]verbs.WC
	if a.scq.Poll(one[:]) != 1 || one[0].Status != verbs.RemAccessErr {
		t.Errorf("the refused Write: %+v", one[0])
	}
}

// Peers that find no receive do not hold up what others send.
func TestSend_stallsOnceWithoutReceive(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	send(t, a, 0, a.mr.SGE(0, 10))
	x.run(10 * mono.Second)
	if n := b.qp.Stats.RecvStalls; n > 2 {
		t.Errorf("one Send without a receive stalled everybody %d times", n)
	}
}

// Forgetting requests gives back the records that nobody will see.
func TestModify_resetGivesRecordsBack(t *testing.T) {
	x := newBench(t, 1500, 2, 1<<16)
	a, b := x.a, x.b
	ud, err := a.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: a.scq, RecvCQ: a.rcq})
	must(t, err)
	udb, err := b.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: b.scq, RecvCQ: b.rcq})
	must(t, err)
	n := 0
	x.lose = func(f []byte) bool { n++; return n%2 == 0 } // one chunk of two
	for i := range 6000 {
		wr := verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord, AH: a.ah, RemoteQPN: udb.Num(), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
		wr.NumSGE, wr.SGL = sge(a.mr.SGE(0, 2000))
		n = 0
		must(t, ud.PostSend(&wr))
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
		drops := udb.Stats.RecordDrops
		if drops != 0 {
			t.Fatalf("record %d found no room", i)
		}
		for _, s := range []verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
			must(t, udb.Modify(s))
		}
	}
}

// Who waited long for a receive gets its message through when there is one.
func TestSend_goesOnWhenAReceiveIsPosted(t *testing.T) {
	for _, wait := range []mono.Duration{mono.Millisecond, 100 * mono.Millisecond, 10 * mono.Second} {
		x := newBench(t, 1500, 2, 4096)
		a, b := x.a, x.b
		x.run(100 * mono.Millisecond)
		send(t, a, 0, a.mr.SGE(0, 10))
		x.run(wait)
		b.recv(t, 0, 100)
		began := x.clock.now
		for b.rcq.Len() == 0 && x.clock.now.Sub(began) < 10*mono.Second {
			x.run(10 * mono.Microsecond)
		}
		if d := x.clock.now.Sub(began); d > mono.Millisecond {
			t.Errorf("a message that had waited for %v arrived %v after the receive was posted", wait, d)
		}
	}
}

// A record lives for its deadline after each chunk, however late in that time
// the chunk came.
func TestWriteRecord_slowChunks(t *testing.T) {
	c := newManyPeers(t, 1)
	from, to := c.peers[0], c.server
	var uds [2]*verbs.QP
	var ended *verbs.CQ
	for i, m := range []*member{from, to} {
		var err error
		ended, err = m.ctx.CreateCQ(verbs.CQInit{})
		must(t, err)
		uds[i], err = m.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: m.scq, RecvCQ: ended, Cap: verbs.QPCap{MaxRecvWR: 1}, Record: verbs.RecordConfig{Deadline: 10 * mono.Millisecond}})
		must(t, err)
	}
	src, err := from.pd.RegMR(make([]byte, 4000), 0)
	must(t, err)
	var chunks [][]byte
	var who [2]fabric.Remote
	c.net.Wire = func(a, b fabric.Remote, payload []byte) {
		chunks, who = append(chunks, bytes.Clone(payload)), [2]fabric.Remote{a, b}
	}
	wr := verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord, AH: from.ah, RemoteQPN: uds[1].Num(), RemoteAddr: to.mr.Addr(), RKey: to.mr.RKey()}
	wr.NumSGE, wr.SGL = sge(src.SGE(0, 4000))
	must(t, uds[0].PostSend(&wr))
	from.ctx.Engine().Step()
	if len(chunks) != 3 {
		t.Fatalf("%d chunks", len(chunks))
	}
	for _, chunk := range chunks {
		if ended.Len() != 0 {
			t.Fatal("the record ended before its deadline")
		}
		c.net.Deliver(who[0], who[1], chunk)
		for range 19 {
			to.ctx.Engine().Step()
			c.clock.now = c.clock.now.Add(500 * mono.Microsecond)
		}
	}
	var one [1]verbs.WC
	if ended.Poll(one[:]) != 1 || !one[0].Record.Whole {
		t.Errorf("%+v", one[0])
	}
}

// Who sends to a queue pair in state Err hears that nobody is there.
func TestSend_toAQueuePairInErr(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	a, b := x.a, x.b
	x.run(100 * mono.Millisecond)
	must(t, b.qp.Modify(verbs.StateErr))
	x.run(100 * mono.Millisecond)
	var err error
	a.ah, err = a.pd.CreateAH(x.addrs[1])
	must(t, err)
	send(t, a, 0, a.mr.SGE(0, 10))
	x.run(100 * mono.Second)
	var one [1]verbs.WC
	if a.scq.Poll(one[:]) != 1 || one[0].Status != verbs.RetryExcErr {
		t.Errorf("the Send ended with %+v", one[0])
	}
	for _, s := range []verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR} {
		must(t, b.qp.Modify(s))
	}
	b.recv(t, 0, 100)
	a.ah, err = a.pd.CreateAH(x.addrs[1])
	must(t, err)
	send(t, a, 0, a.mr.SGE(0, 10))
	x.run(2 * mono.Second)
	if b.rcq.Len() == 0 {
		t.Error("the queue pair takes nothing though it was made ready again")
	}
}
