package p2p

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// pattern makes n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

// TestSplit_allWays sends messages in pieces, to plain memory and to what a datatype
// picks out, for receives posted before, behind the head and behind all: nobody is
// asked.
func TestSplit_allWays(t *testing.T) {
	env := match.Envelope{Source: 0, Tag: 3}
	for _, n := range []int{16<<10 + 4, 30_000, 48 << 10, 60_000} {
		for _, when := range []string{"early", "middle", "late"} {
			for _, typed := range []bool{false, true} {
				a, b := newEnds(t)
				src, dst := pattern(n), make([]byte, n)
				_, cur := comb(t, n/4, 0)
				receive := func() *Request {
					if typed {
						return b.IrecvTyped(env, cur)
					}
					return b.Irecv(env, dst)
				}
				var recv *Request
				if when == "early" {
					recv = receive()
				}
				send := a.Isend(env, 1, src)
				for range 3 {
					if recv == nil && when == "middle" && b.match.unexpected.Len() > 0 {
						recv = receive()
					}
					a.eng.Step()
					b.eng.Step()
				}
				for b.peers[0].split.left > 0 || when == "late" && b.match.unexpected.Len() == 0 {
					a.eng.Step()
					b.eng.Step()
				}
				if recv == nil {
					if st, found, err := b.Iprobe(env); err != nil || !found || st.Bytes != n {
						t.Fatalf("%d bytes: probe says %+v, %v, %v", n, st, found, err)
					}
					recv = receive()
				}
				st := finish(t, a, b, send, recv)
				if typed {
					dst = packed(cur)
				}
				if st.Bytes != n || !bytes.Equal(dst, src) {
					t.Errorf("%d bytes, %s, typed %v: %d came, equal %v", n, when, typed, st.Bytes, bytes.Equal(dst, src))
				}
				if a.Stats.Rendezvous != 0 || a.Stats.Eager != 1 || b.match.kept != 0 {
					t.Errorf("%d bytes, %s: %+v, %d bytes are kept", n, when, a.Stats, b.match.kept)
				}
			}
		}
	}
}

// TestSplit_stream: where much is under way the receiver is asked, and whatever way
// messages take, they come in order.
func TestSplit_stream(t *testing.T) {
	w := newCrew(t, 2, Config{})
	env := match.Envelope{Source: 0, Tag: 3}
	sizes := []int{40_000, 8, 64 << 10, 40_000, 64<<10 + 1, 300, 40_000, 20_000, 0, 17_000}
	var all []*Request
	var got [][]byte
	for i, n := range sizes {
		got = append(got, make([]byte, 1<<17))
		all = append(all, w.eps[0].Isend(env, 1, bytes.Repeat([]byte{byte(i + 1)}, n)))
	}
	if s := &w.eps[0].Stats; s.Rendezvous < 2 || s.Eager < 4 {
		t.Errorf("of %d messages %d went without asking and %d after it", len(sizes), s.Eager, s.Rendezvous)
	}
	for i := range sizes {
		all = append(all, w.eps[1].Irecv(env, got[i]))
	}
	for i, r := range all {
		w.until(r.Done)
		st, err := r.Wait()
		must(t, err)
		if k := i - len(sizes); k >= 0 && (st.Bytes != sizes[k] || st.Bytes > 0 && got[k][st.Bytes-1] != byte(k+1)) {
			t.Errorf("message %d: %d bytes, want %d, and the last is %d", k, st.Bytes, sizes[k], got[k][max(st.Bytes, 1)-1])
		}
	}
	w.until(func() bool { return w.eps[0].peers[1].buffered == 0 }) // idle again
	before := w.eps[0].Stats.Rendezvous
	r, s := w.eps[1].Irecv(env, got[0]), w.eps[0].Isend(env, 1, make([]byte, 64<<10))
	w.until(r.Done)
	_, err := r.Wait()
	must(t, err)
	_, err = s.Wait()
	must(t, err)
	if w.eps[0].Stats.Rendezvous != before {
		t.Error("an idle peer is asked")
	}
	w.drain()
}

// TestSplit_limits: who sets the eager limit means it, and who is held back asks.
func TestSplit_limits(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     Config
		n     int
		asked bool
	}{
		{"default", Config{}, 64 << 10, false},
		{"above it", Config{}, 64<<10 + 1, true},
		{"eager limit given", Config{EagerMax: 16 << 10}, 20_000, true},
		{"both given", Config{EagerMax: 4 << 10, EagerIdle: 20_000}, 20_000, false},
		{"nothing is eager", Config{EagerMax: -1, EagerIdle: 20_000}, 20_000, true},
	} {
		w := newCrew(t, 2, c.c)
		env := match.Envelope{Source: 0, Tag: 3}
		r, s := w.eps[1].Irecv(env, make([]byte, c.n)), w.eps[0].Isend(env, 1, make([]byte, c.n))
		w.until(r.Done)
		_, err := r.Wait()
		must(t, err)
		w.until(s.Done)
		_, err = s.Wait()
		must(t, err)
		if asked := w.eps[0].Stats.Rendezvous > 0; asked != c.asked {
			t.Errorf("%s: %d bytes: the receiver was asked: %v", c.name, c.n, asked)
		}
		w.drain()
	}
}

