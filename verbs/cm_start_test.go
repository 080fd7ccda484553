package verbs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// The whole life of an initiator: what it sends, what it is told.
func TestConnect_established(t *testing.T) {
	r := newCMRig(t)
	id, s := r.connecting(ConnParam{PrivateData: []byte("hello"), ResponderResources: 3, InitiatorDepth: 5, CRC: true})
	r.noEvent()
	if len(s.sent) != 0 {
		t.Errorf("sent %x before TCP connected", s.sent)
	}
	s.open()
	r.step()
	want := r.request(mpa.Config{IRD: 3, ORD: 5, CRC: true}, "hello")
	if !slices.Equal(s.sent, want) {
		t.Fatalf("sent %x, want %x", s.sent, want)
	}
	s.feed(r.reply(s, mpa.Config{IRD: 4, ORD: 2}, "world"))
	e := r.event(id, CMEstablished)
	if p := e.Param; string(p.PrivateData) != "world" || p.ResponderResources != 2 || p.InitiatorDepth != 4 || !p.CRC || p.Revision != 2 || e.Err != nil {
		t.Errorf("event %+v", e)
	}
	if id.QP.State() != StateRTS {
		t.Errorf("queue pair in state %v", id.QP.State())
	}
	if id.LocalAddr() != s.local || id.PeerAddr() != somePeer {
		t.Errorf("%v to %v", id.LocalAddr(), id.PeerAddr())
	}
	r.sleep(mono.Second * 3600)
	r.noEvent()
	r.expect(id, IDEstablished)
}

// The whole life of a responder.
func TestAccept_established(t *testing.T) {
	r := newCMRig(t)
	l, carrier := r.listener(0)
	s := carrier.connect()
	request := r.request(mpa.Config{IRD: 3, ORD: 5}, "hello")
	s.feed(request)
	e := r.event(nil, CMConnectRequest)
	id := e.ID
	if p := e.Param; string(p.PrivateData) != "hello" || p.ResponderResources != 5 || p.InitiatorDepth != 3 || e.Listener != l || id == l {
		t.Errorf("event %+v", e)
	}
	clear(request)
	if string(e.Param.PrivateData) != "hello" {
		t.Error("private data is no copy")
	}
	r.sleep(mono.Second * 3600) // the user takes its time
	p := e.Param
	p.PrivateData, p.QP = []byte("world"), r.newQP()
	ok(t, id.Accept(p))
	e = r.event(id, CMEstablished)
	if p := e.Param; p.ResponderResources != 5 || p.InitiatorDepth != 3 {
		t.Errorf("event %+v", e)
	}
	var peer mpa.Initiator
	_, err := peer.Start(mpa.Config{IRD: 3, ORD: 5}, []byte("hello"))
	ok(t, err)
	n, a, err := peer.Reply(s.sent)
	if n != len(s.sent) || err != nil || string(a.Private) != "world" || a.IRD != 3 || a.ORD != 5 {
		t.Errorf("the Reply %x: %d %+v %v", s.sent, n, a, err)
	}
	if id.LocalAddr() != l.LocalAddr() || id.PeerAddr() != s.remote || p.QP.State() != StateRTS {
		t.Errorf("%v to %v, %v", id.LocalAddr(), id.PeerAddr(), p.QP.State())
	}
}

