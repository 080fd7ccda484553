package route

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/testbed"
)

// TestWatch tells of each trouble, the gravest first, and of its end.
func TestWatch(t *testing.T) {
	b := open(t, Config{})
	link := b.Link()
	told := make(chan *Trouble, 100)
	var w *Watch
	b.inA(func() (err error) {
		w, err = OpenWatch(WatchConfig{Link: b.a.Dev, Addr: link.Addr, Delay: time.Millisecond})
		return err
	})
	defer w.Close()
	w.Start(func(tr *Trouble) { told <- tr })
	for _, c := range []struct {
		on   *testbed.Host
		ip   []string
		want error
	}{
		{b.a, []string{"link", "set", b.a.Dev, "down"}, ErrLinkDown},
		{b.a, []string{"link", "set", b.a.Dev, "up"}, nil},
		{b.b, []string{"link", "set", b.b.Dev, "down"}, ErrNoCarrier},
		{b.b, []string{"link", "set", b.b.Dev, "up"}, nil},
		{b.a, []string{"link", "set", b.a.Dev, "mtu", "1400"}, ErrShrunk},
		{b.a, []string{"link", "set", b.a.Dev, "down"}, ErrLinkDown},
		{b.a, []string{"link", "set", b.a.Dev, "up"}, ErrShrunk},
		{b.a, []string{"link", "set", b.a.Dev, "mtu", "9500"}, nil},
		{b.a, []string{"addr", "flush", "dev", b.a.Dev}, ErrNoAddress},
		{b.a, []string{"addr", "add", link.Addr.String() + "/24", "dev", b.a.Dev}, nil},
		{b.a, []string{"link", "set", b.a.Dev, "name", "other0"}, nil}, // is no trouble
		{b.a, []string{"link", "del", "other0"}, ErrGone},
	} {
		b.ip(c.on, c.ip...)
		for c.ip[len(c.ip)-1] != "other0" || c.want != nil {
			// On the way up a device may be without carrier for a moment.
			if tr := <-told; reasonOf(tr) == c.want {
				break
			} else if reasonOf(tr) != ErrNoCarrier {
				t.Fatalf("ip %v: %v; want %v", c.ip, tr, c.want)
			}
		}
		if err := w.Trouble(); !errors.Is(err, c.want) {
			t.Fatalf("ip %v: it is %v; want %v", c.ip, err, c.want)
		}
	}
	if tr := w.Now(); !tr.Final() {
		t.Errorf("%v is not final", tr)
	}
}

// queueCounter is a card whose queues are what a test says.
type queueCounter struct{ atomic.Int32 }

func (q *queueCounter) Count() int { return int(q.Load()) }
func (q *queueCounter) Close()     { q.Store(-1) }

// TestWatch_queues: queues that are added are trouble, and fewer or unknown ones are not.
func TestWatch_queues(t *testing.T) {
	b := open(t, Config{})
	var card queueCounter
	card.Store(2)
	var w *Watch
	b.inA(func() (err error) {
		w, err = OpenWatch(WatchConfig{Link: b.a.Dev, Queues: &card})
		return err
	})
	for _, c := range []struct {
		queues int32
		want   error
	}{{2, nil}, {4, ErrQueues}, {2, nil}, {1, nil}, {0, nil}, {3, ErrQueues}} {
		card.Store(c.queues)
		if err := w.Trouble(); !errors.Is(err, c.want) {
			t.Errorf("%d queues, and 2 when it was opened: %v; want %v", c.queues, err, c.want)
		}
	}
	if tr := w.Now(); tr.Final() || !tr.Partial() {
		t.Errorf("%v is final, or lets nothing pass", tr)
	}
	if err := w.Close(); err != nil || card.Count() != -1 {
		t.Errorf("%v; the counter says %d queues after Close", err, card.Count())
	}
}

// TestWatch_suspended: that the host was suspended is told, if a driver may have forgotten
// a program meanwhile.
func TestWatch_suspended(t *testing.T) {
	b := open(t, Config{})
	for _, xdp := range []bool{false, true} {
		var w *Watch
		b.inA(func() (err error) {
			w, err = OpenWatch(WatchConfig{Link: b.a.Dev, XDP: xdp})
			return err
		})
		if err := w.Trouble(); err != nil {
			t.Error(err)
		}
		w.slept -= time.Minute
		if err := w.Trouble(); errors.Is(err, ErrSuspended) != xdp {
			t.Errorf("XDP %v: %v", xdp, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatch_lasting: what lasts is told again and again.
func TestWatch_lasting(t *testing.T) {
	b := open(t, Config{})
	told := make(chan *Trouble, 100)
	var w *Watch
	b.inA(func() (err error) {
		w, err = OpenWatch(WatchConfig{Link: b.a.Dev, Delay: time.Millisecond, Limit: 2 * time.Millisecond})
		return err
	})
	b.ip(b.a, "link", "set", b.a.Dev, "mtu", "1400")
	w.Start(func(tr *Trouble) { told <- tr })
	for lasting := 0; lasting < 2; {
		switch tr := <-told; {
		case reasonOf(tr) != ErrShrunk:
			t.Fatal(tr)
		case tr.Lasting():
			lasting++
			b.ip(b.a, "link", "set", b.a.Dev, "mtu", "1450") // it looks again
		case lasting > 0:
			t.Fatalf("%v does not last any more", tr)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Trouble() != nil {
		t.Error("it tells of trouble after Close")
	}
}
