package verbs_test

import (
	"errors"
	"fmt"
	"log"
	"net/netip"
	"syscall"

	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// A client and a server over the kernel's TCP on loopback, each with a context
// of its own and waiting for events as a program of librdmacm does. The server
// takes one connection and one message.
func ExampleCMID_Connect() {
	where, done := make(chan netip.AddrPort), make(chan string)
	go serveOne(where, done)

	ctx, err := device.Open(device.Spec{Fabric: "tcp"})
	check(err)
	pd, err := ctx.AllocPD()
	check(err)
	cq, err := ctx.CreateCQ(verbs.CQInit{})
	check(err)
	ch, err := ctx.CreateCMChannel()
	check(err)
	id, err := ch.CreateID()
	check(err)

	check(id.ResolveAddr(<-where, 0))
	await(ch, verbs.CMAddrResolved)
	check(id.ResolveRoute(0))
	await(ch, verbs.CMRouteResolved)
	check(id.CreateQP(pd, verbs.QPInit{SendCQ: cq, RecvCQ: cq}))
	check(id.Connect(verbs.ConnParam{PrivateData: []byte("it is me")}))
	ev := await(ch, verbs.CMEstablished)
	fmt.Printf("the server says %q\n", ev.Param.PrivateData)

	check(id.QP.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: []byte("hello")}))
	completion(cq)
	check(id.Disconnect()) // behind the message
	await(ch, verbs.CMDisconnected)
	fmt.Println(<-done)
	check(ctx.Close())
	// Output:
	// the server says "come in"
	// it was sent "it is me", then "hello"
}

func serveOne(where chan<- netip.AddrPort, done chan<- string) {
	ctx, err := device.Open(device.Spec{Fabric: "tcp"})
	check(err)
	pd, err := ctx.AllocPD()
	check(err)
	cq, err := ctx.CreateCQ(verbs.CQInit{})
	check(err)
	ch, err := ctx.CreateCMChannel()
	check(err)
	listener, err := ch.CreateID()
	check(err)
	check(listener.BindAddr(netip.MustParseAddrPort("127.0.0.1:0")))
	check(listener.Listen(1))
	where <- listener.LocalAddr()

	ev := await(ch, verbs.CMConnectRequest)
	id := ev.ID // a new one, for this connection
	check(id.CreateQP(pd, verbs.QPInit{SendCQ: cq, RecvCQ: cq}))
	buf, err := pd.RegMR(make([]byte, 100), verbs.LocalWrite)
	check(err)
	// Before Accept: the peer may send at once, and what finds no receive ends
	// the connection.
	check(id.QP.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{buf.SGE(0, 100)}}))
	check(id.Accept(verbs.ConnParam{PrivateData: []byte("come in")}))
	await(ch, verbs.CMEstablished)
	wc := completion(cq)
	await(ch, verbs.CMDisconnected)
	done <- fmt.Sprintf("it was sent %q, then %q", ev.Param.PrivateData, buf.Bytes()[:wc.ByteLen])
	check(ctx.Close())
}

// One engine moves everything of a context, be it client, server or both: here
// a server that turns everybody away, and its clients. Nobody listens where the
// second one tries.
func ExampleCMChannel_GetEvent() {
	ctx, err := device.Open(device.Spec{Fabric: "tcp"})
	check(err)
	pd, err := ctx.AllocPD()
	check(err)
	cq, err := ctx.CreateCQ(verbs.CQInit{})
	check(err)
	ch, err := ctx.CreateCMChannel()
	check(err)
	listener, err := ch.CreateID()
	check(err)
	check(listener.BindAddr(netip.MustParseAddrPort("127.0.0.1:0")))
	check(listener.Listen(0))
	where := listener.LocalAddr()

	connect := func() {
		id, err := ch.CreateID()
		check(err)
		check(id.CreateQP(pd, verbs.QPInit{SendCQ: cq, RecvCQ: cq}))
		check(id.ResolveAddr(where, 0))
	}
	connect()
	for refused := 0; refused < 2; {
		ev, got := ch.GetEvent() // which lets the engine step
		if !got {
			ctx.Engine().Park()
			continue
		}
		switch id := ev.ID; ev.Type {
		case verbs.CMAddrResolved:
			check(id.ResolveRoute(0))
		case verbs.CMRouteResolved:
			check(id.Connect(verbs.ConnParam{}))
		case verbs.CMConnectRequest:
			check(id.Reject([]byte("we are closed")))
			check(id.Destroy())
			check(listener.Destroy())
		case verbs.CMRejected:
			refused++
			if errors.Is(ev.Err, syscall.ECONNREFUSED) {
				fmt.Println("nobody listens")
			} else {
				fmt.Printf("the server says %q\n", ev.Param.PrivateData)
				connect()
			}
		default:
			log.Fatalf("%v: %v", ev.Type, ev.Err)
		}
	}
	check(ctx.Close())
	// Output:
	// the server says "we are closed"
	// nobody listens
}

// await waits for an event, which is to be of one type.
func await(ch *verbs.CMChannel, want verbs.CMEventType) verbs.CMEvent {
	ev := ch.Wait()
	if ev.Type != want {
		log.Fatalf("%v: %v", ev.Type, ev.Err)
	}
	return ev
}

// completion waits for a completion, which is to be a success.
func completion(cq *verbs.CQ) verbs.WC {
	var wcs [1]verbs.WC
	cq.Wait(wcs[:], -1)
	if wcs[0].Status != verbs.Success {
		log.Fatal(wcs[0].Status)
	}
	return wcs[0]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
