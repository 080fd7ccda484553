package device_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// needRoot skips a test that needs namespaces and AF_XDP, unless CI says that
// they must be there.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 && os.Getenv("XWARP_REQUIRE_XDP") != "1" {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
}

// host is one end: a context on a host of a testbed and a queue pair.
type host struct {
	ctx      *verbs.Context
	scq, rcq *verbs.CQ
	qp       *verbs.QP
	pd       *verbs.PD
	ah       *verbs.AH
	mr       *verbs.MR
}

func openHost(h *testbed.Host, s device.Spec) (*host, error) {
	e := &host{}
	s.Device, s.Key = h.Dev, 99
	err := h.Do(func() (err error) {
		e.ctx, err = device.Open(s)
		return err
	})
	if err != nil {
		return nil, err
	}
	if e.pd, err = e.ctx.AllocPD(); err != nil {
		return nil, err
	}
	e.scq, _ = e.ctx.CreateCQ(0)
	e.rcq, _ = e.ctx.CreateCQ(0)
	e.qp, err = e.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: e.scq, RecvCQ: e.rcq})
	if err != nil {
		return nil, err
	}
	e.mr, err = e.pd.RegMR(make([]byte, 1<<20), verbs.LocalWrite|verbs.RemoteWrite)
	return e, err
}

func (e *host) connect(to *host) (err error) {
	e.ah, err = e.pd.CreateAH(to.ctx.Addr())
	return err
}

func (e *host) recv() {
	wr := verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, 4096)}}
	if err := e.qp.PostRecv(&wr); err != nil {
		panic(err)
	}
}

func (e *host) send(msg []byte) {
	wr := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: msg, AH: e.ah}
	if err := e.qp.PostSend(&wr); err != nil {
		panic(err)
	}
}

func (e *host) wait() {
	var wc [1]verbs.WC
	for e.rcq.Poll(wc[:]) == 0 {
		if e.ctx.Engine().Step() == 0 {
			e.ctx.Engine().Park()
		}
	}
	if wc[0].Status != verbs.Success {
		panic(fmt.Sprintf("%+v", wc[0]))
	}
	e.recv()
}

func pin(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	unix.SchedSetaffinity(0, &set)
}

func pair(t testing.TB, fabric string) (a, b *host) {
	needRoot(t)
	tb, err := testbed.New(testbed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tb.Close() })
	var ends [2]*host
	for i := range ends {
		if ends[i], err = openHost(tb.Hosts[i], device.Spec{Fabric: fabric}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].ctx.Close() })
		for range 32 {
			ends[i].recv()
		}
	}
	for i := range ends {
		if err := ends[i].connect(ends[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

func pingPong(a, b *host, n int) {
	done := make(chan struct{})
	msg := make([]byte, 8)
	go func() {
		pin(1)
		for range n {
			b.wait()
			b.send(msg)
		}
		close(done)
	}()
	for range n {
		a.send(msg)
		a.wait()
	}
	<-done
}

func Benchmark_pingPong8(bm *testing.B) {
	a, b := pair(bm, os.Getenv("F"))
	pin(0)
	pingPong(a, b, 1000)
	bm.ResetTimer()
	pingPong(a, b, bm.N)
}
