package verbs_test

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// narrowed makes hosts whose path has come to lose jumbo frames, with a Write under way.
func narrowed(t *testing.T) (*bench, verbs.SendWR) {
	t.Helper()
	x := newBench(t, 9000, 2, 1<<16)
	wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, AH: x.a.ah, RKey: x.b.mr.RKey(), RemoteAddr: x.b.mr.Addr()}
	wr.NumSGE, wr.SGL = sge(x.a.mr.SGE(0, 30000))
	x.run(mono.Millisecond)
	x.lose = func(frame []byte) bool { return len(frame) > 1514 }
	must(t, x.a.qp.PostSend(&wr))
	return x, wr
}

// TestPath_shrinks: a path that does not carry any more what it did ends the
// association, for what was cut cannot be cut again; a new one goes on with
// what the path carries now. A peer that has no receive for as long is another
// matter.
func TestPath_shrinks(t *testing.T) {
	x, wr := narrowed(t)
	x.run(60 * mono.Second)
	var wcs [4]verbs.WC
	if n := x.a.scq.Poll(wcs[:]); n != 1 || wcs[0].Status != verbs.RetryExcErr || !x.a.ah.Lost() {
		t.Fatalf("%d completions, %+v", n, wcs[0])
	}
	again, err := x.a.pd.CreateAH(x.b.ctx.Addr())
	must(t, err)
	wr.AH = again
	must(t, x.a.qp.PostSend(&wr))
	x.run(mono.Second)
	if n := x.a.scq.Poll(wcs[:]); n != 1 || wcs[0].Status != verbs.Success {
		t.Fatalf("on the smaller path: %d completions, %+v", n, wcs[0])
	}
	send := verbs.SendWR{Opcode: verbs.OpSend, AH: again}
	send.NumSGE, send.SGL = sge(x.a.mr.SGE(0, 1300))
	must(t, x.a.qp.PostSend(&send))
	x.run(3 * mono.Second * 60)
	if again.Lost() {
		t.Error("a peer without a receive counts as lost")
	}
}

// TestPath_peerStoodStill: a peer that stood still, and had no room for the data that
// came meanwhile, answers all Hellos at once that have waited for it. That is no path
// that swallows data: it goes on.
func TestPath_peerStoodStill(t *testing.T) {
	x, _ := narrowed(t)
	b := x.b
	x.b = nil
	x.run(10 * mono.Second)
	x.b, x.lose = b, nil
	x.run(2 * mono.Second)
	var wcs [4]verbs.WC
	if n := x.a.scq.Poll(wcs[:]); n != 1 || wcs[0].Status != verbs.Success {
		t.Fatalf("%d completions, %+v", n, wcs[0])
	}
}