// Start-up frames arrive as they like, and leave as there is room.
func TestStartup_dribbled(t *testing.T) {
	t.Run("initiator", func(t *testing.T) {
		r := newCMRig(t)
		id, s := r.connecting(ConnParam{PrivateData: []byte("hello")})
		s.room = 0
		s.open()
		want := r.request(mpa.Config{IRD: maxReads, ORD: maxReads}, "hello")
		for len(s.sent) < len(want) {
			s.grant(1)
			r.step()
		}
		if !slices.Equal(s.sent, want) {
			t.Fatalf("sent %x, want %x", s.sent, want)
		}
		s.room = 1 << 20
		for _, b := range r.reply(s, mpa.Config{}, "world") {
			r.noEvent()
			r.expect(id, IDRequesting)
			s.feed([]byte{b})
		}
		if e := r.event(id, CMEstablished); string(e.Param.PrivateData) != "world" || e.Param.InitiatorDepth != -1 {
			t.Errorf("event %+v", e)
		}
	})
	t.Run("responder", func(t *testing.T) {
		r := newCMRig(t)
		_, carrier := r.listener(0)
		s := carrier.connect()
		for _, b := range r.request(mpa.Config{}, "hello") {
			r.noEvent()
			s.feed([]byte{b})
		}
		e := r.event(nil, CMConnectRequest)
		s.room = 0
		ok(t, e.ID.Accept(ConnParam{QP: r.newQP(), PrivateData: []byte("world")}))
		for range 24 + len("world") {
			r.noEvent()
			s.grant(1)
		}
		r.event(e.ID, CMEstablished)
	})
}

// What arrives right behind the Reply is the queue pair's: a server may speak at
// once, in the Reply's own segment, and the segment may end anywhere.
func TestConnect_dataBehindTheReply(t *testing.T) {
	send := []byte{0, 22, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'd', 'a', 't', 'a', 0, 0, 0, 0}
	for cut := range len(send) + 1 {
		r := newCMRig(t)
		id, s := r.requesting(ConnParam{})
		buf := newMR(t, r.pd, 8, LocalWrite)
		ok(t, id.QP.PostRecv(&RecvWR{WRID: 5, NumSGE: 1, SGL: [MaxSGE]SGE{buf.SGE(0, 8)}}))
		s.feed(append(r.reply(s, mpa.Config{}, ""), send[:cut]...))
		r.event(id, CMEstablished)
		s.feed(send[cut:])
		r.step()
		var wc [1]WC
		if n := r.cq.Poll(wc[:]); n != 1 || wc[0].WRID != 5 || wc[0].Status != Success || string(buf.Bytes()[:4]) != "data" {
			t.Fatalf("cut at %d: %d completions, %+v", cut, n, wc[0])
		}
	}
}

// A Reply that comes before the Request is out changes nothing.
func TestConnect_earlyReply(t *testing.T) {
	r := newCMRig(t)
	id, s := r.connecting(ConnParam{})
	s.room = 10
	s.open()
	r.step()
	want := r.request(mpa.Config{IRD: maxReads, ORD: maxReads}, "")
	s2 := &scriptedStream{sent: want}
	s.feed(r.reply(s2, mpa.Config{}, ""))
	r.noEvent()
	s.grant(1000)
	r.event(id, CMEstablished)
	if !slices.Equal(s.sent, want) {
		t.Errorf("sent %x, want %x", s.sent, want)
	}
}

// The peer is cut off at each byte of its frame, in each way.
func TestStartup_cutAtEachByte(t *testing.T) {
	cuts := map[string]func(r *cmRig, s *scriptedStream){
		"end":     func(r *cmRig, s *scriptedStream) { s.end() },
		"reset":   func(r *cmRig, s *scriptedStream) { s.fail(syscall.ECONNRESET) },
		"silence": func(r *cmRig, s *scriptedStream) { r.sleep(mpa.ReplyTimeout) },
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			r := newCMRig(t)
			want := map[string]CMEventType{"end": CMRejected, "reset": CMRejected, "silence": CMUnreachable}[name]
			for at, n := 0, 1; at < n; at++ {
				id, s := r.requesting(ConnParam{})
				reply := r.reply(s, mpa.Config{}, "world")
				n = len(reply)
				s.feed(reply[:at])
				r.step()
				cut(r, s)
				var why *CMError
				if e := r.event(id, want); !errors.As(e.Err, &why) || why.Peer != somePeer {
					t.Fatalf("byte %d: %v", at, e.Err)
				}
				r.expect(id, IDGone)
				if id.QP.State() != StateInit {
					t.Fatalf("queue pair in state %v", id.QP.State())
				}
			}
			dropped := r.ctx.DroppedStartups()
			_, carrier := r.listener(0)
			request := r.request(mpa.Config{}, "hello")
			for at := range request {
				s := carrier.connect()
				s.feed(request[:at])
				r.step()
				cut(r, s)
				r.noEvent()
				if !s.closed {
					t.Fatalf("byte %d: the stream is left", at)
				}
			}
			if n := r.ctx.DroppedStartups() - dropped; n != uint64(len(request)) {
				t.Errorf("%d counted, want %d", n, len(request))
			}
			if r.carrier.opened != 0 || len(r.ctx.cm.timed) != 0 {
				t.Errorf("%d streams, %d time limits are left", r.carrier.opened, len(r.ctx.cm.timed))
			}
		})
	}
}

