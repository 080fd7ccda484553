package netstack

import (
	"errors"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Stream is a connection. It implements fabric.Stream.
type Stream struct {
	entry
	stack  *Stack
	ep     tcpip.Endpoint
	wq     *waiter.Queue
	local  netip.AddrPort
	remote netip.AddrPort
	mtu    int // of the way there
	mss    int // 0: not known yet
	err    error
	closed bool
	short  bool // is in stack.out.short
	taken  int  // bytes read that gVisor was not told of

	dst tcpip.SliceWriter // of the Recv that runs
	src gather            // of the Send that runs
}

var _ fabric.Stream = (*Stream)(nil)

// adopt makes a stream of an endpoint.
func (s *Stack) adopt(ep tcpip.Endpoint, wq *waiter.Queue) *Stream {
	st := &Stream{stack: s, ep: ep, wq: wq, mtu: s.config.MTU}
	ep.SocketOptions().SetDelayOption(false)
	ep.SocketOptions().SetQuickAck(true)
	s.enter(&st.entry, wq)
	return st
}

// connect begins to connect.
func (st *Stream) connect(to netip.AddrPort, from uint16) error {
	s := st.stack
	if st.mtu < s.config.MTU {
		if err := st.ep.SetSockOptInt(tcpip.MaxSegOption, s.payload(st.mtu)); err != nil {
			return errno(err)
		}
	}
	if err := st.ep.Bind(tcpip.FullAddress{Addr: s.family.addr(s.config.Local), Port: from}); err != nil {
		return errno(err)
	}
	if err := st.ep.Connect(s.full(to)); err != nil {
		if _, started := err.(*tcpip.ErrConnectStarted); !started {
			return errno(err)
		}
	}
	st.name()
	st.remote = to // gVisor tells it once there is a connection
	return nil
}

func (s *Stack) full(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nicID, Addr: s.family.addr(a.Addr()), Port: a.Port()}
}

// payload returns how many bytes of a stream fit a packet of mtu bytes behind headers
// without options.
func (s *Stack) payload(mtu int) int { return mtu - s.family.headerLen - tcpHeaderLen }

// name reads the addresses of both ends.
func (st *Stream) name() {
	if a, err := st.ep.GetLocalAddress(); err == nil {
		st.local = addrPort(a)
	}
	if a, err := st.ep.GetRemoteAddress(); err == nil {
		st.remote = addrPort(a)
	}
}

func addrPort(a tcpip.FullAddress) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(a.Addr.AsSlice())
	return netip.AddrPortFrom(addr, a.Port)
}

// ID implements fabric.Stream.
func (st *Stream) ID() fabric.StreamID { return st.id }

// Local implements fabric.Stream.
func (st *Stream) Local() netip.AddrPort { return st.local }

// Remote implements fabric.Stream.
func (st *Stream) Remote() netip.AddrPort { return st.remote }

// Err implements fabric.Stream: an [*Error], or nil.
func (st *Stream) Err() error { return st.err }

// State implements fabric.Stream. A stream that was reset stays open until all
// that had arrived before is read.
func (st *Stream) State() fabric.StreamState {
	if st.err != nil {
		return fabric.StreamFailed
	}
	switch state := st.state(); state {
	case tcp.StateInitial, tcp.StateBound, tcp.StateConnecting, tcp.StateSynSent, tcp.StateSynRecv:
		return fabric.StreamConnecting
	case tcp.StateError:
		if n, err := st.ep.GetSockOptInt(tcpip.ReceiveQueueSizeOption); err == nil && n > 0 {
			return fabric.StreamOpen
		}
		st.fail(st.ep.SocketOptions().GetLastError())
		return fabric.StreamFailed
	}
	return fabric.StreamOpen
}

func (st *Stream) state() tcp.EndpointState { return tcp.EndpointState(st.ep.State()) }

// fail notes why the stream has ended.
func (st *Stream) fail(err tcpip.Error) {
	if st.err != nil {
		return
	}
	if err == nil {
		err = &tcpip.ErrConnectionReset{}
	}
	st.err = &Error{"connection", st.local, st.remote, errno(err)}
	st.stack.stats.Failed++
}

// MSS implements fabric.Stream.
func (st *Stream) MSS() int {
	if st.mss == 0 && st.State() == fabric.StreamOpen {
		said, ok := st.stack.syns.take(st.peer())
		if !ok {
			said = synOptions{mss: uint16(st.stack.payload(st.mtu)), timestamp: true, sack: true}
		}
		st.mss = said.segment(st.stack.payload(st.mtu))
	}
	return st.mss
}

// peer is the key of the stream in syns.
func (st *Stream) peer() peer {
	return peer{st.remote.Addr(), st.remote.Port(), st.local.Port()}
}

