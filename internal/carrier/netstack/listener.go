package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Listener accepts connections. It implements fabric.Listener.
type Listener struct {
	entry
	stack  *Stack
	ep     tcpip.Endpoint
	wq     *waiter.Queue
	local  netip.AddrPort
	closed bool
}

var _ fabric.Listener = (*Listener)(nil)

func (l *Listener) listen(port uint16, backlog int) error {
	l.ep.SocketOptions().SetReuseAddress(true) // connections of an earlier listener do not matter
	if err := l.ep.Bind(tcpip.FullAddress{Addr: l.stack.family.addr(l.stack.config.Local), Port: port}); err != nil {
		return errno(err)
	}
	if err := l.ep.Listen(max(backlog, 1)); err != nil {
		return errno(err)
	}
	a, err := l.ep.GetLocalAddress()
	if err != nil {
		return errno(err)
	}
	l.local = addrPort(a)
	return nil
}

// ID implements fabric.Listener.
func (l *Listener) ID() fabric.StreamID { return l.id }

// Local implements fabric.Listener.
func (l *Listener) Local() netip.AddrPort { return l.local }

// Accept implements fabric.Listener.
func (l *Listener) Accept() fabric.Stream {
	ep, wq, err := l.ep.Accept(nil)
	if err != nil { // no connection waits, or the listener is closed
		return nil
	}
	st := l.stack.adopt(ep, wq)
	st.name()
	// What came before the stream had an entry was not reported.
	st.NotifyEvent(events)
	l.stack.stats.Accepted++
	return st
}

// Close implements fabric.Listener. Connections that were not accepted are
// reset.
func (l *Listener) Close() {
	if l.closed {
		return
	}
	l.closed = true
	l.stack.leave(&l.entry, l.wq)
	l.ep.Close()
}
