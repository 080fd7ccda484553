package device_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// rcHost is one end of a connection.
type rcHost struct {
	ctx *verbs.Context
	pd  *verbs.PD
	cq  *verbs.CQ
	mr  *verbs.MR
	ch  *verbs.CMChannel
	id  *verbs.CMID
}

// openRC opens a device whose engine sleeps whenever there is nothing to do, so
// that a carrier nobody watches makes the test hang.
func openRC(t *testing.T, s device.Spec) *rcHost {
	t.Helper()
	s.Key, s.Poller = 99, progress.PollerConfig{NoSpin: true}
	ctx, err := device.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, ctx)
	h := &rcHost{ctx: ctx}
	if h.pd, err = ctx.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if h.cq, err = ctx.CreateCQ(verbs.CQInit{}); err != nil {
		t.Fatal(err)
	}
	if h.mr, err = h.pd.RegMR(make([]byte, 1<<20), verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead); err != nil {
		t.Fatal(err)
	}
	if h.ch, err = ctx.CreateCMChannel(); err != nil {
		t.Fatal(err)
	}
	if h.id, err = h.ch.CreateID(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *rcHost) init() verbs.QPInit { return verbs.QPInit{SendCQ: h.cq, RecvCQ: h.cq} }

// event waits for an event of one type.
func (h *rcHost) event(t *testing.T, want verbs.CMEventType) verbs.CMEvent {
	e := h.ch.Wait()
	if e.Type != want {
		t.Errorf("event %v, %v; want %v", e.Type, e.Err, want)
	}
	return e
}

// completion waits for one.
func (h *rcHost) completion(t *testing.T) verbs.WC {
	var wc [1]verbs.WC
	for h.cq.Poll(wc[:]) == 0 {
		if h.ctx.Engine().Step() == 0 {
			h.ctx.Engine().Park()
		}
	}
	if wc[0].Status != verbs.Success {
		t.Errorf("%+v", wc[0])
	}
	return wc[0]
}

// serve accepts one connection, sends back what it receives, and waits for the
// end.
func (h *rcHost) serve(t *testing.T) {
	e := h.event(t, verbs.CMConnectRequest)
	if e.ID == nil {
		return
	}
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	check(e.ID.CreateQP(h.pd, h.init()))
	check(e.ID.QP.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{h.mr.SGE(0, 1<<20)}}))
	check(e.ID.Accept(verbs.ConnParam{}))
	h.event(t, verbs.CMEstablished)
	n := int(h.completion(t).ByteLen)
	check(e.ID.QP.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{h.mr.SGE(0, n)}}))
	h.completion(t)
	h.event(t, verbs.CMDisconnected)
	check(e.ID.Destroy())
}

func TestRC_everyKernelCarrier(t *testing.T) {
	for _, c := range []struct {
		name string
		spec device.Spec
	}{
		{"tcp", device.Spec{Fabric: "tcp"}},
		{"tcp device", device.Spec{Fabric: "tcp", Device: "lo"}},
		{"tcp IPv6", device.Spec{Fabric: "tcp", Addr: netip.IPv6Loopback()}},
		{"tcp 1500", device.Spec{Fabric: "tcp", MTU: 1500}},
		{"beside udp", device.Spec{Fabric: "udp", RC: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, client := openRC(t, c.spec), openRC(t, c.spec)
			at := netip.AddrPortFrom(server.ctx.Addr().Addr(), 0)
			if err := server.id.BindAddr(at); err != nil {
				t.Fatal(err)
			}
			if err := server.id.Listen(0); err != nil {
				t.Fatal(err)
			}
			to := server.id.LocalAddr()
			done := make(chan struct{})
			go func() {
				defer close(done)
				server.serve(t)
			}()
			client.call(t, to)
			<-done
		})
	}
}

// call sends some data, and wants it back.
func (h *rcHost) call(t *testing.T, to netip.AddrPort) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(h.id.ResolveAddr(to, 0))
	h.event(t, verbs.CMAddrResolved)
	check(h.id.ResolveRoute(0))
	h.event(t, verbs.CMRouteResolved)
	check(h.id.CreateQP(h.pd, h.init()))
	want := make([]byte, 300_001)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	half := len(h.mr.Bytes()) / 2
	check(h.id.QP.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{h.mr.SGE(half, half)}}))
	check(h.id.Connect(verbs.ConnParam{}))
	h.event(t, verbs.CMEstablished)
	copy(h.mr.Bytes(), want)
	check(h.id.QP.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{h.mr.SGE(0, len(want))}}))
	h.completion(t)
	wc := h.completion(t)
	if int(wc.ByteLen) != len(want) || !bytes.Equal(h.mr.Bytes()[half:half+len(want)], want) {
		t.Errorf("%d bytes come back, and differ", wc.ByteLen)
	}
	check(h.id.Disconnect())
	h.event(t, verbs.CMDisconnected)
	if s := h.ctx.StreamStats(); s.Opened != 1 || s.TxBytes < uint64(len(want)) {
		t.Errorf("the carrier counts %+v", s)
	}
}
