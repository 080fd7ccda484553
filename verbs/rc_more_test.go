package verbs

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// A request with More leaves with the one behind it, in one call of the stream, or in a step.
func TestRC_more(t *testing.T) {
	a, b := rcPair(t, ConnParam{})
	calls := func() uint64 { return a.ctx.cfg.Streams.Stats().TxCalls }
	post := func(op Opcode, n int, flags SendFlags) {
		t.Helper()
		must(t, a.qp.PostSend(&SendWR{Opcode: op, Flags: Signaled | flags, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, n)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()}))
	}
	recv := func() { must(t, b.qp.PostRecv(&RecvWR{NumSGE: 1, SGL: [MaxSGE]SGE{b.mr.SGE(0, 100)}})) }
	recv()
	post(OpSend, 8, 0)
	rcNext(t, a, b, b.rcq)
	rcNext(t, a, b, a.scq)
	for range 2 { // a step each behind the last call
		rcStep(a, b)
	}
	recv()
	before := calls()
	post(OpRDMAWrite, 10_000, More)
	if n := calls() - before; n != 0 {
		t.Errorf("a Write with More leaves by itself, in %d calls", n)
	}
	post(OpSend, 8, 0)
	if n := calls() - before; n != 1 {
		t.Errorf("a Write with More and a Send behind it leave in %d calls, want 1", n)
	}
	rcNext(t, a, b, b.rcq)
	for range 2 {
		rcNext(t, a, b, a.scq)
	}
	for range 2 {
		rcStep(a, b)
	}
	post(OpRDMAWrite, 8, More)
	rcNext(t, a, b, a.scq)
}

// The second of two requests waits for the next step, that of another step for none, also where the step does not look at streams.
func TestRC_postAfterStep(t *testing.T) {
	a, b := rcPair(t, ConnParam{})
	calls := func() uint64 { return a.ctx.cfg.Streams.Stats().TxCalls }
	write := func() {
		t.Helper()
		must(t, a.qp.PostSend(&SendWR{Opcode: OpRDMAWrite, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, 8)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()}))
	}
	a.ch.Expect(0)
	rcStep(a, b)
	rcStep(a, b)
	a.ctx.streams.rarely.next = mono.Never // no look for now
	before := calls()
	for i := range uint64(3) {
		write()
		if n := calls() - before; n != i+1 {
			t.Fatalf("%d requests, with a step behind each, left in %d calls", i+1, n)
		}
		a.ctx.Poll(0, 1)
	}
	write()
	if write(); calls()-before != 4 {
		t.Errorf("two requests without a step between left in %d calls, want 1", calls()-before-3)
	}
}
