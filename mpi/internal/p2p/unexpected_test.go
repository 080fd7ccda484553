package p2p

import (
	"testing"

	"github.com/xwarp/xwarp/mpi/internal/match"
)

// TestKeep_holdsBackWhoFloods: of messages that nobody receives, no more than the
// limit and what was on its way are kept; all arrive when they are received, in
// order; and afterwards they go eagerly again.
func TestKeep_holdsBackWhoFloods(t *testing.T) {
	a, b := newEnds(t)
	b.cfg.UnexpectedMax = 64 << 10
	const messages, length = 1000, 4000
	env := match.Envelope{Context: 0, Source: 0, Tag: 7}
	sends := make([]*Request, messages)
	for i := range sends {
		buf := make([]byte, length)
		buf[0], buf[1] = byte(i), byte(i>>8)
		sends[i] = a.Isend(env, 1, buf)
		a.Engine().Step()
		b.Engine().Step()
		if most := b.cfg.UnexpectedMax + (a.cfg.Sends+b.cfg.Receives+2)*(length+keepCost); b.match.kept > most {
			t.Fatalf("after %d messages %d bytes are kept, more than %d", i+1, b.match.kept, most)
		}
	}
	if !b.match.full() || b.match.holding != 1 || a.peers[1].eagerMax != -1 {
		t.Fatalf("%d bytes are kept, %d peers are held back, the sender's limit is %d", b.match.kept, b.match.holding, a.peers[1].eagerMax)
	}
	for i := range messages {
		buf := make([]byte, length)
		r := b.Irecv(env, buf)
		for !r.Done() {
			a.Engine().Step()
			b.Engine().Step()
		}
		_, err := r.Wait()
		must(t, err)
		if got := int(buf[0]) | int(buf[1])<<8; got != i {
			t.Fatalf("message %d came in place of %d", got, i)
		}
	}
	for i := range sends {
		for !sends[i].Done() {
			a.Engine().Step()
			b.Engine().Step()
		}
		_, err := sends[i].Wait()
		must(t, err)
	}
	if b.match.kept != 0 || b.match.holding != 0 || a.peers[1].eagerMax != a.peers[1].eagerTop {
		t.Errorf("at the end %d bytes are kept, %d peers held back, the sender's limit is %d", b.match.kept, b.match.holding, a.peers[1].eagerMax)
	}
}

// TestKeep_ownMessages: a rank that floods itself is not given more memory either.
func TestKeep_ownMessages(t *testing.T) {
	ep := newEnd(t)
	ep.cfg.UnexpectedMax = 10_000
	env := match.Envelope{Context: 0, Source: 0, Tag: 7}
	var sends []*Request
	for range 20 {
		sends = append(sends, ep.Isend(env, 0, make([]byte, 1000)))
	}
	if most := ep.cfg.UnexpectedMax + 1000 + keepCost; ep.match.kept > most || sends[19].Done() {
		t.Errorf("%d bytes are kept, and the last send is done: %v", ep.match.kept, sends[19].Done())
	}
	if err := ep.Send(env, 0, nil); err == nil || err.(*Error).Code != Deadlock {
		t.Errorf("a blocking send that waits for ever: %v", err)
	}
	for range sends {
		_, err := ep.Recv(env, make([]byte, 1000))
		must(t, err)
	}
	for _, r := range sends {
		_, err := r.Wait()
		must(t, err)
	}
	if ep.match.kept != 0 {
		t.Errorf("%d bytes are kept in the end", ep.match.kept)
	}
}
