package verbs

import (
	"errors"
	"syscall"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/progress"
)

// Events come in the order in which things happened, however many wait.
func TestCMChannel_order(t *testing.T) {
	r := newCMRig(t)
	ids := make([]*CMID, 1000)
	for i := range ids {
		ids[i] = r.newID()
		ids[i].UserData = i
		ok(t, ids[i].ResolveAddr(somePeer, 0))
	}
	next := 0
	take := func(n int) {
		for range n {
			e, got := r.ch.GetEvent()
			if !got || e.ID.UserData != next {
				t.Fatalf("event %v of %v, want %d", e.Type, e.ID, next)
			}
			next++
		}
	}
	take(400)
	ok(t, ids[401].Destroy()) // its event goes with it
	take(1)
	next++
	take(len(ids) - 402)
	r.noEvent()
	ok(t, ids[0].ResolveRoute(0))
	r.event(ids[0], CMRouteResolved)
}

func TestCMChannel_Close(t *testing.T) {
	r := newCMRig(t)
	id := r.newID()
	if err := r.ch.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	ok(t, id.Destroy())
	ok(t, r.ch.Close())
	if err := r.ch.Close(); !errors.Is(err, ErrInvalid) {
		t.Errorf("second Close: %v", err)
	}
	if _, err := r.ch.CreateID(); !errors.Is(err, ErrClosed) {
		t.Errorf("CreateID: %v", err)
	}
	if _, got := r.ch.GetEvent(); got {
		t.Error("an event of a closed channel")
	}
	if e := r.ch.Wait(); e.Type != 0 || r.ch.FD() != -1 {
		t.Errorf("Wait: %v, FD %d", e, r.ch.FD())
	}
}

func TestCreateCMChannel_refuses(t *testing.T) {
	r := newCMRig(t)
	ok(t, r.ctx.Close())
	if _, err := r.ctx.CreateCMChannel(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	c := &Context{cfg: Config{Datagram: noCarrier{arena: mem.Over(make([]byte, 1<<16))}, Engine: progress.New(r.clock, parkless{})}}
	if _, err := c.CreateCMChannel(); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Closing the context ends identifiers in all states.
func TestCMChannel_closedWithItsContext(t *testing.T) {
	for s := range IDDestroyed {
		t.Run(s.String(), func(t *testing.T) {
			r := newCMRig(t)
			id, _ := r.inState(s)
			ok(t, r.ctx.Close())
			r.expect(id, IDDestroyed)
			if err := id.Destroy(); !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
			if e := r.ch.Wait(); e.Type != 0 {
				t.Errorf("event %v", e.Type)
			}
		})
	}
}

func TestCMEventType_String(t *testing.T) {
	seen := map[string]bool{}
	for k := CMAddrResolved; k < cmEventCount; k++ {
		if s := k.String(); s == "" || seen[s] {
			t.Errorf("event %d is called %q", k, s)
		} else {
			seen[s] = true
		}
	}
	if s := cmEventCount.String(); s != "CMEventType(11)" {
		t.Error(s)
	}
}

func TestCMError(t *testing.T) {
	var err error = &CMError{Peer: somePeer, Err: errNoAnswer}
	if s := err.Error(); s != "verbs: connection with 10.0.0.2:7: it has not answered in time: connection timed out" {
		t.Error(s)
	}
	if !errors.Is(err, syscall.ETIMEDOUT) {
		t.Error("the reason is lost")
	}
}
