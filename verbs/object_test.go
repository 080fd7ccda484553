package verbs

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/llp"
)

// noCarrier carries nothing: it is for tests of what never leaves the host.
type noCarrier struct {
	fabric.Datagram
	arena *mem.Arena
}

func (n noCarrier) Arena() *mem.Arena { return n.arena }

func newContext() *Context {
	c := &Context{cfg: Config{Datagram: noCarrier{arena: mem.Over(make([]byte, 1<<16))}}}
	c.datagrams.ctx = c
	c.keys.init(c.cfg.keySeed())
	return c
}

// newQP returns a queue pair that talks to nobody.
func newQP(pd *PD) *QP {
	cq := func() *CQ { return &CQ{ctx: pd.ctx, ring: make([]WC, 8), depth: 8} }
	q := &QP{ctx: pd.ctx, pd: pd, typ: RD, num: rdNum, sendCQ: cq(), recvCQ: cq()}
	if pd.ctx.ep == nil {
		pd.ctx.ep = &llp.Endpoint{}
	}
	q.rd = &rdQP{datagramQP: datagramQP{QP: q, ep: q.ctx.ep}, in: rdReceiver{QP: q}}
	q.rq.init(8)
	return q
}

func newPD(t testing.TB, c *Context) *PD {
	t.Helper()
	pd, err := c.AllocPD()
	ok(t, err)
	return pd
}

func newMR(t testing.TB, pd *PD, n int, access Access) *MR {
	t.Helper()
	m, err := pd.RegMR(make([]byte, n), access)
	ok(t, err)
	return m
}

func newMW(t testing.TB, pd *PD) *MW {
	t.Helper()
	w, err := pd.AllocMW()
	ok(t, err)
	return w
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
