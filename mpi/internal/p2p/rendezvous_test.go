package p2p

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// both steps the two ranks until both requests are done, and takes the results.
func both(t *testing.T, s, r *Request) (sent, received Status, sendErr, recvErr error) {
	t.Helper()
	for !s.Done() || !r.Done() {
		s.ep.eng.Step()
		r.ep.eng.Step()
	}
	sent, sendErr = s.Wait()
	received, recvErr = r.Wait()
	return sent, received, sendErr, recvErr
}

// TestRendezvous_manyWrites cuts a message into Writes at all kinds of places.
func TestRendezvous_manyWrites(t *testing.T) {
	a, b := newEnds(t)
	rnd := rand.NewChaCha8([32]byte{1})
	for _, c := range []struct{ length, room, write int }{
		{20_000, 20_000, 20_000},
		{20_000, 20_000, 19_999},
		{50_000, 50_000, 1000},
		{50_000, 60_000, 12_345},
		{50_000, 33_333, 7777},
		{20_000, 0, 1000},
	} {
		a.rendezvous.most = c.write
		out, guarded := make([]byte, c.length), make([]byte, c.room+8)
		rnd.Read(out)
		env := match.Envelope{Source: 0, Tag: 3}
		r := b.Irecv(env, guarded[:c.room])
		s := a.Isend(env, 1, out)
		_, st, sendErr, recvErr := both(t, s, r)
		n := min(c.length, c.room)
		if sendErr != nil || (recvErr != nil) != (c.room < c.length) || st.Bytes != n {
			t.Errorf("%+v: %v, %v, %+v", c, sendErr, recvErr, st)
		}
		if !bytes.Equal(guarded[:n], out[:n]) || !bytes.Equal(guarded[c.room:], make([]byte, 8)) {
			t.Errorf("%+v: wrong data, or data behind the buffer", c)
		}
	}
	if a.Active()+b.Active() != 0 {
		t.Errorf("%d and %d requests are left", a.Active(), b.Active())
	}
}
