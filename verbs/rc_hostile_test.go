package verbs

import (
	"errors"
	"syscall"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// answer is the Read Response to a Read of size bytes that was posted by post.
func (p *rcPeer) answer(n int) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, n) }

// Reads behind many Sends: an answer is for the oldest Read, though the places
// of the Sends in the ring are used again.
func TestRC_answersBehindSends(t *testing.T) {
	for sends := range 3 * firstWQEs {
		p := newRCPeer(t, rcMode{initiator: true})
		for range sends {
			p.post(1, OpSend, 8)
			p.step()
		}
		drain(p.scq)
		for i := range firstWQEs - 1 {
			p.post(uint64(i+1), OpRDMARead, i+1)
		}
		p.step()
		for i := range firstWQEs - 1 {
			p.say(p.answer(i + 1))
			p.completed(p.scq, statuses{uint64(i + 1): Success})
		}
	}
}

// The queue pair is reset while the connection waits for the peer's end, and
// connected again: the old connection is over.
func TestRC_resetWhileClosing(t *testing.T) {
	for what, end := range map[string]func(p *rcPeer){
		"disconnected": func(p *rcPeer) { ok(p, p.id.Disconnect()) },
		"refused":      func(p *rcPeer) { p.say(p.write(1, 0, 8)) },
		"refused, and the Terminate is not out": func(p *rcPeer) {
			p.s.room = 3
			p.say(p.write(1, 0, 8))
		},
		"open": func(p *rcPeer) {},
	} {
		t.Run(what, func(t *testing.T) {
			p := newRCPeer(t, rcMode{initiator: true})
			end(p)
			p.asyncEvents()
			old, id := p.s, p.id
			ok(t, p.q.Modify(StateReset))
			if !old.closed {
				t.Error("the stream is left")
			}
			p.event(id, CMDisconnected)
			ok(t, p.q.Modify(StateInit))
			p.connect(rcMode{initiator: true})
			p.works()
		})
	}
}

// works checks that a connection does what it should in both directions.
func (p *rcPeer) works() {
	p.Helper()
	p.post(1, OpSend, 8)
	p.post(2, OpRDMARead, 8)
	p.post(3, OpRDMAWrite, 8)
	all := p.heard()
	if len(all) != 3 || all[0][13] != 1 || all[1][13] != 1 {
		p.Fatalf("said %x", all)
	}
	p.postRecvs(1, 8)
	p.say(p.answer(8), p.send(8), p.read(p.rw.RKey(), 0, 8))
	p.completed(p.scq, statuses{1: Success, 2: Success, 3: Success})
	p.completed(p.rcq, statuses{100: Success})
	if all := p.heard(); len(all) != 1 {
		p.Fatalf("said %x", all)
	}
}

// In peer-to-peer mode the connection is not established by a first message
// that ends it.
func TestRC_firstMessageEnds(t *testing.T) {
	p := newRCPeer(t, rcMode{rtr: mpa.RTRWrite})
	p.say(p.terminate(&rdmap.Term{Cause: iwarp.LLPNoRTR}))
	p.s.end()
	if e := p.event(p.id, CMConnectError); !isTerminate(e.Err, iwarp.LLPNoRTR, true) {
		t.Errorf("%v", e.Err)
	}
	p.noEvent()

	p = newRCPeer(t, rcMode{rtr: mpa.RTRWrite})
	bad := p.write(1, 0, 8)
	p.say(bad)
	p.heardTerminate(wantTerminate(ddp.InvalidSTag, "MD", bad))
	p.s.end()
	if e := p.event(p.id, CMConnectError); !isTerminate(e.Err, ddp.InvalidSTag, false) {
		t.Errorf("%v", e.Err)
	}
	p.noEvent()
}

// Each kind of first message establishes the connection, and so does one that
// was not agreed on; the responder may speak then.
func TestRC_firstMessages(t *testing.T) {
	for what, say := range map[string]func(p *rcPeer) []byte{
		"empty FPDU":       func(p *rcPeer) []byte { return nil },
		"empty Send":       func(p *rcPeer) []byte { return p.send(0) },
		"Write of nothing": func(p *rcPeer) []byte { return p.write(1, 0, 0) },
		"Read of nothing":  func(p *rcPeer) []byte { return p.read(1, 0, 0) },
		"Write":            func(p *rcPeer) []byte { return p.write(p.rw.RKey(), 0, 8) },
	} {
		for _, kind := range []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead} {
			if what == "empty Send" && kind != mpa.RTRSend {
				continue // then it takes a receive, as any other
			}
			t.Run(what+" for "+kind.String(), func(t *testing.T) {
				p := newRCPeer(t, rcMode{rtr: kind})
				p.post(1, OpSend, 8)
				p.noEvent()
				p.say(say(p))
				p.event(p.id, CMEstablished)
				said := len(p.heard())
				if want := map[bool]int{true: 2, false: 1}[what == "Read of nothing"]; said != want {
					t.Errorf("%d messages, want %d", said, want)
				}
				p.completed(p.scq, statuses{1: Success})
				p.postRecvs(1, 8)
				p.say(p.send(8))
				p.completed(p.rcq, statuses{100: Success})
			})
		}
	}
}

// The stream fails at any time: everything ends, once.
func TestRC_streamFails(t *testing.T) {
	for what, before := range map[string]func(p *rcPeer){
		"idle":                   func(p *rcPeer) {},
		"requests outstanding":   func(p *rcPeer) { p.posted() },
		"the stream is full":     func(p *rcPeer) { p.s.room = 5; p.post(1, OpRDMARead, 8); p.post(2, OpSend, 70_000) },
		"in a Send":              func(p *rcPeer) { p.say(more(p.send(8))) },
		"in an FPDU":             func(p *rcPeer) { p.s.feed(p.fpdu(p.send(8))[:5]); p.step() },
		"answers are owed":       func(p *rcPeer) { reads(16)(p) },
		"disconnected":           func(p *rcPeer) { ok(p, p.id.Disconnect()); p.step() },
		"a Terminate is not out": func(p *rcPeer) { p.s.room = 3; p.say(p.write(1, 0, 8)) },
	} {
		t.Run(what, func(t *testing.T) {
			p := newRCPeer(t, rcMode{initiator: true})
			p.postRecvs(3, 8)
			before(p)
			unsent := p.q.rc.requests.tail - p.q.rc.requests.head
			closing := p.q.State() == StateErr
			p.s.fail(syscall.ECONNRESET)
			p.step()
			for i, wc := range drain(p.scq) {
				if want := map[bool]Status{true: RetryExcErr, false: WRFlushErr}[i == 0]; wc.Status != want {
					t.Errorf("%+v, want %v", wc, want)
				}
				unsent--
			}
			if unsent != 0 {
				t.Errorf("%d requests do not complete", int32(unsent))
			}
			p.flushed(3, 0, false)
			e := p.event(p.id, CMDisconnected)
			if !closing && (!errors.Is(e.Err, syscall.ECONNRESET) || !errors.Is(e.Err, ErrConnection)) {
				t.Errorf("%v", e.Err)
			}
			if p.q.State() != StateErr || !p.s.closed {
				t.Errorf("state %v, closed %v", p.q.State(), p.s.closed)
			}
		})
	}
}
