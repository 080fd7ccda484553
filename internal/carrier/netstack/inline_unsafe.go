package netstack

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// inline is gVisor's TCP whose open connections are served on the engine's goroutine.
//
// gVisor queues what has arrived for an endpoint and wakes one of its own goroutines, unless a user
// has locked the endpoint: then it leaves the segments to the unlocking. So an open connection is
// locked while frames come in for it, the segments are handled here, as that goroutine does it, and
// when it is unlocked there is nothing left to wake a goroutine for. Endpoints in all other states are gVisor's.
type inline struct {
	tcpProtocol
	locked *tcp.Endpoint // what has arrived for it is not handled yet; or nil
	yields int           // times to let gVisor's goroutines in
}

// yieldsMax is how many Polls behind the last segment for them let gVisor's goroutines in.
const yieldsMax = 4

// tcpProtocol is all that gVisor's stack wants to know of its TCP.
type tcpProtocol interface {
	stack.TransportProtocol
	stack.SendBufSizeProto
	QueuePacket(ep stack.TransportEndpoint, id stack.TransportEndpointID, p *stack.PacketBuffer)
}

// factory makes the protocol for a stack.
func (in *inline) factory(s *stack.Stack) stack.TransportProtocol {
	in.tcpProtocol = tcp.NewProtocol(s).(tcpProtocol)
	return in
}

// QueuePacket takes a segment for an endpoint, in a call of DeliverNetworkPacket.
func (in *inline) QueuePacket(to stack.TransportEndpoint, id stack.TransportEndpointID, p *stack.PacketBuffer) {
	if ep := to.(*tcp.Endpoint); ep != in.locked {
		in.handle()
		if ep.EndpointState() == tcp.StateEstablished {
			ep.LockUser()
			in.locked = ep
		} else {
			in.yields = yieldsMax
		}
	}
	in.tcpProtocol.QueuePacket(to, id, p)
}

// handle handles the segments that have arrived for the endpoint that is locked.
func (in *inline) handle() {
	ep := in.locked
	if ep == nil {
		return
	}
	in.locked = nil
	err := handleSegmentsLocked(ep)
	if err != nil {
		resetConnectionLocked(ep, err)
	}
	ep.UnlockUser()
	if err != nil {
		ep.WakeupWriters() // nothing waits to be sent any more, so that this tells the stream
	}
}

// What gVisor's goroutine calls for an open connection.

//go:linkname handleSegmentsLocked gvisor.dev/gvisor/pkg/tcpip/transport/tcp.(*Endpoint).handleSegmentsLocked
func handleSegmentsLocked(ep *tcp.Endpoint) tcpip.Error

//go:linkname resetConnectionLocked gvisor.dev/gvisor/pkg/tcpip/transport/tcp.(*Endpoint).resetConnectionLocked
func resetConnectionLocked(ep *tcp.Endpoint, err tcpip.Error)
