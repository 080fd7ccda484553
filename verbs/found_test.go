package verbs_test

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// What cmd/xcheck has found, as small as it goes.

// A Read is over when it was answered and its request acknowledged. When the
// answer was enough, its place in the queue was used again, and the
// acknowledgement completed whatever was there then.
func TestRead_acknowledgementIsNotTheNextRequests(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	wr := verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, AH: x.a.ah, RKey: x.b.mr.RKey(), RemoteAddr: x.b.mr.Addr()}
	wr.NumSGE, wr.SGL = sge(x.a.mr.SGE(0, 100))
	must(t, x.a.qp.PostSend(&wr))
	wait(x.a, x.b, x.a.scq)
	wr.Opcode, wr.WRID = verbs.OpRDMAWrite, 7
	must(t, x.a.qp.PostSend(&wr))
	var wcs [1]verbs.WC
	for range 50 { // the peer does nothing
		x.clock.now += 1000
		x.a.ctx.Engine().Step()
		if x.a.scq.Poll(wcs[:]) != 0 {
			t.Fatalf("completed before the peer could have it: %+v", wcs[0])
		}
	}
	x.run(mono.Millisecond)
	if n := x.a.scq.Poll(wcs[:]); n != 1 || wcs[0].WRID != 7 || wcs[0].Status != verbs.Success {
		t.Errorf("%d completions: %+v", n, wcs[0])
	}
}

// Two ends that refuse each other's requests take nothing from one another any
// more, yet each must hear that it is over.
func TestTerminate_bothRefuse(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	for _, e := range []*end{x.a, x.b} {
		for range 20 {
			wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, AH: e.ah, RKey: 0xbad00}
			wr.NumSGE, wr.SGL = sge(e.mr.SGE(0, 1000))
			must(t, e.qp.PostSend(&wr))
		}
	}
	x.run(5 * mono.Second)
	for i, e := range []*end{x.a, x.b} {
		var wcs [32]verbs.WC
		if n := e.scq.Poll(wcs[:]); n != 20 || !e.ah.Lost() {
			t.Errorf("end %d: %d of 20 requests have ended, lost: %v", i, n, e.ah.Lost())
		}
	}
}

// What has arrived before a request that is refused, and comes after it, is not
// delivered, and gives its receive back.
func TestRefused_whatFollowsIsNotDelivered(t *testing.T) {
	x := newBench(t, 1500, 2, 4096)
	for range 3 {
		x.b.recv(t, 0, 100)
	}
	lost := false
	x.lose = func(frame []byte) bool {
		first := !lost && len(frame) > 90 && frame[29] == 1 // from the first host: the Read Request
		lost = lost || first
		return first
	}
	wr := verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, AH: x.a.ah, RKey: 0xbad00}
	wr.NumSGE, wr.SGL = sge(x.a.mr.SGE(0, 10))
	must(t, x.a.qp.PostSend(&wr))
	x.step()
	for range 2 {
		send(t, x.a, verbs.Signaled, x.a.mr.SGE(0, 50))
		x.step()
	}
	x.run(mono.Second)
	var wcs [8]verbs.WC
	n := x.b.rcq.Poll(wcs[:])
	for _, wc := range wcs[:n] {
		if wc.Status != verbs.WRFlushErr {
			t.Errorf("delivered: %+v", wc)
		}
	}
	x.b.qp.Destroy()
	if n += x.b.rcq.Poll(wcs[n:]); n != 3 || !lost {
		t.Errorf("%d of 3 receives completed, a frame was lost: %v", n, lost)
	}
}
