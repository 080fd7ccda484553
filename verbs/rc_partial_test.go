package verbs

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// aBitOfAll posts messages of all kinds, some of several segments, one of which
// is to be copied, one not.
func (p *rcPeer) aBitOfAll() {
	for i, n := range []int{10, 2000, 1424, 0} {
		p.post(uint64(2*i+1), OpSend, n)
		p.post(uint64(2*i+2), OpRDMAWriteWithImm, n)
	}
	p.post(9, OpRDMARead, 8)
	p.post(10, OpRDMAWrite, 513)
}

// What goes out is the same bytes however few of them the stream takes at a
// time: no byte is lost, said twice, or read from memory that its owner has
// back.
func TestRC_partialSends(t *testing.T) {
	for mode, m := range rcModes {
		t.Run(mode, func(t *testing.T) {
			m.initiator = true
			whole := newRCPeer(t, m)
			whole.aBitOfAll()
			whole.step()
			want := whole.s.sent
			for _, chunk := range []int{1, 2, 3, 7, 100, 513, 1000, 1447} {
				p := newRCPeer(t, m)
				p.s.room = 0
				p.aBitOfAll()
				for i := 0; len(p.s.sent) < len(want) && i < len(want); i++ {
					p.s.grant(chunk)
					p.step()
					p.step()
					for _, wc := range drain(p.scq) {
						if wc.WRID == 8 { // the last one that reads from there
							clear(p.slab[slabBuf : slabBuf+513])
							copy(p.slab[slabBuf:], whole.slab[slabBuf:slabBuf+513])
						}
					}
				}
				if !bytes.Equal(p.s.sent, want) {
					t.Fatalf("%d bytes at a time: something else is sent", chunk)
				}
			}
		})
	}
}

// A request that is complete does not need its memory any more, though part of
// it may not be out.
func TestRC_completeMeansFree(t *testing.T) {
	for room := 0; room < 1100; room += 1 + room/60*4 {
		p := newRCPeer(t, rcMode{initiator: true, crc: true})
		want := bytes.Clone(p.slab[slabBuf : slabBuf+1000])
		p.s.room = room
		p.post(1, OpSend, 1000)
		p.step()
		if len(drain(p.scq)) == 1 {
			clear(p.slab[slabBuf : slabBuf+1000])
		}
		p.s.grant(1 << 20)
		all := p.heard()
		if len(all) != 1 || !bytes.Equal(all[0][ddp.UntaggedLen:], want) {
			t.Fatalf("room %d: something else is sent", room)
		}
	}
}

// However a connection is ended, at whatever byte of a message: the FPDU that
// is under way goes out whole before whatever comes next, if anything does.
func TestRC_endsAtEachByte(t *testing.T) {
	stride := 1
	if Slow {
		stride = 7
	}
	for how, row := range map[string]struct {
		end   func(p *rcPeer)
		abort bool
	}{
		"Disconnect":         {func(p *rcPeer) { ok(p, p.id.Disconnect()) }, false},
		"the peer's FIN":     {func(p *rcPeer) { p.s.end() }, false},
		"refusal":            {func(p *rcPeer) { p.say(p.write(1, 0, 8)) }, false},
		"Terminate":          {func(p *rcPeer) { p.say(p.terminate(&rdmap.Term{Cause: iwarp.LLPCRC})) }, false},
		"Modify to ERR":      {func(p *rcPeer) { ok(p, p.q.Modify(StateErr)) }, true},
		"Modify to RESET":    {func(p *rcPeer) { ok(p, p.q.Modify(StateReset)) }, true},
		"Destroy":            {func(p *rcPeer) { p.q.Destroy() }, true},
		"Destroy identifier": {func(p *rcPeer) { ok(p, p.id.Destroy()) }, true},
	} {
		t.Run(how, func(t *testing.T) {
			for _, m := range []rcMode{{initiator: true}, {initiator: true, markers: true, crc: true}, {initiator: true, rtr: mpa.RTRRead}} {
				for room := 0; room < 3200; room += stride + room/50*17 {
					p := newRCPeer(t, m)
					p.s.room = room
					p.post(1, OpRDMAWrite, 1400)
					p.post(2, OpSend, 1400)
					p.say(p.read(p.rw.RKey(), 0, 16))
					row.end(p)
					p.step()
					if !p.s.closed {
						p.s.grant(1 << 20)
					}
					p.heard()
					if rest := len(p.s.sent) - p.seen; rest > 0 && !p.s.aborted {
						t.Fatalf("room %d: %d bytes of an FPDU are sent, and then the end", room, rest)
					}
					if !row.abort && !p.s.finished {
						t.Fatalf("room %d: no FIN", room)
					}
					if row.abort && !p.s.closed {
						t.Fatalf("room %d: the stream is open", room)
					}
				}
			}
		})
	}
}

