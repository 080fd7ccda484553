package p2p

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// brokenMessage is one that is under way when the connection breaks: the memory at either end is
// plain, or what a datatype with gaps picks out.
type brokenMessage struct {
	from       int
	send, recv *Request
	want       []byte
	got        func() []byte
}

// newBrokenMessage starts a message of n elements of 4 bytes.
func newBrokenMessage(w *crew, i, n int, fromGaps, toGaps bool) *brokenMessage {
	from := i % 2
	env := word(from, 1-from)
	m := &brokenMessage{from: from}
	_, src := comb(w.t, n, byte(i))
	m.want = packed(src)
	if toGaps {
		_, dst := comb(w.t, n, 77)
		m.got = func() []byte { return packed(dst) }
		m.recv = w.eps[1-from].IrecvTyped(env, dst)
	} else {
		in := make([]byte, 4*n)
		m.got = func() []byte { return in }
		m.recv = w.eps[1-from].Irecv(env, in)
	}
	if fromGaps {
		m.send = w.eps[from].IsendTyped(env, 1-from, src)
	} else {
		m.send = w.eps[from].Isend(env, 1-from, bytes.Clone(m.want))
	}
	return m
}

// TestHybrid_connectionBreaks breaks connections in the middle of transfers, at one end or
// at both: each message arrives once, whole and in order, and nothing is left.
func TestHybrid_connectionBreaks(t *testing.T) {
	resent, again := 0, 0
	for seed := range uint64(40) {
		w := newCrew(t, 2, Config{Transport: Hybrid, PromoteMessages: 1, Receives: 8, Sends: 4})
		w.talk(0, 1, 100_000)
		w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
		rng := rand.New(rand.NewPCG(seed, 3))
		var all []*brokenMessage
		for i := range 12 {
			gaps := rng.IntN(4)
			all = append(all, newBrokenMessage(w, i, 25_000+rng.IntN(500_000), gaps&1 != 0, gaps&2 != 0))
		}
		for range rng.IntN(60) {
			w.turn(rng.IntN(2))
		}
		for _, m := range all {
			if m.recv.state == waitFIN && m.recv.grant.linked && m.recv.written > 0 {
				again++
			}
		}
		if ends := rng.IntN(3); ends < 2 {
			w.cut(ends, 1-ends)
		} else {
			w.cut(0, 1)
			w.cut(1, 0)
		}
		for _, ep := range w.eps {
			for _, r := range ep.requests.all {
				if r.state == waitPlaced || r.state == sendData && r.grant.linked {
					resent++
				}
			}
		}
		w.until(func() bool {
			return !slices.ContainsFunc(all, func(m *brokenMessage) bool { return !m.send.Done() || !m.recv.Done() })
		})
		for i, m := range all {
			for _, r := range []*Request{m.send, m.recv} {
				_, err := r.Wait()
				must(t, err)
			}
			if !bytes.Equal(m.got(), m.want) {
				t.Errorf("seed %d: message %d is not what was sent", seed, i)
			}
		}
		w.until(func() bool { return w.eps[0].peers[1].link.cut && w.eps[1].peers[0].link.cut })
		w.talk(0, 1, 300_000)
		w.talk(1, 0, 300_000)
		for rank, ep := range w.eps {
			p := &ep.peers[1-rank]
			if p.err != nil || ep.net.conn.links != 0 || ep.Stats.Connections != 1 || ep.Stats.Malformed != 0 || p.link.pieces != 0 || len(ep.net.txFree) != 4 {
				t.Errorf("seed %d: rank %d: error %v, %d connections, %d pieces, %d send buffers, %+v", seed, rank, p.err, ep.net.conn.links, p.link.pieces, len(ep.net.txFree), ep.Stats)
			}
		}
		w.drain()
	}
	if resent < 30 || again < 15 {
		t.Errorf("only %d messages were under way when connections broke, and %d streams had begun to arrive", resent, again)
	}
}

// TestHybrid_piecesOfNobody has pieces of a stream come over a connection that no receive waits for, or more bytes than
// it waits for, and a FIN before the last of them: nothing is written, and no receive ends as if all had come.
func TestHybrid_piecesOfNobody(t *testing.T) {
	w := newCrew(t, 2, Config{Transport: Hybrid, PromoteMessages: 1})
	w.talk(0, 1, 100_000)
	w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
	_, src := comb(t, 100_000, 1)
	back, dst := comb(t, 100_000, 9)
	before := bytes.Clone(back)
	recv := w.eps[0].IrecvTyped(word(1, 0), dst)
	w.eps[1].IsendTyped(word(1, 0), 0, src)
	w.until(func() bool { return w.eps[1].Stats.Rendezvous > 0 }, 1)
	w.until(func() bool { return recv.state == waitFIN }, 0)
	arrives := func(h header, n int) {
		h.source = 1
		b := make([]byte, headerLen+n)
		h.put(b)
		w.eps[0].net.conn.arrivedWord(0, b)
	}
	for i, p := range []struct {
		id uint32
		n  int
	}{{recv.wireID() + 1, 100}, {recv.wireID() + 1<<slotBits, 100}, {recv.wireID(), 400_001}} {
		stale := w.eps[0].Stats.Stale
		if arrives(header{kind: kindData, tag: flagPiece, id: p.id}, p.n); w.eps[0].Stats.Stale != stale+1 {
			t.Errorf("piece %d is taken", i)
		}
	}
	if !bytes.Equal(back, before) {
		t.Error("they are written to memory")
	}
	arrives(header{kind: kindData, tag: flagPiece, id: recv.wireID()}, 300_000)
	arrives(header{kind: kindFIN, id: recv.wireID()}, linkedFIN-headerLen)
	if _, err := recv.Wait(); err == nil || w.eps[0].Stats.Malformed != 1 {
		t.Errorf("a receive of which a part is missing ends with %v, and %d words are malformed", err, w.eps[0].Stats.Malformed)
	}
}
