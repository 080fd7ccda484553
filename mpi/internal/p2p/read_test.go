package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// readers makes the ranks 0 and 1 of newEnds, which read.
func readers(t testing.TB) (a, b *Endpoint) {
	a, b = newEnds(t)
	a.cfg.Rendezvous, b.cfg.Rendezvous = RendezvousRead, RendezvousRead
	return a, b
}

// lent returns how many sends of an endpoint lend their memory.
func lent(ep *Endpoint) (n int) {
	for _, r := range ep.requests.all {
		if r.lent {
			n++
		}
	}
	return n
}

// TestRead_pieces cuts a message into Reads at all kinds of places. All memory is the
// ranks' own again afterwards.
func TestRead_pieces(t *testing.T) {
	a, b := readers(t)
	for _, c := range []struct{ length, room, piece int }{
		{20_000, 20_000, 20_000},
		{20_000, 20_000, 19_999},
		{50_000, 50_000, 1000}, // more Reads than may be under way
		{50_000, 60_000, 12_345},
		{50_000, 33_333, 7777},
		{20_000, 0, 1000},
		{3 << 20, 3 << 20, readPiece},
	} {
		b.reads.most = c.piece
		before := b.Stats.Reads
		out, guarded := pattern(c.length), make([]byte, c.room+8)
		env := match.Envelope{Source: 0, Tag: 3}
		r := b.Irecv(env, guarded[:c.room])
		_, st, sendErr, recvErr := both(t, a.out.isend(env, 1, data{buf: out}, true), r)
		n := min(c.length, c.room)
		if sendErr != nil || (code(recvErr) == Truncated) != (c.room < c.length) || st.Bytes != n {
			t.Errorf("%+v: %v, %v, %+v", c, sendErr, recvErr, st)
		}
		if !bytes.Equal(guarded[:n], out[:n]) || !bytes.Equal(guarded[c.room:], make([]byte, 8)) {
			t.Errorf("%+v: wrong data, or data behind the buffer", c)
		}
		if b.Stats.Reads != before+1 || lent(a) != 0 || b.peers[0].reading != 0 {
			t.Errorf("%+v: %d were read, %d sends lend, %d Reads are under way", c, b.Stats.Reads-before, lent(a), b.peers[0].reading)
		}
	}
	if a.Active()+b.Active() != 0 {
		t.Errorf("%d and %d requests are left", a.Active(), b.Active())
	}
}

// TestRead_transports: messages are read over datagrams, over a connection, and while
// the one becomes the other, but not over unreliable datagrams.
func TestRead_transports(t *testing.T) {
	for _, c := range []struct {
		transport Transport
		reads     bool
	}{{RD, true}, {RC, true}, {Hybrid, true}, {UD, false}} {
		t.Run(c.transport.String(), func(t *testing.T) {
			w := newCrew(t, 3, Config{Transport: c.transport, Rendezvous: RendezvousRead, PromoteMessages: 4})
			var all []*Request
			var in [][]byte
			for i := range 10 {
				for from := range 3 {
					to := (from + 1 + i%2) % 3
					in = append(in, make([]byte, 100_000+i))
					all = append(all, w.eps[to].Irecv(word(from, to), in[len(in)-1]), w.eps[from].Isend(word(from, to), to, pattern(100_000+i)))
				}
			}
			for i, r := range all {
				w.until(r.Done)
				if _, err := r.Wait(); err != nil {
					t.Fatal(i, err)
				}
			}
			for i, b := range in {
				if !bytes.Equal(b, pattern(len(b))) {
					t.Errorf("message %d is not what was sent", i)
				}
			}
			for rank, ep := range w.eps {
				if want := uint64(10); c.reads && ep.Stats.Reads != want || !c.reads && ep.Stats.Reads != 0 {
					t.Errorf("rank %d has read %d messages", rank, ep.Stats.Reads)
				}
			}
			w.drain()
		})
	}
}

