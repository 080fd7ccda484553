package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// newWholes makes two ranks that look at their connection when they wait for a long message, and know that.
func newWholes(t testing.TB) *crew { return wholes(newLanes(t, 2)) }

// wholes has the first two ranks look at their connection.
func wholes(w *crew) *crew {
	for range laneRow + 1 {
		w.talk(0, 1, 20_000)
		w.talk(1, 0, 20_000)
	}
	w.until(func() bool { return w.eps[0].peers[1].listens && w.eps[1].peers[0].listens })
	return w
}

// TestLane_whole sends and receives in turns: no datagram goes for any message.
func TestLane_whole(t *testing.T) {
	w := newWholes(t)
	defer w.drain()
	for w.turn() > 0 {
	}
	linked, before := w.eps[0].Stats.Linked, w.eps[0].net.qp.Stats.Sends
	for range 3 * laneBuffers {
		w.talk(0, 1, 20_000)
		w.talk(1, 0, 20_000)
	}
	if got := w.eps[0].Stats.Linked - linked; got != 3*laneBuffers {
		t.Errorf("%d messages went over the connection, want %d", got, 3*laneBuffers)
	}
	if got := w.eps[0].net.qp.Stats.Sends - before; got != 0 {
		t.Errorf("%d words went in datagrams, want none", got)
	}
}

// TestLane_wholeKeepsOrder sends messages whose data goes over the connection among those in datagrams, all with
// one envelope: whichever way is looked at first, they are received in their order.
func TestLane_wholeKeepsOrder(t *testing.T) {
	lengths := []int{20_000, 100, 20_000, 20_000, 8, 3000, 20_000, 100_000, 20_000, 1, 20_000}
	for _, first := range []bool{true, false} {
		w := newWholes(t)
		var all, in []*Request
		send := func(turns bool) {
			for _, n := range lengths {
				all = append(all, w.eps[0].Isend(word(0, 1), 1, make([]byte, n)))
				if turns {
					w.turn(0)
				}
			}
		}
		receive := func() {
			for range lengths {
				in = append(in, w.eps[1].Irecv(match.Envelope{Source: match.Any, Tag: match.Any}, make([]byte, 100_000)))
			}
		}
		if first {
			receive()
			send(false)
		} else {
			send(true)
			receive()
		}
		all = append(all, in...)
		for _, r := range all {
			w.until(r.Done)
		}
		for i, r := range in {
			if st, err := r.Wait(); err != nil || st.Bytes != lengths[i] {
				t.Errorf("message %d has %d bytes, want %d: %v", i, st.Bytes, lengths[i], err)
			}
		}
		w.drain()
	}
}

// TestLane_looks has short messages come where long ones may: the sender is told, and says in datagrams what it
// sends over the connection, until there are long ones again.
func TestLane_looks(t *testing.T) {
	w := newWholes(t)
	defer w.drain()
	r := w.eps[1].Irecv(word(0, 1), make([]byte, 20_000))
	s := w.eps[0].Isend(word(0, 1), 1, make([]byte, 8))
	w.until(func() bool { return r.Done() && s.Done() && !w.eps[0].peers[1].listens })
	if w.eps[1].lanes.looking != 0 {
		t.Errorf("%d connections are looked at", w.eps[1].lanes.looking)
	}
	for range laneRow {
		w.talk(0, 1, 20_000)
	}
	w.until(func() bool { return w.eps[0].peers[1].listens })
	for _, r := range []*Request{r, s} {
		_, err := r.Wait()
		must(t, err)
	}
}

// TestLane_wholeWaits has a message come over the connection before a datagram that was sent before it.
func TestLane_wholeWaits(t *testing.T) {
	w := newWholes(t)
	defer w.drain()
	p := &w.eps[1].peers[0]
	p.got[0].plain-- // as if there were one
	s := w.eps[0].Isend(word(0, 1), 1, make([]byte, 20_000))
	r := w.eps[1].Irecv(word(0, 1), make([]byte, 20_000))
	w.until(func() bool { return p.lane.earlyIn != p.lane.earlyOut })
	if w.turn(); r.Done() {
		t.Error("the message is received before the one that was sent before it")
	}
	p.got[0].plain++
	w.until(func() bool { return r.Done() && s.Done() })
	for _, r := range []*Request{r, s} {
		_, err := r.Wait()
		must(t, err)
	}
	if len(w.eps[1].lanes.late) != 0 || p.lane.late {
		t.Error("the rank is looked after still")
	}
}

// TestLane_looksForLongOnly posts a receive for what comes in datagrams when it is alone, and has such a message come
// where a longer one may: to look at the connection in such waits would only take time where ranks share processors.
func TestLane_looksForLongOnly(t *testing.T) {
	for _, longer := range []int{0, 1} {
		w := newWholes(t)
		w.eps[1].maxSpins = spinsLeast
		n := w.eps[1].lanes.alone
		r := w.eps[1].Irecv(word(0, 1), make([]byte, n+longer))
		if got := w.eps[1].lanes.looking; got != longer {
			t.Errorf("%d connections are looked at for %d bytes more than come in datagrams", got, longer)
		}
		s := w.eps[0].Isend(word(0, 1), 1, make([]byte, n))
		w.until(func() bool { return r.Done() && s.Done() && !w.eps[0].peers[1].listens })
		for _, r := range []*Request{r, s} {
			_, err := r.Wait()
			must(t, err)
		}
		if w.eps[1].lanes.looking != 0 {
			t.Error("the connection is looked at still")
		}
		w.drain()
	}
}

// TestLane_looksInStreams has messages that alone come in datagrams come over the connection, as in a stream: where each rank
// has a processor the connection is looked at for them, until some have come in datagrams and none there between.
func TestLane_looksInStreams(t *testing.T) {
	w := newLanes(t, 2)
	defer w.drain()
	from, to := &w.eps[0].peers[1], w.eps[1]
	stream := func(n int) {
		for range n {
			from.answered = false
			w.talk(0, 1, to.lanes.few)
		}
	}
	stream(laneRow)
	w.until(func() bool { return from.listens })
	for range 3 {
		from.answered = true
		w.talk(0, 1, to.lanes.few)
		stream(1)
	}
	if !to.peers[0].looks() {
		t.Error("the connection is not looked at any more, though the stream goes on")
	}
	for i := range laneQuiet + 1 {
		if from.answered = true; i == 0 && !to.peers[0].looks() {
			t.Error("the connection is not looked at any more")
		}
		w.talk(0, 1, to.lanes.few)
	}
	w.until(func() bool { return !from.listens })
}

// TestLane_alones sends messages that go in datagrams where those before them were alone, too.
func TestLane_alones(t *testing.T) {
	w := newLanes(t, 2)
	defer w.drain()
	p, ls := &w.eps[0].peers[1], &w.eps[0].lanes
	ln := ls.of(p)
	ls.alone = ls.few + 1000
	over := func(answered bool, n int) bool {
		before := ln.sent
		p.answered = answered
		w.talk(0, 1, n)
		return ln.sent != before
	}
	for range 2 {
		if !over(false, ls.alone) {
			t.Error("one that follows another one goes in datagrams")
		}
		for i := range 2 * laneAlones {
			if got, want := over(true, ls.alone), i < laneAlones; got != want {
				t.Errorf("message %d alone goes over the connection: %v", i, got)
			}
		}
		if over(true, ls.few) || !over(true, ls.alone+1) {
			t.Error("how long a message is that always goes over the connection, or never, when it is alone")
		}
	}
}