// In state SQD what has begun ends, though the stream takes a byte at a time;
// that is told once.
func TestRC_drainedInParts(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	p.s.room = 1
	p.post(1, OpSend, 3000)
	p.post(2, OpSend, 10)
	ok(t, p.q.Modify(StateSQD))
	for range 4000 {
		p.s.grant(1)
		p.step()
	}
	p.completed(p.scq, statuses{1: Success})
	if got := p.asyncEvents(); len(got) != 1 || got[0] != EventSQDrained {
		t.Errorf("events %v", got)
	}
	p.s.grant(1 << 20)
	ok(t, p.q.Modify(StateRTS))
	p.step()
	p.completed(p.scq, statuses{2: Success})
}

// Sequence numbers of all kinds go round.
func TestRC_numbersWrap(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	r := p.q.rc
	const start = ^uint32(0) - 40
	r.requests.head, r.requests.tail, r.asked, r.cur.req = start, start, start, start
	r.answers.head, r.answers.tail, r.cur.ans = start, start, start
	r.sent, r.in.got = [4]uint32{start, start, 0, start}, [4]uint32{start, start, 0, start}
	p.msn = r.in.got
	for i := range 100 {
		p.works2(i)
	}
}

func (p *rcPeer) works2(i int) {
	p.Helper()
	p.postRecvs(1, 8)
	p.post(1, OpSend, 8)
	p.post(2, OpRDMARead, 8)
	p.post(3, OpAtomicFetchAndAdd, 8)
	if n := len(p.heard()); n != 3 {
		p.Fatalf("%d: %d messages are sent", i, n)
	}
	var old [rdmap.AtomicRespLen]byte
	(&rdmap.AtomicResp{ID: p.q.rc.requests.at(p.q.rc.requests.tail - 1).name}).Put(old[:])
	p.say(p.answer(8), p.send(8), p.read(p.rw.RKey(), 0, 8), p.untagged(rdmap.AtomicResponse, old[:]), p.atomic(rdmap.FetchAdd, p.rw.RKey(), 0))
	p.completed(p.scq, statuses{1: Success, 2: Success, 3: Success})
	p.completed(p.rcq, statuses{100: Success})
	if n := len(p.heard()); n != 2 || p.Failed() {
		p.Fatalf("%d: %d answers", i, n)
	}
}

// A responder that hears nothing speaks after a while; an initiator that hears
// nothing says a word more, once.
func TestRC_timers(t *testing.T) {
	p := newRCPeer(t, rcMode{})
	p.post(1, OpSend, 8)
	p.sleep(speakAfter - 1)
	if n := len(p.heard()); n != 0 {
		t.Fatalf("a responder speaks too early: %d messages", n)
	}
	p.sleep(1)
	if n := len(p.heard()); n != 1 {
		t.Fatalf("a responder says %d messages", n)
	}

	p = newRCPeer(t, rcMode{initiator: true})
	p.sleep(mono.Second)
	p.post(1, OpSend, 8)
	p.heard()
	p.sleep(nudgeAfter - 1)
	if n := len(p.heard()); n != 0 {
		t.Fatal("too early")
	}
	p.sleep(1)
	if all := p.heard(); len(all) != 1 || len(all[0]) != ddp.TaggedLen {
		t.Fatalf("said %x", all)
	}
	p.post(2, OpSend, 8)
	p.heard()
	p.sleep(mono.Second)
	if all := p.heard(); len(all) != 0 {
		t.Fatalf("once more: %x", all)
	}

	p = newRCPeer(t, rcMode{initiator: true})
	p.post(1, OpSend, 8)
	p.say(p.write(0, 0, 0))
	p.heard()
	p.sleep(mono.Second)
	if all := p.heard(); len(all) != 0 {
		t.Fatalf("the peer is alive, and hears %x", all)
	}
}