// A Reply may be followed at once by the end of the stream: it counts.
func TestConnect_lastWords(t *testing.T) {
	r := newCMRig(t)
	id, s := r.requesting(ConnParam{})
	s.feed(r.rejection(s, "go away"))
	s.end()
	e := r.event(id, CMRejected)
	if _, ok := errors.AsType[*mpa.RejectedError](e.Err); string(e.Param.PrivateData) != "go away" || !ok {
		t.Errorf("event %+v", e)
	}
	r.expect(id, IDGone)
}

func (r *cmRig) rejection(s *scriptedStream, private string) []byte {
	r.Helper()
	var peer mpa.Responder
	_, _, err := peer.Request(s.sent)
	ok(r, err)
	b, err := peer.Reject([]byte(private))
	ok(r, err)
	return b
}

// Replies that an initiator cannot live with.
func TestConnect_malformed(t *testing.T) {
	for _, c := range []struct {
		name string
		p    ConnParam
		bad  func(reply []byte) []byte
	}{
		{"garbage", ConnParam{}, func([]byte) []byte { return []byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 3)) }},
		{"request for reply", ConnParam{}, func(b []byte) []byte { b[7]++; b[8]++; return b }},
		{"revision 1 to 2", ConnParam{}, func(b []byte) []byte { b[17] = 1; return b }},
		{"revision 3", ConnParam{}, func(b []byte) []byte { b[17] = 3; return b }},
		{"not enhanced", ConnParam{}, func(b []byte) []byte { b[16] &^= 0x10; return b }},
		{"enhanced without", ConnParam{}, func(b []byte) []byte { b[19] = 0; return b[:20] }},
		{"private data too long", ConnParam{}, func(b []byte) []byte { b[18], b[19] = 2, 1; return b }},
		{"more Reads than we take", ConnParam{ResponderResources: 2}, func(b []byte) []byte { b[23] = 3; return b }},
		{"revision 2 to 1", ConnParam{Revision: 1}, func(b []byte) []byte { b[17] = 2; return b }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.requesting(c.p)
			reply := c.bad(r.reply(s, mpa.Config{}, ""))
			s.sent = nil
			s.feed(reply)
			e := r.event(id, CMConnectError)
			var bad *mpa.ProtocolError
			if !errors.As(e.Err, &bad) {
				t.Fatalf("%v", e.Err)
			}
			if want := terminateOf(bad); !slices.Equal(s.sent, want) {
				t.Errorf("sent %x, want %x", s.sent, want)
			}
			if !s.closed {
				t.Error("the stream is left")
			}
		})
	}
}

// terminateOf is the Terminate that an initiator sends behind a Reply that it
// cannot live with, nil if none: an FPDU of 22 bytes with the control word of
// RFC 5040, section 4.8, without CRC.
func terminateOf(bad *mpa.ProtocolError) []byte {
	if !bad.Terminate {
		return nil
	}
	return []byte{
		0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0,
		byte(bad.Cause >> 8), byte(bad.Cause), 0, 0, 0, 0, 0, 0,
	}
}

