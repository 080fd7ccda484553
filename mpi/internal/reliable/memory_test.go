package reliable

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/verbs"
)

// clogged is a carrier that takes nothing for a while.
type clogged struct {
	fabric.Datagram
	full bool
}

func (c *clogged) TxRoom() int {
	if c.full {
		return 0
	}
	return c.Datagram.TxRoom()
}

// A request is complete when all of it has arrived. By then a part of it may have been
// sent again in vain, and wait in the queue pair for a carrier that is full. The memory
// is not the user's before that has gone out too: it might be overwritten, or not be
// there any more.
func TestQueuePair_keepsMemoryOfWhatIsQueued(t *testing.T) {
	for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpSend} {
		for _, abandon := range []bool{false, true} {
			t.Run(op.String(), func(t *testing.T) { testKeepsMemory(t, op, abandon) })
		}
	}
}

func testKeepsMemory(t *testing.T, op verbs.Opcode, abandon bool) {
	r := newRigWith(t, 1472, false, func(d fabric.Datagram) fabric.Datagram { return &clogged{Datagram: d} })
	a, b := r.ends[0], r.ends[1]
	const theirs, again = 0x55, 0xee
	fill := func(v byte) {
		for i := range a.mr.Bytes() {
			a.mr.Bytes()[i] = v
		}
	}
	fill(theirs)
	toA := fabric.RemoteOf(a.ctx.Addr())
	type datagram struct {
		from, to fabric.Remote
		b        []byte
	}
	var kept []datagram // acknowledgements that are slow
	slow := true
	r.net.Wire = func(from, to fabric.Remote, p []byte) {
		if bytes.Contains(p, bytes.Repeat([]byte{again}, 100)) {
			t.Fatal("memory went out that is the user's again")
		}
		if slow && to == toA {
			kept = append(kept, datagram{from, to, bytes.Clone(p)})
			return
		}
		r.net.Deliver(from, to, p)
	}
	wr := a.long(1, op, 0, 1000)
	wr.RKey, wr.RemoteAddr = b.mr.RKey(), b.mr.Addr()
	must(t, a.PostSend(a.peer, wr))
	r.until("an acknowledgement", func() bool { return len(kept) > 0 })
	carrier := a.carrier.(*clogged)
	carrier.full = true
	r.until("a resend", func() bool { return a.Resent > 0 })
	if a.QP().Unsent() == 0 {
		t.Fatal("nothing waits in the queue pair")
	}
	if slow = false; abandon {
		a.Abandon(a.peer)
	}
	for _, d := range kept {
		r.net.Deliver(d.from, d.to, d.b)
	}
	done := func() bool {
		if len(a.wcs) == 1 {
			fill(again)
		}
		return len(a.wcs) == 1
	}
	for range 100 {
		r.step(20 * mono.Microsecond)
		done()
	}
	carrier.full = false
	r.until("the completion", done)
	for range 100 {
		r.step(20 * mono.Microsecond)
	}
	if want := map[bool]verbs.Status{false: verbs.Success, true: verbs.RetryExcErr}[abandon]; a.wcs[0].Status != want {
		t.Errorf("%+v, want %v", a.wcs[0], want)
	}
}
