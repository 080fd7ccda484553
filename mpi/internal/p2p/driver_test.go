package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/progress"
)

// parks is a progress.Parker that counts how often the processor is given away.
type parks int

func (p *parks) Park(mono.Time, mono.Duration) bool { *p++; return true }

// yields counts how often the processor is given away by a rank that does not wait.
type yields struct{ parks }

func (y *yields) Yield() { y.parks++ }

// Who asks again and again in vain gives its processor to others, where they share it.
func TestDriver_asks(t *testing.T) {
	gave := &yields{}
	ep := &Endpoint{eng: progress.New(&still{now: 1}, gave), peers: make([]peer, 2)}
	ep.driver = driver{ep: ep, maxSpins: spinsLeast, maxHits: hitsFar, waits: &waits{ep: ep}}
	given := func(ask func()) int {
		gave.parks = 0
		for range 4 * asksNear {
			ask()
		}
		return int(gave.parks)
	}
	if n := given(ep.glance); n != 4*asksNear {
		t.Errorf("%d of %d looks in vain give the processor to others", n, 4*asksNear)
	}
	if n := given(ep.ask); n != 4*asksNear {
		t.Errorf("%d of %d steps in vain give the processor to others", n, 4*asksNear)
	}
	ep.maxHits = hitsNear
	if n := given(ep.ask); n != 4 {
		t.Errorf("%d of %d steps in vain give the processor to others that may answer from their own", n, 4*asksNear)
	}
	ep.maxSpins = spinsMost
	if n := given(ep.glance) + given(ep.ask); n != 0 {
		t.Errorf("a rank with a processor of its own gives it away %d times", n)
	}
}

// Who waits for another host keeps its processor for a while, unless that was in vain often.
func TestDriver_looksOn(t *testing.T) {
	w := &still{now: 1}
	parked := new(parks)
	ep := &Endpoint{eng: progress.New(w, parked), peers: make([]peer, 3)}
	ep.driver = driver{ep: ep, maxSpins: spinsLeast, waits: &waits{ep: ep}}
	ep.peers[2].channel = &shm.Channel{}
	looks := func(r *Request) (n int) {
		r.gen++
		for before := *parked; ; n++ {
			w.now = w.now.Add(mono.Microsecond)
			if ep.progress(r); *parked != before || n > 1000 {
				return n
			}
		}
	}
	far, near := &Request{peer: 1}, &Request{peer: 2}
	if n := looks(near); n != 0 {
		t.Errorf("%d looks for a rank of this host", n)
	}
	short := looks(far)
	if short < 5 || short > 20 {
		t.Fatalf("%d us for a message without data", short)
	}
	far.data.buf = make([]byte, 2*farLength)
	if n := looks(far); n <= short {
		t.Errorf("%d us for a long message, %d for a short one", n, short)
	}
	if ep.far.gives = true; looks(far) != 0 {
		t.Error("a rank that sends as much itself keeps its processor")
	}
	ep.far.gives = false
	for range farVain {
		looks(far)
	}
	again := 0
	for range farAgain {
		if looks(far) > 0 {
			again++
		}
	}
	if again != 1 {
		t.Errorf("%d of %d waits look once more after many in vain", again, farAgain)
	}
	for looks(far) == 0 { // in vain
	}
	w.now, far.gen = w.now.Add(mono.Microsecond), far.gen+1
	ep.step()
	ep.looksOn(far)
	for ep.far.over {
		far.gen++
		ep.looksOn(far)
	}
	if looks(far) == 0 { // the one before was over at once
		t.Error("a rank does not look for what has come soon")
	}
	if ep.maxSpins = spinsMost; looks(far) != 0 {
		t.Error("a rank with a processor of its own has nothing to give away")
	}
}
