package verbs_test

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/verbs"
)

// noPark is for engines that are stepped by hand.
type noPark struct{}

func (noPark) Park(mono.Time, mono.Duration) bool { return false }

// end is one side of a pipe with everything a message needs.
type end struct {
	ctx *verbs.Context
	pd  *verbs.PD
	scq *verbs.CQ
	rcq *verbs.CQ
	qp  *verbs.QP
	ah  *verbs.AH
	mr  *verbs.MR
}

func newPair(t testing.TB, mtu, bufSize int) (a, b *end) {
	t.Helper()
	pa, pb, err := conform.NewPipe(conform.PipeConfig{MTU: mtu, Frames: 2048, Depth: 512})
	must(t, err)
	addrs := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:18700"), netip.MustParseAddrPort("10.0.0.2:18700")}
	macs := []inet.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	hops := inet.Fixed{}
	for i, a := range addrs {
		hops[a.Addr()] = inet.Hop{MAC: macs[i], Source: addrs[1-i].Addr(), MTU: mtu}
	}
	ends := []*end{{}, {}}
	for i, port := range []*conform.Pipe{pa, pb} {
		e := ends[i]
		ep, err := inet.New(inet.Config{Port: port, Resolver: hops, Local: addrs[i], MAC: macs[i]})
		must(t, err)
		e.ctx, err = verbs.New(verbs.Config{Datagram: ep, Engine: progress.New(mono.Real{}, noPark{}), Key: 42, Epoch: uint32(i + 1)})
		must(t, err)
		e.pd, err = e.ctx.AllocPD()
		must(t, err)
		e.scq, err = e.ctx.CreateCQ(verbs.CQInit{})
		must(t, err)
		e.rcq, err = e.ctx.CreateCQ(verbs.CQInit{})
		must(t, err)
		e.qp, err = e.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: e.scq, RecvCQ: e.rcq})
		must(t, err)
		e.ah, err = e.pd.CreateAH(addrs[1-i])
		must(t, err)
		e.mr, err = e.pd.RegMR(make([]byte, bufSize), verbs.LocalWrite|verbs.RemoteWrite)
		must(t, err)
	}
	for range 20 { // the handshake
		for _, e := range ends {
			e.ctx.Engine().Step()
		}
	}
	return ends[0], ends[1]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (e *end) recv(t testing.TB, off, n int) {
	t.Helper()
	must(t, e.qp.PostRecv(&verbs.RecvWR{WRID: uint64(off), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(off, n)}}))
}

// wait steps both ends until one of them has a completion in q.
func wait(a, b *end, q *verbs.CQ) (wc verbs.WC) {
	var one [1]verbs.WC
	for q.Poll(one[:]) == 0 {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
	}
	return one[0]
}

// pingPong sends n bytes each way. It reports errors by panic, because
// t.Helper costs more than all that is measured.
func pingPong(ends [2]*end, msg []byte) {
	for i, from := range ends {
		to := ends[1-i]
		wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: msg, AH: from.ah}
		if err := from.qp.PostSend(&wr); err != nil {
			panic(err)
		}
		var one [1]verbs.WC
		for to.rcq.Poll(one[:]) == 0 {
			to.ctx.Engine().Step()
		}
		rr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{to.mr.SGE(0, 4096)}}
		if err := to.qp.PostRecv(&rr); err != nil {
			panic(err)
		}
	}
}

func BenchmarkRD_pingPong8(bm *testing.B) {
	a, b := newPair(bm, 9000, 1<<16)
	for range 16 {
		a.recv(bm, 0, 4096)
		b.recv(bm, 0, 4096)
	}
	msg := make([]byte, 8)
	bm.ReportAllocs()
	for bm.Loop() {
		pingPong([2]*end{a, b}, msg)
	}
}

// sendMany sends n messages in one window, and takes them.
func sendMany(a, b *end, n int, msg []byte) {
	for i := range n {
		wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: msg, AH: a.ah}
		if i == n-1 {
			wr.Flags |= verbs.Signaled
		}
		if err := a.qp.PostSend(&wr); err != nil {
			panic(err)
		}
	}
	var wcs [32]verbs.WC
	for got := 0; got < n; {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
		more := b.rcq.Poll(wcs[:])
		for range more {
			rr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{b.mr.SGE(0, 4096)}}
			if err := b.qp.PostRecv(&rr); err != nil {
				panic(err)
			}
		}
		got += more
	}
	for a.scq.Poll(wcs[:]) == 0 {
		a.ctx.Engine().Step()
		b.ctx.Engine().Step()
	}
}

func ratePair(t testing.TB) (a, b *end) {
	a, b = newPair(t, 9000, 1<<16)
	for range 128 {
		b.recv(t, 0, 4096)
	}
	a.recv(t, 0, 4096)
	pingPong([2]*end{b, a}, make([]byte, 8)) // the sender hears how many receives there are
	return a, b
}

func BenchmarkRD_rate8(bm *testing.B) {
	const messages = 64
	a, b := ratePair(bm)
	msg := make([]byte, 8)
	bm.ReportAllocs()
	for bm.Loop() {
		sendMany(a, b, messages, msg)
	}
	bm.ReportMetric(float64(bm.Elapsed().Nanoseconds())/float64(bm.N*messages), "ns/msg")
}

func TestAllocs_rate(t *testing.T) {
	a, b := ratePair(t)
	msg := make([]byte, 8)
	if n := testing.AllocsPerRun(1000, func() { sendMany(a, b, 64, msg) }); n != 0 {
		t.Errorf("%v allocations per window, want none", n)
	}
}

func TestAllocs_pingPong(t *testing.T) {
	a, b := newPair(t, 9000, 1<<16)
	for range 16 {
		a.recv(t, 0, 4096)
		b.recv(t, 0, 4096)
	}
	msg := make([]byte, 8)
	if n := testing.AllocsPerRun(1000, func() { pingPong([2]*end{a, b}, msg) }); n != 0 {
		t.Errorf("%v allocations per round trip, want none", n)
	}
}