// Requests that a responder does not bother its user with, and which of them
// get an answer.
func TestAccept_malformed(t *testing.T) {
	enhanced := func(b []byte) []byte { b[16] |= 0x10; b[17] = 2; b[19] = 0; return b[:20] }
	for _, c := range []struct {
		name   string
		bad    func(request []byte) []byte
		answer bool
	}{
		{"garbage", func([]byte) []byte { return []byte("GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n") }, false},
		{"reply for request", func(b []byte) []byte { b[7]++; b[8]++; return b }, false},
		{"revision 0", func(b []byte) []byte { b[17] = 0; return b }, false},
		{"revision 3", func(b []byte) []byte { b[17] = 3; return b }, false},
		{"private data too long", func(b []byte) []byte { b[18], b[19] = 2, 1; return b }, false},
		{"enhanced without", enhanced, true},
		{"more behind it", func(b []byte) []byte { return append(b, 0) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newCMRig(t)
			_, carrier := r.listener(0)
			s := carrier.connect()
			s.feed(c.bad(r.request(mpa.Config{}, "")))
			r.noEvent()
			if !s.closed || len(s.sent) > 0 != c.answer || r.ctx.DroppedStartups() != 1 {
				t.Errorf("closed %v, sent %x, %d counted", s.closed, s.sent, r.ctx.DroppedStartups())
			}
		})
	}
}

// What an initiator does while the responder's user decides.
func TestAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *scriptedStream)
		why  error
	}{
		{"ends", func(s *scriptedStream) { s.end() }, syscall.ECONNRESET},
		{"resets", func(s *scriptedStream) { s.fail(syscall.ECONNRESET) }, syscall.ECONNRESET},
		{"speaks", func(s *scriptedStream) { s.feed([]byte{0}) }, errEarly},
	} {
		t.Run(c.name+" behind the event", func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.asked(r.listener(0))
			c.do(s)
			if e := r.event(id, CMConnectError); !errors.Is(e.Err, c.why) {
				t.Errorf("%v", e.Err)
			}
			if err := id.Accept(ConnParam{QP: r.newQP()}); err == nil || !strings.Contains(err.Error(), "GONE") {
				t.Errorf("Accept: %v", err)
			}
			ok(t, id.Disconnect()) // as after any connection
			ok(t, id.Destroy())
		})
		t.Run(c.name+" before the event", func(t *testing.T) {
			r := newCMRig(t)
			_, carrier := r.listener(0)
			s := carrier.connect()
			s.feed(r.request(mpa.Config{}, ""))
			r.step()
			c.do(s)
			r.noEvent()
			if !s.closed || len(r.ctx.cm.ids) != 1 {
				t.Errorf("closed %v, %d identifiers", s.closed, len(r.ctx.cm.ids))
			}
		})
	}
}

// What becomes of TCP shows in the event, at once or later.
func TestConnect_noWay(t *testing.T) {
	for _, c := range []struct {
		err  error
		want CMEventType
	}{
		{syscall.ECONNREFUSED, CMRejected},
		{syscall.ECONNRESET, CMRejected},
		{syscall.ETIMEDOUT, CMUnreachable},
		{syscall.EHOSTUNREACH, CMUnreachable},
		{syscall.ENETUNREACH, CMUnreachable},
		{syscall.ENETDOWN, CMUnreachable},
		{syscall.EPROTO, CMConnectError},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.connecting(ConnParam{})
			s.fail(fmt.Errorf("tcp: %w", c.err))
			if e := r.event(id, c.want); !errors.Is(e.Err, c.err) {
				t.Errorf("%v", e.Err)
			}
			id = r.resolved()
			r.carrier.dialErr = fmt.Errorf("tcp: %w", c.err)
			if err := id.Connect(ConnParam{}); c.want == CMConnectError {
				if !errors.Is(err, c.err) {
					t.Errorf("%v", err)
				}
				r.noEvent()
				r.expect(id, IDRouteResolved)
				return
			} else {
				ok(t, err)
			}
			r.event(id, c.want)
			r.expect(id, IDGone)
		})
	}
}

