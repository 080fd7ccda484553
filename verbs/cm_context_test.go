package verbs

import (
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// The time limits of many identifiers, set, moved and taken away at random,
// fire when they are due and not before.
func TestExpireCM_random(t *testing.T) {
	r := newCMRig(t)
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[*CMID]mono.Time{}
	fired := 0
	for range 2000 {
		switch rng.IntN(4) {
		case 0:
			id, _ := r.connecting(ConnParam{Timeout: mono.Duration(1 + rng.IntN(1000))})
			want[id] = id.deadline
		case 1:
			for id := range want {
				ok(t, id.Destroy())
				delete(want, id)
				break
			}
		case 2:
			for id := range want {
				id.ch.ctx.cm.arm(id, r.clock.now.Add(mono.Duration(1+rng.IntN(1000))))
				want[id] = id.deadline
				break
			}
		case 3:
			r.sleep(mono.Duration(rng.IntN(200)))
		}
		for e, got := r.ch.take(); got; e, got = r.ch.take() {
			if e.Type != CMUnreachable || want[e.ID] > r.clock.now {
				t.Fatalf("%v at %v; it was due at %v", e.Type, r.clock.now, want[e.ID])
			}
			delete(want, e.ID)
			ok(t, e.ID.Destroy())
			fired++
		}
		for id, at := range want {
			if at <= r.clock.now {
				t.Fatalf("state %v at %v; it was due at %v", id.State(), r.clock.now, at)
			}
		}
		if next := r.ctx.cm.deadline; len(want) > 0 && next == mono.Never {
			t.Fatal("nobody will call")
		}
	}
	if fired < 100 {
		t.Errorf("only %d time limits have passed: is the test right?", fired)
	}
}

// A thousand connections leave nothing behind.
func TestCMID_thousandConnections(t *testing.T) {
	r := newCMRig(t)
	for i := range 1000 {
		id, s := r.established(i%2 == 0)
		q := id.conn
		if i%3 == 0 {
			s.end()
			r.event(id, CMDisconnected)
		}
		for len(r.ctx.cm.ids) > 0 {
			ok(t, r.ctx.cm.ids[0].Destroy())
		}
		q.Destroy()
		r.noEvent()
	}
	if m := &r.ctx.cm; r.carrier.opened != 0 || len(m.timed) != 0 || len(m.ids) != 0 || len(r.carrier.users) > 4 || cap(m.ids) > 8 || cap(r.ch.events) > 8 {
		t.Errorf("%d streams open of %d, %d time limits, %d identifiers", r.carrier.opened, len(r.carrier.users), len(m.timed), len(m.ids))
	}
}
