package fabric

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// StreamID is the number of a stream or listener of one Streams: small, and
// used again after Close.
type StreamID int32

// StreamCaps says what a carrier of streams can do.
type StreamCaps struct {
	Carrier string // for people: "tcp", "netstack on xdp/generic/copy"
	IPv6    bool
}

// StreamStats counts what a carrier of streams did.
type StreamStats struct {
	RxBytes, TxBytes uint64
	RxCalls, TxCalls uint64 // times that bytes were moved: system calls, for the kernel
	Opened, Accepted uint64
	Failed           uint64 // connections that ended with an error
	RxForged         uint64 // connections that ended because what came was not encrypted with the secret of the job
}

// Streams opens and accepts byte streams: TCP of the kernel, or in user space.
// Nothing of it blocks, and everything belongs to one engine.
type Streams interface {
	Caps() StreamCaps
	// Arena returns memory for applications; bytes may be sent from, and
	// received to, any other memory too.
	Arena() *mem.Arena
	// Addr returns the address that peers reach this end at, if there is a
	// preferred one.
	Addr() netip.Addr
	// Dial begins to connect, from the address and port from if they are not
	// zero. It is a control call: it may allocate and ask the kernel. What
	// becomes of it is in Stream.State after a Poll that names the stream.
	Dial(to, from netip.AddrPort) (Stream, error)
	// Listen waits for connections at an address (unspecified: at all of
	// them) and port (0: one that is free).
	Listen(at netip.AddrPort, backlog int) (Listener, error)
	// Poll lets time and bytes pass, and appends to ready the numbers of the
	// streams and listeners that have something new: connected, failed,
	// accepted, readable, writable, closed by the peer. It may name some for
	// nothing, and names each again only when something new has happened: the
	// caller goes on with a stream until Recv and Send do nothing more.
	Poll(now mono.Time, ready []StreamID) []StreamID
	// Flush moves what Send has taken and what still waits. Called once per
	// engine step, at its end.
	Flush()
	// Deadline is when Poll must be called though nothing has arrived.
	Deadline() mono.Time
	// FD is for poll(2); see Port.FD.
	FD() int
	Stats() StreamStats
	// Close aborts all streams that are left, and closes the carrier.
	Close() error
}

// StreamState is how far a stream is.
type StreamState uint8

// States of a stream. The end of what the peer sends shows in Recv only.
const (
	StreamConnecting StreamState = iota
	StreamOpen
	StreamFailed // refused, timed out, reset: see Stream.Err
)

// Stream is one connection.
type Stream interface {
	ID() StreamID
	State() StreamState
	// Err tells why the stream has failed: a typed error, such as
	// ECONNREFUSED or ECONNRESET of package unix.
	Err() error
	Local() netip.AddrPort
	Remote() netip.AddrPort
	// MSS returns how many bytes one segment of the stream carries now: it
	// follows the path MTU. 0 when that is not known yet.
	MSS() int
	// Recv copies what has arrived into dst and returns how many bytes. eof
	// is set when the peer will send nothing more and all of it has been
	// taken. A failed stream returns 0, false.
	Recv(dst []byte) (n int, eof bool)
	// Send takes bytes from the front of the buffers and returns how many.
	// They are copied: the memory is the caller's again.
	Send(bufs [][]byte) int
	// CloseWrite ends our direction behind what Send has taken.
	CloseWrite()
	// Close gives the stream back. When both directions have ended it is an
	// orderly end; with abort, or unread bytes, the peer sees a reset. What
	// Send has taken is still delivered if abort is not set.
	Close(abort bool)
}

// VectorReceiver is a Stream that receives into several buffers at once.
type VectorReceiver interface {
	Stream
	// RecvVector is Recv into buffers that are filled one behind the other.
	RecvVector(dst [][]byte) (n int, eof bool)
}

// Listener accepts streams.
type Listener interface {
	ID() StreamID
	Local() netip.AddrPort
	// Accept returns the next stream that was connected, or nil.
	Accept() Stream
	Close()
}
