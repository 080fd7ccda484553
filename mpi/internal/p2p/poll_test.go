package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// volley is a hook that sends many messages from inside a step.
type volley struct {
	ep   *Endpoint
	left int
}

func (v *volley) Advance() (n int) {
	for ; v.left > 0; v.left-- {
		if !v.ep.out.trySend(match.Envelope{Context: 1, Tag: int32(v.left)}, 1, view{buf: []byte{byte(v.left)}}) {
			return n // no room before the next step
		}
		n++
	}
	return n
}

// TestFollow_sendsInsideAStep: more messages than share a frame, which must not
// make a step inside the step, and all of which arrive.
func TestFollow_sendsInsideAStep(t *testing.T) {
	a, b := newEnds(t)
	const messages = 3 * burstMax
	var in [messages][1]byte
	var receives [messages]*Request
	for i := range receives {
		receives[i] = b.Irecv(match.Envelope{Context: 1, Source: 0, Tag: int32(i + 1)}, in[i][:])
	}
	v := &volley{a, messages}
	a.Inside().SetProgressHook(v)
	for i := range receives {
		for !receives[i].Done() {
			a.Engine().Step()
			b.Engine().Step()
		}
		_, err := receives[i].Wait()
		must(t, err)
		if in[i][0] != byte(i+1) {
			t.Errorf("message %d has the data of %d", i+1, in[i][0])
		}
	}
	a.Inside().SetProgressHook(nil)
	v.left = 1
	a.Engine().Step()
	if v.left != 1 {
		t.Error("it is still called")
	}
}

// TestTrySend_notWhatTakesARequest leaves long messages, those to the own rank and
// those to a lost one to Isend.
func TestTrySend_notWhatTakesARequest(t *testing.T) {
	ep := newEnd(t)
	env := match.Envelope{Context: 1}
	if ep.out.trySend(env, 1, view{buf: make([]byte, ep.cfg.EagerMax+1)}) || ep.out.trySend(env, 0, view{}) {
		t.Error("a long message, or one to itself, was sent at once")
	}
	ep.failures.failPeer(2, &Error{Code: PeerLost, Peer: 2})
	if ep.out.trySend(env, 1, view{}) || ep.out.trySend(match.Envelope{}, 2, view{}) {
		t.Error("a message of a collective was sent after a loss, or one to the lost rank")
	}
	if !ep.out.trySend(match.Envelope{}, 1, view{}) {
		t.Error("a message to another rank was not sent")
	}
}

// TestIrecv_collectiveAfterALoss: a message of a collective that has come already
// is of ranks that have failed elsewhere.
func TestIrecv_collectiveAfterALoss(t *testing.T) {
	ep := newEnd(t)
	message := func(context uint32) {
		b := make([]byte, headerLen)
		(&header{kind: kindEager, context: context, source: 1, tag: 5}).put(b)
		ep.poller.arrived(b)
	}
	message(1)
	message(0)
	ep.failures.failPeer(2, &Error{Code: PeerLost, Peer: 2})
	if _, err := ep.Recv(match.Envelope{Context: 1, Source: 1, Tag: 5}, nil); err == nil {
		t.Error("a collective went on after a loss")
	}
	_, err := ep.Recv(match.Envelope{Context: 0, Source: 1, Tag: 5}, nil)
	must(t, err)
}