// headOf makes the beginning of a message of n bytes from rank 1.
func headOf(n int, data string) []byte {
	return append(sample(kindHead, uint32(n), 0)[:headerLen], data...)
}

func restOf(data string) []byte { return append(sample(kindRest, 0, 0)[:headerLen], data...) }

func TestSplit_malformed(t *testing.T) {
	for name, c := range map[string]struct {
		came [][]byte
		want Stats
	}{
		"a whole message":     {[][]byte{headOf(2, "ab")}, Stats{Malformed: 1}},
		"endless":             {[][]byte{headOf(eagerMost+1, "ab")}, Stats{Malformed: 1}},
		"rest without a head": {[][]byte{restOf("ab")}, Stats{Malformed: 1}},
		"empty rest":          {[][]byte{headOf(3, "ab"), restOf("")}, Stats{Malformed: 1, Unexpected: 1}},
		"more than all":       {[][]byte{headOf(3, "ab"), restOf("cd")}, Stats{Malformed: 1, Unexpected: 1}},
		"a head too many":     {[][]byte{headOf(3, "ab"), headOf(3, "ab")}, Stats{Malformed: 1, Unexpected: 1}},
	} {
		ep := newEnd(t)
		for _, b := range c.came {
			ep.poller.arrived(b)
		}
		if ep.Stats != c.want {
			t.Errorf("%s: %+v, want %+v", name, ep.Stats, c.want)
		}
	}
}

func TestSplit_truncated(t *testing.T) {
	ep := newEnd(t)
	buf := make([]byte, 5)
	r := ep.Irecv(match.Envelope{Source: match.Any, Tag: match.Any}, buf[:4])
	for _, b := range [][]byte{headOf(7, "abc"), restOf("def"), restOf("g")} {
		ep.poller.arrived(b)
	}
	st, err := r.Wait()
	if e, ok := err.(*Error); !ok || e.Code != Truncated || st.Bytes != 4 || string(buf) != "abcd\x00" {
		t.Errorf("%q, %+v, %v", buf, st, err)
	}
}

// TestSplit_lostOnTheWay: the rest of a message does not come any more, because its
// sender is lost. Receives that have met it fail, and so do those that meet it later.
func TestSplit_lostOnTheWay(t *testing.T) {
	env := match.Envelope{Source: 1, Tag: 2}
	for _, late := range []bool{false, true} {
		ep := newEnd(t)
		var r *Request
		if !late {
			r = ep.Irecv(env, make([]byte, 9))
		}
		ep.poller.arrived(headOf(9, "abc"))
		ep.failures.failPeer(1, fmt.Errorf("gone"))
		if late {
			r = ep.Irecv(env, make([]byte, 9))
		}
		if !r.Done() {
			t.Fatal("the receive waits for ever")
		}
		if _, err := r.Wait(); err == nil {
			t.Error("no error")
		}
		ep.poller.arrived(restOf("defghi"))
		if ep.match.kept != 0 {
			t.Errorf("%d bytes are kept", ep.match.kept)
		}
	}
}

// TestSplit_unwanted: the rest of a message is taken in although nobody wants it any
// more, and what follows it is not touched.
func TestSplit_unwanted(t *testing.T) {
	for _, when := range []int{0, 1} {
		ep := newEnd(t)
		ep.Inside().Register(2, []int32{0, 1, 2}, 8)
		came := [][]byte{headOf(6, "abc"), restOf("def")}
		came[0][3] = 2 // the context
		for i, b := range came {
			if i == when {
				ep.Revoke(2)
			}
			ep.poller.arrived(b)
		}
		ep.poller.arrived(headOf(4, "ab"))
		ep.poller.arrived(restOf("cd"))
		buf := make([]byte, 4)
		if _, err := ep.Recv(match.Envelope{Source: 1, Tag: 2}, buf); err != nil || string(buf) != "abcd" {
			t.Errorf("revoked before piece %d: %q, %v", when, buf, err)
		}
		if ep.match.kept != 0 || ep.match.unexpected.Len() != 0 || ep.Stats.Malformed != 0 {
			t.Errorf("revoked before piece %d: %d bytes are kept, %+v", when, ep.match.kept, ep.Stats)
		}
	}
}

// TestSplit_firstOfAStream: of messages in a row the first goes without asking, and the
// next one that does follows an answer.
func TestSplit_firstOfAStream(t *testing.T) {
	a, b := newEnds(t)
	there, back := match.Envelope{Source: 0, Tag: 3}, match.Envelope{Source: 1, Tag: 4}
	buf := make([]byte, 20_000)
	for round := range 2 {
		var sends, receives []*Request
		for range 3 {
			sends = append(sends, a.Isend(there, 1, pattern(20_000)))
			receives = append(receives, b.Irecv(there, buf))
		}
		for i := range sends {
			finish(t, a, b, sends[i], receives[i])
		}
		finish(t, b, a, b.Isend(back, 0, nil), a.Irecv(back, nil))
		if want := (Stats{Eager: uint64(round + 1), Rendezvous: uint64(2 * (round + 1))}); a.Stats.Eager != want.Eager || a.Stats.Rendezvous != want.Rendezvous {
			t.Errorf("after round %d: %d went without asking, %d after it, want %d and %d", round+1, a.Stats.Eager, a.Stats.Rendezvous, want.Eager, want.Rendezvous)
		}
	}
}
