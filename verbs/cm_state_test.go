package verbs

import (
	"errors"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// inState returns an identifier in a state, and its stream, if it has one that
// is the script's.
func (r *cmRig) inState(s IDState) (*CMID, *scriptedStream) {
	r.Helper()
	id, stream := r.reach(s)
	r.expect(id, s)
	return id, stream
}

func (r *cmRig) reach(s IDState) (id *CMID, stream *scriptedStream) {
	r.Helper()
	switch s {
	case IDIdle:
		return r.newID(), nil
	case IDBound:
		id = r.newID()
		ok(r, id.BindAddr(somePeer))
		return id, nil
	case IDAddrResolved:
		id = r.newID()
		ok(r, id.ResolveAddr(somePeer, 0))
		r.event(id, CMAddrResolved)
		return id, nil
	case IDRouteResolved:
		return r.resolved(), nil
	case IDListening:
		id, _ = r.listener(0)
		return id, nil
	case IDConnecting:
		return r.connecting(ConnParam{})
	case IDRequesting:
		return r.requesting(ConnParam{})
	case IDTerminating:
		id, stream = r.requesting(ConnParam{RTR: mpa.RTRSend})
		stream.feed(r.reply(stream, mpa.Config{RTR: mpa.RTRWrite}, ""))
		r.step()
		return id, stream
	case IDAccepting:
		_, carrier := r.listener(0)
		stream = carrier.connect()
		r.step()
		return r.ctx.streams.users[stream.id].(*CMID), stream
	case IDEstablished:
		return r.established(true)
	case IDDisconnecting:
		id, stream = r.established(true)
		stream.room = 0
		ok(r, id.Disconnect())
		return id, stream
	case IDGone:
		id, stream = r.requesting(ConnParam{})
		stream.end()
		r.event(id, CMRejected)
		return id, stream
	case IDDestroyed:
		id = r.newID()
		ok(r, id.Destroy())
		return id, nil
	}
	return r.reachReplying(s)
}

// reachReplying is reach for what follows CMConnectRequest.
func (r *cmRig) reachReplying(s IDState) (*CMID, *scriptedStream) {
	r.Helper()
	id, stream := r.asked(r.listener(0))
	switch s {
	case IDReplying:
		stream.room = 5
		ok(r, id.Accept(ConnParam{QP: r.newQP()}))
	case IDRejecting:
		stream.room = 5
		ok(r, id.Reject(nil))
	case IDStarting:
		ok(r, id.Destroy())
		return r.startingRTR()
	}
	return id, stream
}

// calls makes each call with arguments that are right.
func (r *cmRig) calls() [idCallCount]func(id *CMID) error {
	return [idCallCount]func(id *CMID) error{
		callBindAddr:     func(id *CMID) error { return id.BindAddr(somePeer) },
		callResolveAddr:  func(id *CMID) error { return id.ResolveAddr(somePeer, 0) },
		callResolveRoute: func(id *CMID) error { return id.ResolveRoute(0) },
		callCreateQP: func(id *CMID) error {
			id.QP = nil
			return id.CreateQP(r.pd, QPInit{SendCQ: r.cq, RecvCQ: r.cq})
		},
		callListen:     func(id *CMID) error { return id.Listen(1) },
		callConnect:    func(id *CMID) error { return id.Connect(ConnParam{QP: r.newQP()}) },
		callAccept:     func(id *CMID) error { return id.Accept(ConnParam{QP: r.newQP()}) },
		callReject:     func(id *CMID) error { return id.Reject(nil) },
		callDisconnect: func(id *CMID) error { return id.Disconnect() },
	}
}

// Every call in every state succeeds, or fails as the table says and changes
// nothing. Destroy succeeds everywhere, and gives back everything.
func TestCMID_everyCallInEveryState(t *testing.T) {
	for s := range idStateCount {
		t.Run(s.String(), func(t *testing.T) {
			r := newCMRig(t)
			for call, do := range r.calls() {
				k := &idCalls[call]
				id, _ := r.inState(s)
				err := do(id)
				var state *CMStateError
				switch {
				case k.when.has(s):
					ok(t, err)
				case s == IDDestroyed:
					if !errors.Is(err, ErrClosed) {
						t.Errorf("%s: %v; want ErrClosed", k.name, err)
					}
					continue
				case !errors.As(err, &state) || !errors.Is(err, ErrInvalid) || state.State != s || state.Call != k.name || !strings.HasSuffix(err.Error(), k.hint):
					t.Errorf("%s: %v; want a CMStateError; legal in %v", k.name, err, k.when)
				case id.State() != s:
					t.Errorf("%s failed and left state %v", k.name, id.State())
				}
				ok(t, id.Destroy())
				if err := id.Destroy(); !errors.Is(err, ErrClosed) {
					t.Errorf("second Destroy: %v", err)
				}
				r.step()
			}
		})
	}
}

// An identifier can be destroyed in every state, with its events not taken, and
// leaves nothing behind: no event, no stream, no time limit.
func TestDestroy_leavesNothing(t *testing.T) {
	for s := range IDDestroyed {
		t.Run(s.String(), func(t *testing.T) {
			r := newCMRig(t)
			id, _ := r.inState(s)
			for len(r.ctx.cm.ids) > 0 {
				ok(t, r.ctx.cm.ids[0].Destroy())
			}
			r.expect(id, IDDestroyed)
			r.step()
			if r.carrier.opened != 0 || len(r.ctx.cm.timed) != 0 {
				t.Errorf("%d streams, %d time limits are left", r.carrier.opened, len(r.ctx.cm.timed))
			}
			r.noEvent()
			ok(t, r.ch.Close())
		})
	}
}

// News of a stream in a state that does not wait for any, and a failure in any
// state, are no harm.
func TestReady_inEveryState(t *testing.T) {
	for s := range IDDestroyed {
		t.Run(s.String(), func(t *testing.T) {
			r := newCMRig(t)
			id, stream := r.inState(s)
			if stream == nil {
				if work := id.ready(r.clock.now); work != 0 || id.State() != s {
					t.Errorf("ready did %d, state %v", work, id.State())
				}
				return
			}
			if stream.closed {
				return
			}
			r.ctx.streams.users[stream.id].ready(r.clock.now) // for nothing
			r.expect(id, s)
			if stream.state == fabric.StreamOpen {
				stream.fail(errHungUp)
				r.step()
				if id.State() != IDGone && id.State() != IDDestroyed {
					t.Errorf("the stream has failed, the state is %v", id.State())
				}
			}
		})
	}
}

// News of a stream may come after its end, when another one has its number.
func TestReady_staleNews(t *testing.T) {
	r := newCMRig(t)
	id, s := r.requesting(ConnParam{})
	s.feed(r.reply(s, mpa.Config{}, ""))
	ok(t, id.Destroy())
	id2, s2 := r.connecting(ConnParam{})
	if s.id != s2.id {
		t.Fatalf("stream %d has taken the place of %d: is the test right?", s2.id, s.id)
	}
	r.noEvent()
	r.expect(id2, IDConnecting)
}

func TestIDState_String(t *testing.T) {
	seen := map[string]bool{}
	for s := range idStateCount {
		if name := s.String(); name == "" || seen[name] {
			t.Errorf("state %d is called %q", s, name)
		} else {
			seen[name] = true
		}
	}
	if s := idStateCount.String(); s != "IDState(17)" {
		t.Error(s)
	}
}

// From every state but the last ones one can go on, and every state can be
// reached from IDIdle.
func TestIDState_graph(t *testing.T) {
	reached := in(IDIdle)
	for range idStateCount {
		for s := range idStateCount {
			if reached.has(s) {
				reached |= idNext[s] | in(IDDestroyed)
			}
		}
	}
	if reached != 1<<idStateCount-1 {
		t.Errorf("reached: %v", reached)
	}
	for s := range idStateCount {
		end := s == IDListening || s == IDGone || s == IDDestroyed
		if end != (idNext[s] == 0) {
			t.Errorf("%v is followed by %v", s, idNext[s])
		}
	}
}

// A transition that the table does not have is a bug of ours, and says so.
func TestSetState_illegal(t *testing.T) {
	for from := range idStateCount {
		for to := range idStateCount {
			func() {
				defer func() {
					legal := idNext[from].has(to) || to == IDDestroyed && from != IDDestroyed
					if msg := recover(); (msg == nil) != legal {
						t.Errorf("%v to %v: %v", from, to, msg)
					}
				}()
				(&CMID{state: from}).setState(to)
			}()
		}
	}
}
