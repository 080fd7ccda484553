package p2p

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// apartOp is a Write or a Read of memory that belongs to it alone.
type apartOp struct {
	r     *Request
	from  int
	reads bool
	here  []byte
	there []byte
}

// TestHybrid_connectionBreaksUnderWrites breaks connections while ranks write and read each other's
// memory over them, at one end or at both. When a Write is done its data is there, what its target
// puts in its place then stays, and nothing is left.
func TestHybrid_connectionBreaksUnderWrites(t *testing.T) {
	resent := [2]int{}
	for seed := range uint64(16) {
		w := newCrew(t, 2, Config{Transport: Hybrid, PromoteMessages: 1, Receives: 8, Sends: 4})
		w.talk(0, 1, 100_000)
		w.until(func() bool { return w.joined(0, 1) && w.joined(1, 0) })
		rng := rand.New(rand.NewPCG(seed, 3))
		var all []*apartOp
		for i := range 24 {
			n := 30_000 + rng.IntN(500_000)
			o := &apartOp{from: i % 2, reads: rng.IntN(2) == 0, here: make([]byte, n), there: make([]byte, n)}
			mr, err := w.eps[1-o.from].Inside().Expose(o.there)
			must(t, err)
			data, in := o.here, w.eps[o.from].Inside()
			if o.reads {
				data = o.there
			}
			copy(data, pattern(n))
			if o.reads {
				o.r = in.Read(0, int32(1-o.from), mr.RKey(), mr.Addr(), o.here)
			} else if o.r = in.Write(0, int32(1-o.from), mr.RKey(), mr.Addr(), o.here); !o.r.Apart() {
				t.Fatalf("seed %d: a Write of %d bytes goes in datagrams", seed, n)
			}
			all = append(all, o)
		}
		left := len(all)
		done := func() bool {
			for _, o := range all {
				if o.r == nil || !o.r.Done() {
					continue
				}
				_, err := o.r.Wait()
				must(t, err)
				if !bytes.Equal(o.here, pattern(len(o.here))) || !bytes.Equal(o.there, o.here) {
					t.Fatalf("seed %d: %d bytes are done (read: %v), and not there", seed, len(o.here), o.reads)
				}
				clear(o.there) // as the next epoch may
				o.r, left = nil, left-1
			}
			return left == 0
		}
		for range rng.IntN(60) {
			w.turn(rng.IntN(2))
			done()
		}
		if ends := rng.IntN(3); ends < 2 {
			w.cut(ends, 1-ends)
		} else {
			w.cut(0, 1)
			w.cut(1, 0)
		}
		for _, o := range all {
			if o.r != nil && o.r.grant.linked && o.r.written > 0 {
				which := 0
				if o.reads {
					which = 1
				}
				resent[which]++
			}
		}
		w.until(done)
		w.until(func() bool { return w.eps[0].peers[1].link.cut && w.eps[1].peers[0].link.cut })
		w.talk(0, 1, 300_000)
		w.talk(1, 0, 300_000)
		for _, o := range all {
			if !bytes.Equal(o.there, make([]byte, len(o.there))) {
				t.Errorf("seed %d: %d bytes have come again when they were done (read: %v)", seed, len(o.there), o.reads)
			}
		}
		for rank, ep := range w.eps {
			if p := &ep.peers[1-rank]; p.err != nil || p.reading != 0 || ep.net.conn.links != 0 || ep.Stats.Malformed != 0 || ep.Active() != 0 {
				t.Errorf("seed %d: rank %d: error %v, %d Reads, %d connections, %d requests, %+v", seed, rank, p.err, p.reading, ep.net.conn.links, ep.Active(), ep.Stats)
			}
		}
		w.drain()
	}
	if resent[0] < 20 || resent[1] < 20 {
		t.Errorf("only %d Writes and Reads were under way when connections broke", resent)
	}
}