// TestRead_notForAll: what a datatype picks out is not lent, what one scatters and what
// a rank does not want to read is written, and what is short is not asked for longer
// than needed.
func TestRead_notForAll(t *testing.T) {
	env := match.Envelope{Source: 0, Tag: 3}
	const n = 100_000
	for name, c := range map[string]struct {
		from, to, write bool
		length          int
		lends           bool
	}{
		"typed sender":   {from: true, length: n},
		"typed receiver": {to: true, length: n, lends: true},
		"wants Writes":   {write: true, length: n, lends: true},
		"short":          {length: 5000},
	} {
		a, b := readers(t)
		if c.write {
			b.cfg.Rendezvous = RendezvousWrite
		}
		src, dst := data{buf: pattern(c.length)}, data{buf: make([]byte, c.length)}
		if c.from {
			_, cur := comb(t, c.length/4, 1)
			src = dataOf(cur)
		}
		if c.to {
			_, cur := comb(t, c.length/4, 99)
			dst = dataOf(cur)
		}
		want := make([]byte, c.length)
		src.view().copyTo(want)
		s := a.out.isend(env, 1, src, true)
		for b.match.unexpected.Len() == 0 {
			a.eng.Step()
			b.eng.Step()
		}
		if (lent(a) == 1) != c.lends {
			t.Errorf("%s: %d sends lend", name, lent(a))
		}
		r := b.requests.request(0, nil)
		r.data = dst
		finish(t, a, b, s, b.match.irecv(env, r))
		got := make([]byte, c.length)
		dst.view().copyTo(got)
		if !bytes.Equal(got, want) || b.Stats.Reads != 0 || lent(a) != 0 {
			t.Errorf("%s: %d messages were read, %d sends lend, data equal %v", name, b.Stats.Reads, lent(a), bytes.Equal(got, want))
		}
	}
}

// TestRead_grantEnds: with the FIN the key of the memory is not valid any more, and
// neither is it when the receiver asks for Writes.
func TestRead_grantEnds(t *testing.T) {
	for _, typed := range []bool{false, true} {
		w := newCrew(t, 2, Config{Rendezvous: RendezvousRead})
		a, b := w.eps[0], w.eps[1]
		s := a.Isend(word(0, 1), 1, pattern(100_000))
		w.until(func() bool { return b.match.unexpected.Len() > 0 })
		o := b.match.unexpected.All()[0].Owner.offer
		if o.rkey == 0 || o.rkey != s.mr.RKey() {
			t.Fatalf("the RTS says %+v", o)
		}
		var r *Request
		if typed {
			_, cur := comb(t, 25_000, 0)
			r = b.IrecvTyped(word(0, 1), cur)
		} else {
			r = b.Irecv(word(0, 1), make([]byte, 100_000))
		}
		w.until(func() bool { return s.Done() && r.Done() })
		for _, r := range []*Request{s, r} {
			_, err := r.Wait()
			must(t, err)
		}
		mr, err := b.net.pd.RegMR(make([]byte, 8), verbs.LocalWrite)
		must(t, err)
		late := b.Irecv(word(0, 1), nil)
		wr := verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, NumSGE: 1, AH: b.peers[0].ah, RKey: o.rkey, RemoteAddr: o.addr, WRID: wrNone}
		wr.SGL[0] = mr.SGE(0, 8)
		must(t, b.net.qp.PostSend(&wr))
		w.until(late.Done)
		if _, err := late.Wait(); code(err) != PeerLost || !bytes.Equal(mr.Bytes(), make([]byte, 8)) {
			t.Errorf("typed %v: a Read with the old key ends with %v, and has brought %v", typed, err, mr.Bytes())
		}
	}
}

// TestRead_recall revokes the communicator of a message that is lent: before anybody
// has asked for it, when the receiver has it in hand, and while it is read. The sender
// has its memory back when the receiver has let go of it, and nobody is lost.
func TestRead_recall(t *testing.T) {
	env := match.Envelope{Context: 2, Source: 0, Tag: 3}
	for _, when := range []string{"waits", "seized", "read", "receiver has left"} {
		t.Run(when, func(t *testing.T) {
			a, b := readers(t)
			for _, ep := range []*Endpoint{a, b} {
				ep.groups.register(2, []int32{0, 1}, 8)
			}
			b.reads.most = 100
			s := a.Isend(env, 1, pattern(100_000))
			for b.match.unexpected.Len() == 0 {
				a.eng.Step()
				b.eng.Step()
			}
			var r *Request
			var m Matched
			switch when {
			case "read":
				r = b.Irecv(env, make([]byte, 100_000))
			case "seized":
				m, _, _, _ = b.Improbe(env)
			}
			a.Revoke(2)
			if s.Done() || lent(a) != 1 {
				t.Fatalf("the send is done (%v) though its memory may be read", s.Done())
			}
			if when == "receiver has left" {
				b.out.notify(0, kindBye, 0, 0)
				b.match.seized, b.match.unexpected = nil, match.Unexpected[message]{}
			}
			for !s.Done() {
				a.eng.Step()
				b.eng.Step()
			}
			if _, err := s.Wait(); code(err) != Revoked || lent(a) != 0 {
				t.Errorf("the send ends with %v, and %d still lend", err, lent(a))
			}
			if when == "seized" {
				r = b.Accept(m, make([]byte, 100_000))
			}
			if r != nil {
				for !r.Done() {
					a.eng.Step()
					b.eng.Step()
				}
				if _, err := r.Wait(); when == "read" && err != nil || when == "seized" && code(err) != Revoked {
					t.Errorf("the receive ends with %v", err)
				}
			}
			if a.peers[1].err != nil || b.peers[0].err != nil || len(b.match.seized) != 0 {
				t.Errorf("losses: %v, %v; %d messages are seized", a.peers[1].err, b.peers[0].err, len(b.match.seized))
			}
		})
	}
}

