package verbs

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// The peer ends the connection, in order or not, or we do.
func TestDisconnect(t *testing.T) {
	for _, initiator := range []bool{true, false} {
		t.Run(fmt.Sprint("initiator ", initiator), func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.established(initiator)
			q := id.conn
			s.end()
			if e := r.event(id, CMDisconnected); e.Err != nil {
				t.Errorf("%v", e.Err)
			}
			r.expect(id, IDGone)
			ok(t, id.Disconnect())
			r.noEvent()
			if q.State() != StateErr {
				t.Errorf("queue pair in state %v", q.State())
			}

			id, s = r.established(initiator)
			s.fail(syscall.ECONNRESET)
			if e := r.event(id, CMDisconnected); !errors.Is(e.Err, syscall.ECONNRESET) {
				t.Errorf("%v", e.Err)
			}

			id, s = r.established(initiator)
			ok(t, id.Disconnect())
			ok(t, id.Disconnect())
			r.step()
			if !s.finished && !s.closed {
				t.Error("our end of the stream is open")
			}
			if !s.closed {
				s.end()
			}
			if e := r.event(id, CMDisconnected); e.Err != nil {
				t.Errorf("%v", e.Err)
			}
			r.noEvent()
			r.expect(id, IDGone)
		})
	}
}

// Both ends disconnect at the same time.
func TestDisconnect_crossing(t *testing.T) {
	r := newCMRig(t)
	id, s := r.established(true)
	s.end()
	ok(t, id.Disconnect())
	if e := r.event(id, CMDisconnected); e.Err != nil {
		t.Errorf("%v", e.Err)
	}
	r.noEvent()
}

// In peer-to-peer mode the responder waits for the first message; the peer
// leaves instead.
func TestStarting_peerLeaves(t *testing.T) {
	r := newCMRig(t)
	id, s := r.startingRTR()
	r.noEvent()
	r.expect(id, IDStarting)
	s.end()
	if e := r.event(id, CMConnectError); !errors.Is(e.Err, syscall.ECONNRESET) {
		t.Errorf("%v", e.Err)
	}
}

// Destroy of a connection aborts it; the queue pair stays, and is over.
func TestDestroy_established(t *testing.T) {
	r := newCMRig(t)
	id, s := r.established(true)
	q := id.QP
	ok(t, id.Destroy())
	r.noEvent()
	if !s.closed || !s.aborted || q.State() != StateErr {
		t.Errorf("closed %v, aborted %v, queue pair in state %v", s.closed, s.aborted, q.State())
	}
}

// Destroying the queue pair ends the connection.
func TestDestroy_queuePair(t *testing.T) {
	r := newCMRig(t)
	id, s := r.established(true)
	id.QP.Destroy()
	r.step()
	if !s.closed {
		s.end()
	}
	r.event(id, CMDisconnected)
	r.expect(id, IDGone)
}

// The user has disconnected when the first message of peer-to-peer mode comes:
// it hears of the end only.
func TestDisconnect_whileStarting(t *testing.T) {
	r := newCMRig(t)
	id, s := r.startingRTR()
	ok(t, id.Disconnect())
	r.expect(id, IDDisconnecting)
	id.established()
	r.expect(id, IDDisconnecting)
	s.end()
	if e := r.event(id, CMDisconnected); e.Err != nil {
		t.Errorf("%v", e.Err)
	}
	r.noEvent()
}
