package p2p

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// syncWays are the carriers.
var syncWays = map[string]Config{"near": near, "rd": {}, "ud": {Transport: UD}, "rc": {Transport: RC}}

// TestSync_waitsForReceive sends short messages that wait for their receives: they are there
// when they are probed, need no RTS, and are complete as soon as a receive meets them, not
// before, whether it was posted earlier or later or takes the message out first.
func TestSync_waitsForReceive(t *testing.T) {
	for name, cfg := range syncWays {
		w := newCrew(t, 2, cfg)
		a, b := w.eps[0], w.eps[1]
		env := match.Envelope{Source: 0, Tag: 3}
		for _, n := range []int{0, 1, 200} {
			for _, when := range []string{"before", "after", "taken"} {
				_, src := comb(t, n, 1)
				want, in := packed(src), make([]byte, 4*n+8)
				var recv *Request
				if when == "before" {
					recv = b.Irecv(env, in)
				}
				send := a.IssendTyped(env, 1, src)
				if when != "before" {
					w.until(func() bool { return b.match.unexpected.Len() > 0 })
					for range 10 {
						w.turn()
					}
					if st, found, err := b.Iprobe(env); !found || err != nil || st.Bytes != 4*n || send.Done() {
						t.Fatalf("%s: %d bytes are there, %v, %v; the send is done: %v", name, st.Bytes, found, err, send.Done())
					}
				}
				switch when {
				case "after":
					recv = b.Irecv(env, in)
				case "taken":
					m, _, _, err := b.Improbe(env)
					must(t, err)
					w.turn()
					if send.Done() {
						t.Errorf("%s: the send is done before its message is received", name)
					}
					recv = b.Accept(m, in)
				}
				w.until(func() bool { return send.Done() && recv.Done() })
				_, err := a.requests.take(send)
				must(t, err)
				st, err := b.requests.take(recv)
				must(t, err)
				if st.Bytes != 4*n || !bytes.Equal(in[:4*n], want) {
					t.Errorf("%s: %d bytes, receive %s: wrong ones", name, n, when)
				}
			}
		}
		if a.Stats.Rendezvous > 0 || a.Active()+b.Active()+b.match.kept > 0 {
			t.Errorf("%s: %d RTS, %d and %d requests are left, %d bytes", name, a.Stats.Rendezvous, a.Active(), b.Active(), b.match.kept)
		}
		w.drain()
	}
}

// TestSync_order mixes them with others, short and long, and with receives that are too short.
func TestSync_order(t *testing.T) {
	for name, cfg := range syncWays {
		w := newCrew(t, 2, cfg)
		a, b := w.eps[0], w.eps[1]
		env := match.Envelope{Source: 0, Tag: 3}
		var sends, recvs []*Request
		in := make([][]byte, 60)
		for i := range in {
			switch out := bytes.Repeat([]byte{byte(i)}, 2+i%3*30_000); i % 4 {
			case 0, 1:
				sends = append(sends, a.Isend(env, 1, out))
			default:
				sends = append(sends, a.Issend(env, 1, out))
			}
			if i == 30 {
				w.until(func() bool { return b.match.unexpected.Len() > 5 })
			}
		}
		for i := range in {
			in[i] = make([]byte, 1)
			recvs = append(recvs, b.Irecv(env, in[i]))
		}
		for i := range in {
			w.until(func() bool { return sends[i].Done() && recvs[i].Done() })
			_, err := a.requests.take(sends[i])
			must(t, err)
			if st, err := b.requests.take(recvs[i]); code(err) != Truncated || st.Bytes != 1 || in[i][0] != byte(i) {
				t.Errorf("%s: message %d came in place of %d, %d bytes, %v", name, in[i][0], i, st.Bytes, err)
			}
		}
		w.drain()
	}
}

// TestSync_cancel takes a message back that no receive has met, and not one that a receive has met.
func TestSync_cancel(t *testing.T) {
	for name, cfg := range syncWays {
		w := newCrew(t, 2, cfg)
		a, b := w.eps[0], w.eps[1]
		env := match.Envelope{Source: 0, Tag: 3}
		send := a.Issend(env, 1, []byte{1})
		w.until(func() bool { return b.match.unexpected.Len() > 0 })
		a.Cancel(send)
		w.until(send.Done)
		if st, err := a.requests.take(send); st.Mark != Cancelled || err != nil || b.match.unexpected.Len()+b.match.kept > 0 {
			t.Errorf("%s: it ends with %v, %v, and %d bytes are kept", name, st, err, b.match.kept)
		}
		send = a.Issend(env, 1, []byte{2})
		recv := b.Irecv(env, make([]byte, 1))
		w.until(recv.Done)
		a.Cancel(send)
		w.until(send.Done)
		if st, err := a.requests.take(send); st.Mark == Cancelled || err != nil {
			t.Errorf("%s: a message that was received is taken back: %v, %v", name, st, err)
		}
		_, err := b.requests.take(recv)
		must(t, err)
		w.drain()
	}
}

// TestSync_bounded: those that no receive meets count in the memory of messages, and the
// sender is told to hold back.
func TestSync_bounded(t *testing.T) {
	a, b := newEnds(t)
	b.cfg.UnexpectedMax = 64 << 10
	env := match.Envelope{Source: 0, Tag: 7}
	var sends []*Request
	for a.Stats.Rendezvous == 0 {
		sends = append(sends, a.Issend(env, 1, make([]byte, 4000)))
		a.Engine().Step()
		b.Engine().Step()
		if most := b.cfg.UnexpectedMax + (a.cfg.Sends+b.cfg.Receives+2)*(4000+keepCost); b.match.kept > most {
			t.Fatalf("%d bytes are kept, more than %d", b.match.kept, most)
		}
	}
	for _, s := range sends {
		r := b.Irecv(env, make([]byte, 4000))
		_, _, sendErr, recvErr := both(t, s, r)
		must(t, sendErr)
		must(t, recvErr)
	}
	if b.match.kept > 0 {
		t.Errorf("%d bytes are kept in the end", b.match.kept)
	}
}

// TestSync_loss ends such a send when the receiver is lost.
func TestSync_loss(t *testing.T) {
	w := newCrew(t, 2, near)
	a, b := w.eps[0], w.eps[1]
	send := a.Issend(match.Envelope{Source: 0, Tag: 3}, 1, []byte{1})
	w.until(func() bool { return b.match.unexpected.Len() > 0 })
	a.failures.left(1, "it has died")
	if _, err := a.requests.take(send); code(err) != PeerLost {
		t.Errorf("the send ends with %v", err)
	}
}