// TestRead_cancel takes back a send whose memory is lent: nothing is left of it, unless
// the receiver has it in hand.
func TestRead_cancel(t *testing.T) {
	env := match.Envelope{Source: 0, Tag: 3}
	for _, seized := range []bool{false, true} {
		a, b := readers(t)
		s := a.Isend(env, 1, pattern(100_000))
		for b.match.unexpected.Len() == 0 {
			a.eng.Step()
			b.eng.Step()
		}
		var m Matched
		if seized {
			m, _, _, _ = b.Improbe(env)
		}
		a.Cancel(s)
		if s.Done() {
			t.Fatal("it is taken back before the receiver knows")
		}
		if seized {
			in := make([]byte, 100_000)
			if sent, _, sendErr, recvErr := both(t, s, b.Accept(m, in)); sendErr != nil || recvErr != nil || sent.Mark == Cancelled || !bytes.Equal(in, pattern(100_000)) {
				t.Errorf("in hand: %+v, %v, %v", sent, sendErr, recvErr)
			}
		} else {
			for !s.Done() {
				a.eng.Step()
				b.eng.Step()
			}
			if st, err := s.Wait(); err != nil || st.Mark != Cancelled {
				t.Errorf("the send ends with %+v, %v", st, err)
			}
		}
		if lent(a) != 0 || b.match.unexpected.Len() != 0 || a.Active()+b.Active() != 0 {
			t.Errorf("%d lend, %d messages wait, %d requests are left", lent(a), b.match.unexpected.Len(), a.Active()+b.Active())
		}
	}
}

// TestRead_loss loses either end in the middle: both have their memory back.
func TestRead_loss(t *testing.T) {
	lose := &Error{Code: PeerLost, Peer: 1}
	for _, sender := range []bool{true, false} {
		a, b := readers(t)
		b.reads.most = 100
		env := match.Envelope{Source: 0, Tag: 3}
		var all []*Request
		for range 3 {
			all = append(all, b.Irecv(env, make([]byte, 100_000)), a.Isend(env, 1, pattern(100_000)))
		}
		for b.peers[0].readers.head == nil || b.Stats.Reads < 3 {
			a.eng.Step()
			b.eng.Step()
		}
		ep, other, rank := a, b, 1
		if sender {
			ep, other, rank = b, a, 0
		}
		ep.failures.failPeer(rank, lose)
		other.failures.failPeer(1-rank, lose)
		for i, r := range all {
			for !r.Done() {
				a.eng.Step()
				b.eng.Step()
			}
			if _, err := r.Wait(); code(err) != PeerLost {
				t.Errorf("request %d ends with %v", i, err)
			}
		}
		if lent(a) != 0 || a.Active()+b.Active() != 0 || b.peers[0].reading != 0 {
			t.Errorf("%d sends lend, %d and %d requests are left, %d Reads", lent(a), a.Active(), b.Active(), b.peers[0].reading)
		}
	}
}

