package verbs

import (
	"errors"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
)

// noPark is for engines that nobody waits on.
type noPark struct{}

func (noPark) Park(mono.Time, mono.Duration) bool { return false }

// newNotified returns a completion queue with a channel.
func newNotified(t testing.TB, depth int) (*CompChannel, *CQ) {
	t.Helper()
	c := newContext()
	c.cfg.Engine = progress.New(mono.Real{}, noPark{})
	ch, err := c.CreateCompChannel()
	ok(t, err)
	q, err := c.CreateCQ(CQInit{Depth: depth, Channel: ch, UserData: "mine"})
	ok(t, err)
	return ch, q
}

func complete(t testing.TB, q *CQ, wc WC) {
	t.Helper()
	if !q.reserve() {
		t.Fatal("no place")
	}
	*q.next() = wc
}

// Places are counted from posting to polling, in a ring whose size is no power
// of two.
func TestCQ_cannotOverflow(t *testing.T) {
	_, q := newNotified(t, 5)
	var wcs [3]WC
	posted, polled := uint64(0), uint64(0)
	for range 100 {
		for q.reserve() {
			*q.next() = WC{WRID: posted}
			posted++
		}
		if posted-polled != 5 || q.Len() != 5 || q.room() != 0 {
			t.Fatalf("%d completions fit into a queue of 5", posted-polled)
		}
		n := q.Poll(wcs[:1+posted%3])
		for _, wc := range wcs[:n] {
			if wc.WRID != polled {
				t.Fatalf("completion %d came when %d was due", wc.WRID, polled)
			}
			polled++
		}
	}
	if q.UserData != "mine" {
		t.Error("UserData got lost")
	}
}

// Steps: a arms for any completion, s for solicited ones; . is a completion, !
// a solicited one, x a failed one; p polls all, e takes an event that must be
// there, - there must be none.
func TestReqNotify(t *testing.T) {
	for script, why := range map[string]string{
		"-.-":       "not armed: no event",
		"a-.e-":     "armed: the next completion",
		"a..!e-":    "once only",
		".a-":       "what was there before makes no event",
		".a-.e":     "but the next does",
		"a.pe-":     "polling does not take the event away",
		"a.ae-":     "nor does arming",
		"a.a.ee-":   "armed twice, twice completed: two events",
		"aa.e-":     "armed twice, completed once: one event",
		"s-.-!e-":   "a solicited one",
		"s.-xe-":    "a failed one",
		"s.p.p!pe-": "solicited behind others that were polled",
		"s!pe-":     "solicited and polled",
		"as.e-":     "asking for less does not take back what was asked for",
		"sa.e-":     "asking for more does",
		".s!pa.ee-": "one after the other",
		"ap.p!e-":   "polling an empty queue does not disarm",
		"sp.p!e-":   "likewise for solicited ones",
		"a.ea.ea.e": "armed again and again",
		"!pa-.e":    "the queue was empty before",
	} {
		ch, q := newNotified(t, 8)
		var wcs [8]WC
		for i, step := range script {
			got, have := (*CQ)(nil), false
			switch step {
			case 'a', 's':
				ok(t, q.ReqNotify(step == 's'))
			case '.':
				complete(t, q, WC{})
			case '!':
				complete(t, q, WC{Flags: WCWithSolicited})
			case 'x':
				complete(t, q, WC{Status: WRFlushErr})
			case 'p':
				q.Poll(wcs[:])
			case 'e', '-':
				if got, have = ch.GetEvent(); have != (step == 'e') || have && got != q {
					t.Errorf("%s (%s): step %d: event %v", script, why, i, have)
				}
			}
		}
	}
}

func TestReqNotify_refuses(t *testing.T) {
	c := newContext()
	q, err := c.CreateCQ(CQInit{})
	ok(t, err)
	if err := q.ReqNotify(false); !errors.Is(err, ErrInvalid) {
		t.Errorf("without a channel: %v", err)
	}
	ok(t, q.Destroy())
	if err := q.ReqNotify(false); !errors.Is(err, ErrClosed) {
		t.Errorf("destroyed: %v", err)
	}
}

func TestCQ_Destroy(t *testing.T) {
	ch, q := newNotified(t, 4)
	q.users = 2
	if err := q.Destroy(); !errors.Is(err, ErrBusy) {
		t.Errorf("in use: %v", err)
	}
	q.users = 0
	ok(t, q.ReqNotify(false))
	complete(t, q, WC{})
	q.look()
	if err := ch.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("closing the channel first: %v", err)
	}
	ok(t, q.Destroy())
	if _, got := ch.GetEvent(); got {
		t.Error("an event of a queue that was destroyed")
	}
	if err := q.Destroy(); !errors.Is(err, ErrInvalid) {
		t.Errorf("twice: %v", err)
	}
	ok(t, ch.Close())
}

func TestCreateCQ_refuses(t *testing.T) {
	ch, _ := newNotified(t, 1)
	c := newContext()
	for _, bad := range []CQInit{{Depth: -1}, {Depth: maxQueue + 1}, {Channel: ch}} {
		if _, err := c.CreateCQ(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestAllocs_notify(t *testing.T) {
	ch, q := newNotified(t, 4)
	var wcs [4]WC
	if n := testing.AllocsPerRun(100, func() {
		ok(t, q.ReqNotify(false))
		complete(t, q, WC{})
		if _, got := ch.GetEvent(); !got || q.Poll(wcs[:]) != 1 {
			t.Fatal("no event, or no completion")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCQ(b *testing.B) {
	_, q := newNotified(b, 4)
	var wcs [4]WC
	for b.Loop() {
		q.reserve()
		*q.next() = WC{}
		q.Poll(wcs[:])
	}
}
