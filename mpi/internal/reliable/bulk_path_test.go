package reliable

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
)

// streams writes n times 20 KB from node 0 to node 1, one after the other with
// pauses, and returns how many datagrams went by the second path.
func (ch *channel) streams(n int) int {
	const size = 100 * testChunk
	before := ch.there
	for range n {
		ch.bulk(0, 1, 1, size)
		ch.finish()
		ch.now = ch.now.Add(5 * mono.Millisecond)
	}
	return ch.there - before
}

func withBulk(t *testing.T, f faults) *channel {
	ch := newChannel(t, 2, 1, 256, arq.Config{})
	ch.faults = f
	ch.two()
	return ch
}

// A burst begins on the first path, and so does all of it before the peer has answered there.
func TestBulkPath_found(t *testing.T) {
	ch := withBulk(t, faults{})
	ch.streams(1)
	if x := ch.nodes[0]; x.Hellos != 1 || !x.peers[1].conn.bulk.Found() {
		t.Fatalf("%d Hellos; the way was found: %v", x.Hellos, x.peers[1].conn.bulk.Found())
	}
	const bursts, chunks = 10, 100
	bulk := ch.nodes[0].Bulk
	ch.streams(bursts)
	// A Write is two bursts at most, for all may have arrived at once of what a window takes.
	if n := ch.nodes[0].Bulk - bulk; n > bursts*(chunks-arq.BurstAfter) || n < bursts*(chunks-2*arq.BurstAfter) {
		t.Errorf("%d chunks of %d went by the second path, want all but the first %d of each burst", n, bursts*chunks, arq.BurstAfter)
	}
	if x := ch.nodes[0]; x.Resent != 0 || x.Hellos != 1 {
		t.Errorf("%d chunks were sent again, %d Hellos", x.Resent, x.Hellos)
	}
}

// Short messages never ask for a path that they would not take.
func TestBulkPath_shortMessages(t *testing.T) {
	ch := withBulk(t, faults{})
	for range 300 {
		ch.bulk(0, 1, 1, 2*testChunk)
	}
	ch.finish()
	if ch.there != 0 {
		t.Errorf("%d datagrams went by the second path", ch.there)
	}
}

// A path that answers and loses half is left alone for longer and longer.
func TestBulkPath_swallows(t *testing.T) {
	ch := withBulk(t, faults{eats: 0.9})
	const bursts = 300
	all := ch.streams(bursts)
	if bursts := ch.nodes[0].Bulk / 50; bursts == 0 || bursts > 30 {
		t.Errorf("about %d bursts of %d took a path that loses most of it", bursts, all)
	}
	ch.faults.eats = 0
	ch.now = ch.now.Add(60 * mono.Second)
	ch.streams(3)
	if !ch.nodes[0].peers[1].conn.bulk.Found() {
		t.Error("the way is good again, and was not found")
	}
}

// Behind a firewall everything goes by the first path, and Hellos become rare.
func TestBulkPath_firewall(t *testing.T) {
	ch := withBulk(t, faults{wall: [2]mono.Time{0, mono.Never}})
	ch.streams(300)
	if x := ch.nodes[0]; x.Bulk != 0 || x.Resent != 0 || x.Hellos < 3 || x.Hellos > 12 {
		t.Errorf("%d chunks went by the second path, %d were sent again, %d Hellos", x.Bulk, x.Resent, x.Hellos)
	}
}

// Over queue pairs of verbs: large Writes go by the second path once it is found, what is
// lost there comes the first, and nothing is allocated for any of it.
func TestQueuePair_withBulk(t *testing.T) {
	r := newRigOf(t, 8972, true)
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := r.ends[0], r.ends[1]
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(rng.Uint32())
	}
	const n = 800_000
	write := func(what string) {
		clear(b.mr.Bytes())
		wr := a.long(1, verbs.OpRDMAWrite, 0, n)
		wr.RKey, wr.RemoteAddr = b.mr.RKey(), b.mr.Addr()
		must(t, a.PostSend(a.peer, wr))
		must(t, a.PostSend(a.peer, a.inline(2, []byte("done"))))
		a.wcs, b.got = a.wcs[:0], b.got[:0]
		r.until(what, func() bool { return len(a.wcs) == 2 && len(b.got) == 1 })
		if !bytes.Equal(b.mr.Bytes()[:n], a.mr.Bytes()[:n]) {
			t.Fatalf("%s went wrong", what)
		}
	}
	write("the first Write")
	write("the second")
	stats, _ := b.ctx.Stats()
	if !a.peer.conn.bulk.Found() || stats.RxBulk < 80 || a.Resent != 0 {
		t.Errorf("found: %v; %d datagrams came by the second path, %d were sent again", a.peer.conn.bulk.Found(), stats.RxBulk, a.Resent)
	}
	r.loses = func() bool { return rng.Float64() < 0.05 }
	write("one with loss")
	if a.Resent == 0 {
		t.Error("a part of it was lost, and nothing was sent again")
	}
}

func TestAllocs_withBulk(t *testing.T) {
	r := newRigOf(t, 8972, true)
	a, b := r.ends[0], r.ends[1]
	wr := a.long(1, verbs.OpRDMAWrite, 0, 200_000)
	wr.RKey, wr.RemoteAddr = b.mr.RKey(), b.mr.Addr()
	var wcs [16]verbs.WC
	round := func() {
		must(t, a.PostSend(a.peer, wr))
		for left := 1; left > 0; {
			for _, e := range r.ends {
				e.ctx.Engine().Step()
				n, _ := e.Poll(r.now, wcs[:])
				left -= n
			}
			r.now = r.now.Add(5 * mono.Microsecond)
		}
	}
	for range 20 {
		round()
	}
	bulk := a.Bulk
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for a Write", n)
	}
	if a.Bulk == bulk {
		t.Error("nothing went by the second path")
	}
}
