package p2p

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// comb returns a cursor over every other 4 bytes of a buffer of 8n bytes, and
// that buffer with bytes in it that tell places apart.
func comb(t testing.TB, n int, first byte) ([]byte, dtype.Cursor) {
	t.Helper()
	v, err := dtype.Vector(n, 1, 2, dtype.Int32)
	must(t, err)
	v.Commit()
	buf := make([]byte, 8*n)
	for i := range buf {
		buf[i] = first + byte(i%119)
	}
	cur, err := v.Cursor(buf, 0, 1)
	must(t, err)
	return buf, cur
}

func packed(cur dtype.Cursor) []byte {
	b := make([]byte, cur.Rest())
	cur.Pack(b)
	return b
}

// finish steps two ends until both requests are done.
func finish(t *testing.T, a, b *Endpoint, send, recv *Request) Status {
	t.Helper()
	for !send.Done() || !recv.Done() {
		a.eng.Step()
		b.eng.Step()
	}
	_, err := a.requests.take(send)
	must(t, err)
	st, err := b.requests.take(recv)
	must(t, err)
	return st
}

// TestTyped_allWays sends what a datatype picks out to where a datatype says,
// eagerly, by rendezvous, and to the own rank; to and from plain memory too.
func TestTyped_allWays(t *testing.T) {
	env := match.Envelope{Source: 0, Tag: 3}
	for _, n := range []int{0, 1, 50, 2000, 100_000} {
		for _, ways := range []struct {
			name                 string
			from, to, late, self bool
		}{
			{"typed to typed", true, true, false, false}, {"typed to plain", true, false, false, false}, {"plain to typed", false, true, false, false},
			{"typed to typed, receive last", true, true, true, false}, {"to self", true, true, false, true},
			{"to self, receive last", true, true, true, true}, {"to self, plain to typed", false, true, true, true}, {"to self, typed to plain", true, false, true, true},
		} {
			a, b := newEnds(t)
			dest := 1
			if ways.self {
				b, dest = a, 0
			}
			_, src := comb(t, n, 1)
			want := packed(src)
			back, dst := comb(t, n, 128)
			untouched := bytes.Clone(back)
			plain := make([]byte, len(want))
			var send, recv *Request
			post := func() { recv = b.Irecv(env, plain) }
			if ways.to {
				post = func() { recv = b.IrecvTyped(env, dst) }
			}
			if !ways.late {
				post()
			}
			if ways.from {
				send = a.IsendTyped(env, dest, src)
			} else {
				send = a.Isend(env, dest, bytes.Clone(want))
			}
			if ways.late {
				for range 10 {
					a.eng.Step()
					b.eng.Step()
				}
				post()
			}
			st := finish(t, a, b, send, recv)
			got := plain
			if ways.to {
				got = packed(dst)
			}
			if st.Bytes != len(want) || !bytes.Equal(got, want) {
				t.Errorf("%s, %d elements: %d bytes, wrong ones or not all", ways.name, n, st.Bytes)
			}
			for i := range back {
				if i%8 >= 4 && back[i] != untouched[i] {
					t.Fatalf("%s, %d elements: byte %d is not of the datatype and was written", ways.name, n, i)
				}
			}
		}
	}
}

// TestTyped_truncated receives more than the datatype has room for.
func TestTyped_truncated(t *testing.T) {
	for _, n := range []int{100, 20_000} {
		a, b := newEnds(t)
		env := match.Envelope{Source: 0, Tag: 3}
		src := make([]byte, 4*n)
		for i := range src {
			src[i] = byte(i)
		}
		_, dst := comb(t, n/2, 0)
		recv := b.IrecvTyped(env, dst)
		send := a.Isend(env, 1, src)
		for !send.Done() || !recv.Done() {
			a.eng.Step()
			b.eng.Step()
		}
		st, err := b.requests.take(recv)
		if e, ok := err.(*Error); !ok || e.Code != Truncated || st.Bytes != 2*n {
			t.Errorf("%d bytes into %d: %v, %d bytes", 4*n, 2*n, err, st.Bytes)
		}
		if !bytes.Equal(packed(dst), src[:2*n]) {
			t.Errorf("%d bytes into %d: wrong bytes", 4*n, 2*n)
		}
	}
}

// TestTyped_longDoesNotHoldUpShort sends short messages behind a long one that
// has to be packed: they are there before it.
func TestTyped_longDoesNotHoldUpShort(t *testing.T) {
	a, b := newEnds(t)
	env := match.Envelope{Source: 0, Tag: 3}
	_, src := comb(t, 1<<20, 1)
	_, dst := comb(t, 1<<20, 1)
	long := b.IrecvTyped(env, dst)
	big := a.IsendTyped(env, 1, src)
	for big.state != sendData {
		a.eng.Step()
		b.eng.Step()
	}
	env.Tag = 4
	var in [300]byte
	short := b.Irecv(env, in[:])
	small := a.Isend(env, 1, make([]byte, 300))
	finish(t, a, b, small, short)
	if long.Done() {
		t.Error("the short message came behind the long one")
	}
	finish(t, a, b, big, long)
}