// Time limits, to the nanosecond.
func TestTimeout(t *testing.T) {
	late := func(t *testing.T, r *cmRig, id *CMID, after mono.Duration, want CMEventType) {
		t.Helper()
		at := r.clock.now.Add(after)
		if d := r.ctx.Engine().NextDeadline(); d > at {
			t.Errorf("the engine may sleep until %v, past %v", d, at)
		}
		r.sleep(after - 1)
		r.noEvent()
		r.sleep(1)
		if e := r.event(id, want); !errors.Is(e.Err, syscall.ETIMEDOUT) {
			t.Errorf("%v", e.Err)
		}
		r.expect(id, IDGone)
		if d := r.ctx.Engine().NextDeadline(); d != mono.Never {
			t.Errorf("the engine must step at %v", d)
		}
	}
	t.Run("TCP connects", func(t *testing.T) {
		r := newCMRig(t)
		id, s := r.connecting(ConnParam{})
		late(t, r, id, mpa.ReplyTimeout, CMUnreachable)
		if !s.closed {
			t.Error("the stream is left")
		}
	})
	t.Run("Reply", func(t *testing.T) {
		r := newCMRig(t)
		id, s := r.connecting(ConnParam{})
		r.sleep(mpa.ReplyTimeout / 2)
		s.open()
		r.step()
		late(t, r, id, mpa.ReplyTimeout, CMUnreachable)
	})
	t.Run("of one's own", func(t *testing.T) {
		r := newCMRig(t)
		id, _ := r.requesting(ConnParam{Timeout: 7})
		late(t, r, id, 7, CMUnreachable)
	})
	t.Run("our Reply finds no room", func(t *testing.T) {
		r := newCMRig(t)
		id, _ := r.inState(IDReplying)
		late(t, r, id, mpa.ReplyTimeout, CMConnectError)
	})
	t.Run("Request", func(t *testing.T) {
		r := newCMRig(t)
		_, carrier := r.listener(0)
		s := carrier.connect()
		r.step()
		r.sleep(mpa.RequestTimeout - 1)
		if s.closed {
			t.Fatal("too early")
		}
		r.sleep(1)
		if !s.closed || s.aborted {
			t.Errorf("closed %v, aborted %v; want an end in order", s.closed, s.aborted)
		}
	})
	t.Run("our refusal finds no room", func(t *testing.T) {
		r := newCMRig(t)
		id, s := r.inState(IDRejecting)
		r.sleep(mpa.ReplyTimeout)
		r.expect(id, IDGone)
		if !s.closed {
			t.Error("the stream is left")
		}
	})
}

func TestReject(t *testing.T) {
	r := newCMRig(t)
	id, s := r.asked(r.listener(0))
	ok(t, id.Reject([]byte("go away")))
	r.noEvent()
	r.expect(id, IDGone)
	if !s.closed || s.aborted {
		t.Errorf("closed %v, aborted %v; want an end in order", s.closed, s.aborted)
	}
	var peer mpa.Initiator
	_, err := peer.Start(mpa.Config{}, nil)
	ok(t, err)
	_, _, err = peer.Reply(s.sent)
	if rejected, ok := errors.AsType[*mpa.RejectedError](err); !ok || string(rejected.Private) != "go away" {
		t.Errorf("the peer understands %v", err)
	}
}

// The queue pair was used otherwise while the connection started up.
func TestAttach_queuePairIsTaken(t *testing.T) {
	for name, take := range map[string]func(q *QP) error{
		"moved":     func(q *QP) error { return q.Modify(StateErr) },
		"destroyed": func(q *QP) error { q.Destroy(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.requesting(ConnParam{})
			reply := r.reply(s, mpa.Config{}, "")
			ok(t, take(id.QP))
			s.feed(reply)
			if e := r.event(id, CMConnectError); !errors.Is(e.Err, ErrInvalid) && !errors.Is(e.Err, ErrClosed) {
				t.Errorf("%v", e.Err)
			}
			if !s.closed {
				t.Error("the stream is left")
			}
		})
	}
	t.Run("two connections", func(t *testing.T) {
		r := newCMRig(t)
		id, s := r.requesting(ConnParam{})
		id2, s2 := r.requesting(ConnParam{QP: id.QP})
		reply := r.reply(s, mpa.Config{}, "")
		s2.feed(reply)
		r.event(id2, CMEstablished)
		s.feed(reply)
		r.event(id, CMConnectError)
		r.expect(id2, IDEstablished)
	})
}