// Recv implements fabric.Stream.
func (st *Stream) Recv(dst []byte) (n int, eof bool) {
	if st.err != nil || len(dst) == 0 {
		return 0, false
	}
	s := st.stack
	for n < len(dst) {
		st.dst = dst[n:]
		res, err := st.ep.Read(&st.dst, tcpip.ReadOptions{})
		st.dst = nil
		if err != nil {
			eof = st.unreadable(err)
			break
		}
		s.stats.RxCalls++
		s.stats.RxBytes += uint64(res.Count)
		n += res.Count
	}
	if n > 0 { // the end shows when all has been taken
		if st.taken += n; st.taken >= ackEvery {
			st.ep.ModerateRecvBuf(st.taken) // the window grows with what is taken in a round trip
			st.taken = 0
		}
		return n, false
	}
	return 0, eof
}

// unreadable says what an error of Read means.
func (st *Stream) unreadable(err tcpip.Error) (eof bool) {
	switch err.(type) {
	case *tcpip.ErrWouldBlock, *tcpip.ErrNotConnected, *tcpip.ErrBadBuffer:
		return false
	case *tcpip.ErrClosedForReceive:
		if st.state() == tcp.StateError {
			st.fail(st.ep.SocketOptions().GetLastError())
			return false
		}
		return true
	}
	st.fail(err)
	return false
}

// pieceMax is what gVisor handles as one segment at most.
const pieceMax = stack.GVisorGSOMaxSize - header.TCPTotalHeaderMaximumSize - 1

// piece returns how much of what is sent gVisor gets at a time: whole segments, which are
// in frames while they are still in the cache.
func (st *Stream) piece() int {
	mss := max(st.MSS(), 1)
	return max(pieceMax/mss, 1) * mss
}

// Send implements fabric.Stream. Of more than a piece it takes little beyond what may be on its way
// now: what waits in gVisor leaves the cache meanwhile.
func (st *Stream) Send(bufs [][]byte) int {
	if st.err != nil {
		return 0
	}
	s := st.stack
	total, piece := 0, st.piece()
	for st.src.set(bufs); st.src.next(piece); {
		// Atomic spares giving the lock away while the bytes are copied.
		n, err := st.ep.Write(&st.src, tcpip.WriteOptions{Atomic: true})
		if err != nil {
			st.unwritable(err)
			break
		}
		s.stats.TxCalls++
		total += int(n)
		if st.src.after == 0 {
			continue
		}
		if !s.mail.packets.Load() { // what is on its way has to be acknowledged first
			s.out.await(st)
			break
		}
		s.Flush()
	}
	st.src = gather{}
	s.stats.TxBytes += uint64(total)
	return total
}

// unwritable notes what an error of Write means.
func (st *Stream) unwritable(err tcpip.Error) {
	switch err.(type) {
	case *tcpip.ErrWouldBlock, *tcpip.ErrClosedForSend, *tcpip.ErrNotConnected:
		return // State says what has become of the stream
	}
	st.fail(err)
}

// CloseWrite implements fabric.Stream.
func (st *Stream) CloseWrite() { _ = st.ep.Shutdown(tcpip.ShutdownWrite) } // fails on a stream that has ended anyway

// Close implements fabric.Stream.
func (st *Stream) Close(abort bool) {
	if st.closed {
		return
	}
	st.closed = true
	s := st.stack
	s.leave(&st.entry, st.wq)
	if st.mss == 0 && st.remote.IsValid() {
		s.syns.take(st.peer())
	}
	if abort {
		st.ep.Abort()
	}
	st.ep.Close()
	if delivering(st.ep) {
		s.leaving = append(s.leaving, st.ep)
	}
}

// delivering reports whether a closed endpoint has something that its peer has
// not acknowledged.
func delivering(ep tcpip.Endpoint) bool {
	switch tcp.EndpointState(ep.State()) {
	case tcp.StateEstablished, tcp.StateCloseWait, tcp.StateFinWait1, tcp.StateClosing, tcp.StateLastAck:
		return true
	}
	return false
}

// gather reads from several buffers, one behind the other. It implements
// tcpip.Payloader.
type gather struct {
	bufs  [][]byte
	at    int // of bufs[0]
	rest  int // bytes to read
	after int // bytes behind those
}

func (g *gather) set(bufs [][]byte) {
	*g = gather{bufs: bufs}
	for _, b := range bufs {
		g.after += len(b)
	}
}

// next lets n bytes be read, if there are as many, and reports whether there are any.
func (g *gather) next(n int) bool {
	more := min(n-g.rest, g.after)
	g.rest, g.after = g.rest+more, g.after-more
	return g.rest > 0
}

// Len implements tcpip.Payloader.
func (g *gather) Len() int { return g.rest }

var errNoMore = errors.New("netstack: read behind the end of what is sent")

// Read implements io.Reader.
func (g *gather) Read(dst []byte) (n int, err error) {
	for n < len(dst) && g.rest > 0 {
		src := g.bufs[0][g.at:]
		c := copy(dst[n:], src[:min(len(src), g.rest)])
		n, g.at, g.rest = n+c, g.at+c, g.rest-c
		if g.at == len(g.bufs[0]) {
			g.bufs, g.at = g.bufs[1:], 0
		}
	}
	if n == 0 && len(dst) > 0 {
		return 0, errNoMore
	}
	return n, nil
}
