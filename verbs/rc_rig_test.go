package verbs

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/progress"
)

// rcEnd is one end of an RC connection over kernel TCP on loopback.
type rcEnd struct {
	ctx      *Context
	ch       *CMChannel
	pd       *PD
	scq, rcq *CQ
	id       *CMID
	qp       *QP
	mem      []byte
	mr       *MR
}

const rcMem = 1 << 20

func newRCEnd(t testing.TB, wrap ...func(fabric.Streams) fabric.Streams) *rcEnd {
	t.Helper()
	arena, err := mem.New(mem.Config{Size: 16 << 20})
	must(t, err)
	var s fabric.Streams
	s, err = ktcp.Open(ktcp.Config{Arena: arena})
	must(t, err)
	for _, w := range wrap {
		s = w(s)
	}
	poller, err := progress.NewPoller(mono.Real{}, progress.PollerConfig{})
	must(t, err)
	e := &rcEnd{}
	e.ctx, err = New(Config{Streams: s, Engine: progress.New(mono.Real{}, poller)})
	must(t, err)
	room := arena.Room()
	t.Cleanup(func() {
		if e.ctx.streams.in != nil && arena.Room() != room-inLen {
			t.Error("streams are not received into memory of the arena, the pages of which are there")
		}
		must(t, e.ctx.Close())
		if arena.Room() != room {
			t.Errorf("%d bytes of the arena are left taken by a context that is closed", room-arena.Room())
		}
		must(t, poller.Close())
		must(t, arena.Close())
	})
	e.ch, err = e.ctx.CreateCMChannel()
	must(t, err)
	e.pd, err = e.ctx.AllocPD()
	must(t, err)
	e.scq, err = e.ctx.CreateCQ(CQInit{})
	must(t, err)
	e.rcq, err = e.ctx.CreateCQ(CQInit{})
	must(t, err)
	e.mem = make([]byte, rcMem)
	e.mr, err = e.pd.RegMR(e.mem, LocalWrite|RemoteWrite|RemoteRead|RemoteAtomic)
	must(t, err)
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rcPair connects two ends.
func rcPair(t testing.TB, p ConnParam, wrap ...func(fabric.Streams) fabric.Streams) (a, b *rcEnd) {
	t.Helper()
	a, b = newRCEnd(t, wrap...), newRCEnd(t, wrap...)
	lis, err := b.ch.CreateID()
	must(t, err)
	must(t, lis.BindAddr(netip.MustParseAddrPort("127.0.0.1:0")))
	must(t, lis.Listen(8))
	a.id, err = a.ch.CreateID()
	must(t, err)
	must(t, a.id.ResolveAddr(lis.LocalAddr(), 0))
	rcEvent(t, a, b, a, CMAddrResolved)
	must(t, a.id.ResolveRoute(0))
	rcEvent(t, a, b, a, CMRouteResolved)
	must(t, a.id.CreateQP(a.pd, QPInit{SendCQ: a.scq, RecvCQ: a.rcq}))
	must(t, a.id.Connect(p))
	ev := rcEvent(t, a, b, b, CMConnectRequest)
	b.id = ev.ID
	must(t, b.id.CreateQP(b.pd, QPInit{SendCQ: b.scq, RecvCQ: b.rcq}))
	must(t, b.id.Accept(ConnParam{CRC: p.CRC, Markers: p.Markers}))
	rcEvent(t, a, b, a, CMEstablished)
	rcEvent(t, a, b, b, CMEstablished)
	a.qp, b.qp = a.id.QP, b.id.QP
	return a, b
}

func rcStep(a, b *rcEnd) {
	a.ctx.Engine().Step()
	b.ctx.Engine().Step()
}

func rcEvent(t testing.TB, a, b, at *rcEnd, want CMEventType) CMEvent {
	t.Helper()
	for {
		if ev, ok := at.ch.GetEvent(); ok {
			if ev.Type != want {
				t.Fatalf("event %v (%v), want %v", ev.Type, ev.Err, want)
			}
			return ev
		}
		rcStep(a, b)
	}
}

func rcNext(t testing.TB, a, b *rcEnd, q *CQ) WC {
	t.Helper()
	var wc [1]WC
	for q.Poll(wc[:]) == 0 {
		rcStep(a, b)
	}
	return wc[0]
}

func TestRC_everyOperation(t *testing.T) {
	for _, p := range []ConnParam{{}, {CRC: true}, {Markers: true}, {CRC: true, Markers: true}} {
		a, b := rcPair(t, p)
		for i := range a.mem {
			a.mem[i] = byte(i * 7)
		}
		want := bytes.Clone(a.mem[:300_000])
		for _, n := range []int{0, 1, 8, 511, 512, 513, 1424, 1425, 70_000, 300_000} {
			clear(b.mem)
			must(t, b.qp.PostRecv(&RecvWR{WRID: 7, NumSGE: 1, SGL: [MaxSGE]SGE{b.mr.SGE(0, rcMem)}}))
			must(t, a.qp.PostSend(&SendWR{WRID: 8, Opcode: OpSend, Flags: Signaled, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, n)}}))
			if wc := rcNext(t, a, b, b.rcq); wc.WRID != 7 || wc.Status != Success || wc.ByteLen != uint32(n) {
				t.Fatalf("%d bytes: %+v", n, wc)
			}
			if wc := rcNext(t, a, b, a.scq); wc.WRID != 8 || wc.Status != Success {
				t.Fatalf("%d bytes: %+v", n, wc)
			}
			if !bytes.Equal(b.mem[:n], want[:n]) || b.mem[n] != 0 {
				t.Fatalf("%d bytes: wrong", n)
			}
			clear(b.mem)
			must(t, a.qp.PostSend(&SendWR{WRID: 9, Opcode: OpRDMAWrite, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, n)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 5}))
			must(t, a.qp.PostSend(&SendWR{WRID: 10, Opcode: OpRDMARead, Flags: Signaled, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(400_000, n)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 5}))
			if wc := rcNext(t, a, b, a.scq); wc.WRID != 10 || wc.Status != Success {
				t.Fatalf("%d bytes: %+v", n, wc)
			}
			if !bytes.Equal(a.mem[400_000:400_000+n], want[:n]) {
				t.Fatalf("%d bytes: read wrong", n)
			}
		}
		order.PutUint64(b.mem, 40)
		must(t, a.qp.PostSend(&SendWR{WRID: 11, Opcode: OpAtomicFetchAndAdd, Flags: Signaled, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, 8)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr(), Atomic: Atomic{Add: 2}}))
		if wc := rcNext(t, a, b, a.scq); wc.WRID != 11 || wc.Status != Success || order.Uint64(a.mem) != 40 || order.Uint64(b.mem) != 42 {
			t.Fatalf("%+v", wc)
		}
		must(t, b.qp.PostRecv(&RecvWR{WRID: 12}))
		must(t, a.qp.PostSend(&SendWR{Opcode: OpRDMAWriteWithImm, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, 8)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr(), ImmData: 99}))
		if wc := rcNext(t, a, b, b.rcq); wc.WRID != 12 || wc.Opcode != OpRecvRDMAWithImm || wc.ImmData != 99 || order.Uint64(b.mem) != 40 {
			t.Fatalf("%+v", wc)
		}
		must(t, b.qp.PostRecv(&RecvWR{WRID: 13, NumSGE: 1, SGL: [MaxSGE]SGE{b.mr.SGE(0, rcMem)}}))
		must(t, a.id.Disconnect())
		rcEvent(t, a, b, b, CMDisconnected)
		rcEvent(t, a, b, a, CMDisconnected)
		if wc := rcNext(t, a, b, b.rcq); wc.WRID != 13 || wc.Status != WRFlushErr {
			t.Fatalf("%+v", wc)
		}
	}
}

// Benchmark_rcPingPong8 is two ends in one goroutine over loopback TCP.
func Benchmark_rcPingPong8(bm *testing.B) {
	a, b := rcPair(bm, ConnParam{})
	bm.ReportAllocs()
	for bm.Loop() {
		for _, x := range [][2]*rcEnd{{a, b}, {b, a}} {
			from, to := x[0], x[1]
			must(bm, to.qp.PostRecv(&RecvWR{NumSGE: 1, SGL: [MaxSGE]SGE{to.mr.SGE(64, 8)}}))
			must(bm, from.qp.PostSend(&SendWR{Opcode: OpSend, NumSGE: 1, SGL: [MaxSGE]SGE{from.mr.SGE(0, 8)}}))
			var wc [1]WC
			for to.rcq.Poll(wc[:]) == 0 {
				to.ctx.Engine().Step()
			}
		}
	}
}
