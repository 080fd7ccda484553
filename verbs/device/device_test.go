package device_test

import (
	"cmp"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// host is one end: a context, perhaps on a host of a testbed, and a queue pair.
type host struct {
	ctx      *verbs.Context
	scq, rcq *verbs.CQ
	qp       *verbs.QP
	pd       *verbs.PD
	ah       *verbs.AH
	mr       *verbs.MR
	at       *testbed.Host // or nil
	stocked  bool          // receives of testExchange are posted
}

// openHost opens s on a host, or on loopback when h is nil.
func openHost(h *testbed.Host, s device.Spec) (e *host, err error) {
	e = &host{}
	s.Key = cmp.Or(s.Key, 99)
	enter := func(fn func() error) error { return fn() }
	if h != nil {
		s.Device, enter = h.Dev, h.Do
		if h.Second != nil {
			s.Device += "," + h.Second.Dev
		}
	}
	err = enter(func() (err error) {
		e.ctx, err = device.Open(s)
		return err
	})
	if err != nil {
		return nil, err
	}
	if e.pd, err = e.ctx.AllocPD(); err != nil {
		return nil, err
	}
	e.scq, _ = e.ctx.CreateCQ(verbs.CQInit{})
	e.rcq, _ = e.ctx.CreateCQ(verbs.CQInit{})
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

// recv, send and wait report errors by panic: they run in timed loops.
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

// pin ties the calling goroutine to a core.
func pin(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
}

// Benchmark_pingPong8 is a round trip of 8 bytes between two goroutines of one
// process. xperf send_lat, with two processes, is what counts.
func Benchmark_pingPong8(bm *testing.B) {
	for _, c := range carriers {
		bm.Run(c.name, func(bm *testing.B) {
			a, b := open(bm, c.veth, c.mtu, c.spec)
			for range 32 {
				a.recv()
				b.recv()
			}
			done := make(chan struct{})
			msg := make([]byte, 8)
			n := bm.N
			go func() {
				pin(1)
				for range n {
					b.wait()
					b.send(msg)
				}
				close(done)
			}()
			pin(0)
			for range n {
				a.send(msg)
				a.wait()
			}
			<-done
		})
	}
}