// TestRead_ended: who ends has no Reads under way into memory that the user has back.
func TestRead_ended(t *testing.T) {
	a, b := readers(t)
	env := match.Envelope{Source: 0, Tag: 3}
	buf := make([]byte, 1<<20)
	r := b.Irecv(env, buf)
	a.Isend(env, 1, pattern(len(buf)))
	for b.peers[0].reading == 0 {
		a.eng.Step()
		b.eng.Step()
	}
	b.End(&Error{Code: Ended})
	if _, err := r.Wait(); code(err) != Ended {
		t.Errorf("the receive ends with %v", err)
	}
	clear(buf)
	for range 100 {
		a.eng.Step()
		b.eng.Step()
	}
	if !bytes.Equal(buf, make([]byte, len(buf))) {
		t.Error("the buffer was written after the end")
	}
}

// TestRead_bounded: no more than a few Reads are under way to a peer, and one that does
// not answer holds up nobody else.
func TestRead_bounded(t *testing.T) {
	w := newCrew(t, 3, Config{Rendezvous: RendezvousRead})
	b := w.eps[2]
	b.reads.most = 1000
	var slow, quick []*Request
	for range 5 {
		for from, list := range []*[]*Request{&slow, &quick} {
			*list = append(*list, b.Irecv(word(from, 2), make([]byte, 100_000)), w.eps[from].Isend(word(from, 2), 2, pattern(100_000)))
		}
	}
	w.until(func() bool { return b.Stats.Reads == 10 })
	w.until(func() bool {
		if n := max(b.peers[0].reading, b.peers[1].reading); n > readsMost {
			t.Fatalf("%d Reads are under way to a peer", n)
		}
		return b.peers[0].reading == readsMost && b.peers[1].reading == 0
	}, 1, 2) // rank 0 computes
	for _, list := range [][]*Request{quick, slow} {
		for _, r := range list {
			w.until(r.Done)
			_, err := r.Wait()
			must(t, err)
		}
	}
	w.drain()
}

// TestRead_thereAndBack: two ranks that read from one another at the same time.
func TestRead_thereAndBack(t *testing.T) {
	w := newCrew(t, 2, Config{Rendezvous: RendezvousRead})
	var all []*Request
	for i := range 30 {
		from := i % 2
		all = append(all, w.eps[1-from].Irecv(word(from, 1-from), make([]byte, 300_000)), w.eps[from].Isend(word(from, 1-from), 1-from, pattern(300_000)))
	}
	for _, r := range all {
		w.until(r.Done)
		_, err := r.Wait()
		must(t, err)
	}
	w.drain()
}

func TestAllocs_read(t *testing.T) {
	a, b := readers(t)
	env := match.Envelope{Source: 0, Tag: 3}
	src, dst := pattern(1<<20), make([]byte, 1<<20)
	one := func() {
		r, s := b.Irecv(env, dst), a.Isend(env, 1, src)
		for !s.Done() || !r.Done() {
			a.eng.Step()
			b.eng.Step()
		}
		_, err := s.Wait()
		_, err2 := r.Wait()
		must(t, errors.Join(err, err2))
	}
	for range 200 { // keys rest for a while
		one()
	}
	if n := testing.AllocsPerRun(50, one); n != 0 {
		t.Errorf("%v allocations for a message", n)
	}
}

// TestRead_grantWithoutKey answers an RTS with a CTS that has no key: nothing can be
// written to it, and the memory stays lent to who reads it.
func TestRead_grantWithoutKey(t *testing.T) {
	ep := newEnd(t)
	ep.cfg.Rendezvous = RendezvousRead
	s := ep.Isend(match.Envelope{Source: 0, Tag: 3}, 1, make([]byte, 100_000))
	b := sample(kindCTS, s.wireID(), 0)
	binary.BigEndian.PutUint64(b[headerLen+16:], 50_000)
	if ep.poller.arrived(b); ep.Stats.Malformed != 1 || s.state != waitCTS || !s.lent {
		t.Errorf("%d malformed, state %d, lent %v", ep.Stats.Malformed, s.state, s.lent)
	}
}

func TestParseRendezvous(t *testing.T) {
	for _, v := range []Rendezvous{RendezvousAuto, RendezvousWrite, RendezvousRead} {
		if got, err := ParseRendezvous(v.String()); got != v || err != nil {
			t.Errorf("%v is parsed as %v, %v", v, got, err)
		}
	}
	for _, s := range []string{"", "Read", "rdma"} {
		if _, err := ParseRendezvous(s); !errors.Is(err, ErrRendezvous) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if s := fmt.Sprint(Rendezvous(9)); s != "Rendezvous(9)" {
		t.Error(s)
	}
}