// A connection that has very much to say or to hear does not keep another one
// of the same context waiting.
func TestRC_turns(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	big := make([]byte, 8<<20)
	m, err := p.pd.RegMR(big, LocalWrite|RemoteWrite)
	ok(t, err)
	loud, quiet := p.s, *p
	loud.room = 1 << 30
	quiet.q = p.other
	quiet.connect(rcMode{initiator: true})
	p.heard()
	for range 4 {
		ok(t, p.q.PostSend(&SendWR{Opcode: OpRDMAWrite, RKey: 1, NumSGE: 1, SGL: [MaxSGE]SGE{m.SGE(0, len(big))}}))
	}
	before := len(loud.sent)
	quiet.post(1, OpSend, 8)
	p.ctx.Engine().Step()
	if n := len(loud.sent) - before; n > (transmitRounds+1)*(batchBytes+mpa.MaxFPDU) {
		t.Errorf("one connection sends %d bytes in its turn", n)
	}
	if len(quiet.s.sent) == quiet.seen {
		t.Error("the other one says nothing")
	}
	p.step()

	var b []byte
	for len(b) < 4<<20 {
		b = append(b, p.fpdu(p.write(m.RKey(), 0, 60_000))...)
	}
	loud.feed(b)
	quiet.postRecvs(1, 8)
	quiet.s.feed(quiet.fpdu(quiet.send(8)))
	p.ctx.Engine().Step()
	if n := len(b) - len(loud.in); n > recvRounds*inLen {
		t.Errorf("one connection takes %d bytes in its turn", n)
	}
	if p.rcq.Len() != 1 {
		t.Error("the other one hears nothing")
	}
	p.step()
	if len(loud.in) > 0 {
		t.Errorf("%d bytes are never heard", len(loud.in))
	}
}

// A shared receive queue that is short, and a completion queue that is full,
// end the connection: there is no room, and nothing is written elsewhere.
func TestRC_short(t *testing.T) {
	p := newRCPeer(t, rcMode{srq: true})
	p.postRecvs(1, 8)
	p.say(p.send(8))
	bad := p.send(8)
	p.say(bad)
	p.heardTerminate(wantTerminate(ddp.NoBuffer, "MD", bad))
	p.completed(p.rcq, statuses{100: Success})

	p = newRCPeer(t, rcMode{srq: true})
	p.rcq.depth = 1
	p.postRecvs(2, 8)
	p.say(p.send(8))
	bad = p.send(8)
	p.say(bad)
	p.heardTerminate(wantTerminate(ddp.NoBuffer, "MD", bad))
	p.completed(p.rcq, statuses{100: Success})
	if p.srq.Len() != 1 {
		t.Errorf("%d receives are left", p.srq.Len())
	}
}

// Buffers of parts are given back, and not kept without end.
func TestRC_buffersGivenBack(t *testing.T) {
	p := newRCPeer(t, rcMode{})
	for range 3 * sparesKept {
		p.s.feed(p.fpdu(p.write(p.rw.RKey(), 0, 100))[:50])
		p.s.room = 3
		p.say()
		p.s.fail(iwarp.LLPLost)
		p.event(p.id, CMDisconnected)
		ok(t, p.q.Modify(StateReset))
		ok(t, p.q.Modify(StateInit))
		p.connect(rcMode{initiator: true})
	}
	s := &p.ctx.streams
	if len(s.spare) > sparesKept || len(s.timed) > 1 || len(s.again)+len(s.sending) > 0 {
		t.Errorf("%d buffers, %d timers, %d and %d in line", len(s.spare), len(s.timed), len(s.again), len(s.sending))
	}
}
