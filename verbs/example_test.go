package verbs_test

import (
	"fmt"
	"log"

	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// Two endpoints over kernel UDP on loopback; one sends, the other receives. An
// application has one of them, and the address of the other from somewhere.
func Example() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	open := func() (*verbs.Context, *verbs.PD, *verbs.CQ, *verbs.QP) {
		ctx, err := device.Open(device.Spec{Fabric: "udp"})
		check(err)
		pd, err := ctx.AllocPD()
		check(err)
		cq, err := ctx.CreateCQ(verbs.CQInit{})
		check(err)
		qp, err := pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: cq, RecvCQ: cq})
		check(err)
		return ctx, pd, cq, qp
	}
	here, herePD, hereCQ, hereQP := open()
	there, therePD, thereCQ, thereQP := open()

	// There: a registered buffer for the next message, whoever sends it.
	buf, err := therePD.RegMR(make([]byte, 100), verbs.LocalWrite)
	check(err)
	check(thereQP.PostRecv(&verbs.RecvWR{WRID: 1, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{buf.SGE(0, 100)}}))

	// Here: a message to whoever has the address of the other.
	peer, err := herePD.CreateAH(there.Addr())
	check(err)
	check(hereQP.PostSend(&verbs.SendWR{
		WRID: 2, Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: []byte("hello"), AH: peer,
	}))

	var sent, got [1]verbs.WC
	for s, g := 0, 0; s == 0 || g == 0; {
		here.Engine().Step()
		there.Engine().Step()
		s += hereCQ.Poll(sent[:])
		g += thereCQ.Poll(got[:])
	}
	fmt.Printf("%d: %v %v\n", sent[0].WRID, sent[0].Opcode, sent[0].Status)
	fmt.Printf("%d: %v %v, %q\n", got[0].WRID, got[0].Opcode, got[0].Status, buf.Bytes()[:got[0].ByteLen])
	check(here.Close())
	check(there.Close())
	// Output:
	// 2: SEND success
	// 1: RECV success, "hello"
}
