package verbs

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// Arbitrary bytes of a stranger hurt nobody.
func FuzzAccept(f *testing.F) {
	var peer mpa.Initiator
	for _, c := range []mpa.Config{{}, {Revision: 1}, {RTR: mpa.RTRRead, IRD: 4, ORD: 4, CRC: true, Markers: true}} {
		b, err := peer.Start(c, []byte("hello"))
		ok(f, err)
		f.Add(b, uint8(3), true)
		f.Add(append(b, "behind"...), uint8(30), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint8, accept bool) {
		r := newCMRig(t)
		l, carrier := r.listener(0)
		s := carrier.connect()
		n := min(int(cut), len(b))
		s.feed(b[:n])
		r.step()
		e, got := r.ch.take()
		if !s.closed {
			s.feed(b[n:])
			r.step()
		}
		if !got {
			e, got = r.ch.take()
		}
		if got && e.ID.State() == IDAsked {
			if accept {
				ok(t, e.ID.Accept(ConnParam{QP: r.newQP(), RTR: mpa.RTRWrite}))
			} else {
				ok(t, e.ID.Reject(nil))
			}
			r.step()
			if !s.closed && s.state == fabric.StreamOpen {
				s.feed(b) // as FPDUs
			}
		}
		r.sleep(mpa.RequestTimeout)
		r.sleep(mpa.ReplyTimeout)
		r.expect(l, IDListening)
		for _, id := range r.ctx.cm.ids {
			if id.deadline != mono.Never {
				t.Errorf("an identifier in state %v waits on", id.State())
			}
		}
	})
}

// Arbitrary bytes of a responder hurt nobody either.
func FuzzConnect(f *testing.F) {
	var peer mpa.Responder
	var initiator mpa.Initiator
	request, err := initiator.Start(mpa.Config{IRD: maxReads, ORD: maxReads}, nil)
	ok(f, err)
	_, _, err = peer.Request(request)
	ok(f, err)
	for _, c := range []mpa.Config{{}, {IRD: 4, ORD: 4, CRC: true, Markers: true}} {
		b, _, err := peer.Accept(c, []byte("hello"))
		ok(f, err)
		f.Add(b, uint8(3), false)
		f.Add(append(b, "behind"...), uint8(30), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint8, end bool) {
		r := newCMRig(t)
		id, s := r.requesting(ConnParam{})
		n := min(int(cut), len(b))
		s.feed(b[:n])
		r.step()
		if !s.closed {
			s.feed(b[n:])
			if end {
				s.end()
			}
		}
		r.sleep(mpa.ReplyTimeout)
		if k := r.ch.kinds(); k == "" {
			t.Errorf("nothing was heard of a connection in state %v", id.State())
		}
	})
}
