// Program outside is what a user of the module may write: it is compiled and run in
// a module of its own, so it can name nothing that is internal.
package main

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// end is one endpoint.
type end struct {
	ctx    *verbs.Context
	engine *verbs.Engine
	arena  *verbs.Arena
	pd     *verbs.PD
	cq     *verbs.CQ
	qp     *verbs.QP
	mr     *verbs.MR
}

// ticker is a source of the engine.
type ticker struct{ next verbs.Time }

func (t *ticker) Poll(now verbs.Time, budget int) int {
	if now < t.next {
		return 0
	}
	t.next = verbs.Never
	return 1
}

func (t *ticker) Deadline() verbs.Time { return t.next }

func open(spec device.Spec) *end {
	var e end
	var err error
	e.ctx, err = device.Open(spec)
	check(err)
	e.engine, e.arena = e.ctx.Engine(), e.ctx.Arena()
	e.engine.Add(&ticker{next: e.engine.Clock().Now()})
	e.pd, err = e.ctx.AllocPD()
	check(err)
	e.cq, err = e.ctx.CreateCQ(verbs.CQInit{})
	check(err)
	e.qp, err = e.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: e.cq, RecvCQ: e.cq})
	check(err)
	var at verbs.Addr
	at, err = e.arena.Alloc(4096, 64)
	check(err)
	e.mr, err = e.pd.RegMR(e.arena.At(at, 4096), verbs.LocalWrite)
	check(err)
	return &e
}

func overVerbs() {
	var faults device.Faults
	faults, err := device.ParseFaults("")
	check(err)
	spec := device.Spec{Fabric: "udp", Faults: faults, Poller: device.PollerConfig{NoSpin: true}, Dgram: dgram.Config{}}
	here, there := open(spec), open(spec)
	recvs := make([]verbs.RecvWR, 2)
	for i := range recvs {
		recvs[i] = verbs.RecvWR{WRID: uint64(i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{there.mr.SGE(100*i, 100)}}
	}
	_, err = there.qp.PostRecvList(recvs)
	check(err)
	peer, err := here.pd.CreateAH(there.ctx.Addr())
	check(err)
	done := make(chan error)
	go func() {
		_, err := here.qp.PostSendList([]verbs.SendWR{
			{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: []byte("hello"), AH: peer},
			{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: []byte("again"), AH: peer},
		})
		var wcs [1]verbs.WC
		if err == nil && (here.cq.Wait(wcs[:], time.Minute) != 1 || wcs[0].Status != verbs.Success) {
			err = errors.New("the messages are not out")
		}
		done <- err
	}()
	for n := 0; n < 2; {
		var wcs [2]verbs.WC
		got := there.cq.Wait(wcs[:], time.Minute)
		if got == 0 {
			log.Fatal("nothing came")
		}
		for _, wc := range wcs[:got] {
			fmt.Printf("%s\n", there.mr.Bytes()[100*wc.WRID:][:wc.ByteLen])
		}
		n += got
	}
	for over := false; !over; { // nothing is acknowledged unless the engine steps
		select {
		case err := <-done:
			check(err)
			over = true
		default:
			var wcs [1]verbs.WC
			there.cq.Wait(wcs[:], time.Millisecond)
		}
	}
	var stats verbs.EndpointStats
	var carried verbs.DatagramStats
	stats, carried = here.ctx.Stats()
	_, _ = stats, carried
	check(here.ctx.Close())
	check(there.ctx.Close())
}

// sum is over any type that MPI can send.
func sum[T mpi.Scalar](p *mpi.Proc, x T) T {
	out := []T{0}
	check(mpi.Allreduce(p.World(), []T{x}, out, mpi.Sum))
	return out[0]
}

// job is a launcher of one's own.
type job struct{ mpi.Job }

func overMPI() {
	p, err := mpi.Init()
	check(err)
	var e *verbs.Engine = p.Engine()
	var t mpi.Transport = mpi.RD
	_, _, _ = e, t, mpi.New
	fmt.Println(sum(p, 7))
	check(p.Finalize())
}

func main() {
	var arena *xdp.Arena
	var frames []xdp.Desc
	var cause iwarp.Cause = iwarp.LLPCRC
	_, _, _, _ = arena, frames, cause, job{}
	overVerbs()
	overMPI()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
