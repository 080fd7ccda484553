// Package verbs offers RDMA verbs over datagrams: protection domains, memory
// regions, completion queues and queue pairs with the names and meanings of
// libibverbs, so that ibv_post_send(3) and its neighbours are the manual.
//
// Everything made from one [Context] belongs to one engine: one goroutine at a
// time may call into it.
package verbs

import "fmt"

// Access is what a memory region may be used for (ibv_reg_mr(3)).
type Access uint32

// Access rights. Local reading is always granted.
const (
	LocalWrite Access = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic
)

// QPType is the transport of a queue pair.
type QPType uint8

// Transports. RD is reliable datagrams: one queue pair talks to all peers.
const (
	RD QPType = iota + 1
	UD
	RC
)

func (t QPType) String() string {
	switch t {
	case RD:
		return "RD"
	case UD:
		return "UD"
	case RC:
		return "RC"
	}
	return fmt.Sprintf("QPType(%d)", uint8(t))
}

// Opcode says what a work request does.
type Opcode uint8

// Opcodes of send work requests, then of receive completions.
const (
	OpSend Opcode = iota + 1
	OpRDMAWrite
	OpRecv
)

func (o Opcode) String() string {
	switch o {
	case OpSend:
		return "SEND"
	case OpRDMAWrite:
		return "RDMA_WRITE"
	case OpRecv:
		return "RECV"
	}
	return fmt.Sprintf("Opcode(%d)", uint8(o))
}

// SendFlags modify a send work request.
type SendFlags uint8

// Flags of send work requests.
const (
	Signaled SendFlags = 1 << iota // make a completion when done; failures always make one
	Inline                         // copy the data now: the buffers are free when PostSend returns
)

// SGE is one scatter/gather element: Length bytes at Addr inside the memory
// region with key LKey. Addr counts as MR.Addr does.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// MaxSGE is the most elements of one work request.
const MaxSGE = 4

// MaxInline is the most bytes that an Inline work request may carry.
const MaxInline = 256

// SendWR is a send work request. PostSend copies it; the caller may reuse it
// at once. The memory that SGL names stays the queue pair's until the request
// has completed (Inline: until PostSend returns).
type SendWR struct {
	WRID       uint64
	Opcode     Opcode
	Flags      SendFlags
	NumSGE     uint8
	SGL        [MaxSGE]SGE
	AH         *AH    // destination (RD, UD)
	RemoteAddr uint64 // OpRDMAWrite: where to, as the target's MR.Addr counts
	RKey       uint32 // OpRDMAWrite: the target's MR.RKey
	InlineData []byte // with Inline: the data, instead of SGL; at most MaxInline bytes
}

// RecvWR is a receive work request for one Send of a peer. PostRecv copies it.
type RecvWR struct {
	WRID   uint64
	NumSGE uint8
	SGL    [MaxSGE]SGE
}

// Status is how a work request ended (ibv_poll_cq(3)).
type Status uint8

// Statuses.
const (
	Success      Status = iota
	LocLenErr           // a message was longer than the receive buffer
	LocProtErr          // an SGE names memory outside of its region, or without the right
	WRFlushErr          // the queue pair was closed or the peer lost before this request was done
	RemAccessErr        // the peer refused the remote key, range or right
	RetryExcErr         // the peer did not answer in time: it is considered lost
	RemInvReqErr        // the peer could not make sense of the request
	statusCount
)

var statusNames = [statusCount]string{
	"success", "local length error", "local protection error", "work request flushed",
	"remote access error", "retry limit exceeded (peer lost)", "remote invalid request",
}

func (s Status) String() string {
	if s < statusCount {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// WC is a work completion.
type WC struct {
	WRID    uint64
	Status  Status
	Opcode  Opcode
	ByteLen uint32 // bytes received (OpRecv)
	QPNum   uint32
	Src     *AH // OpRecv: who sent it. For a failed send: whom it was meant for.
}

// QPCap are the sizes of a queue pair. Zero values mean the defaults.
type QPCap struct {
	MaxSendWR int // default 512
	MaxRecvWR int // default 512
}

// QPInit describes a queue pair to make.
type QPInit struct {
	Type   QPType
	SendCQ *CQ
	RecvCQ *CQ
	Cap    QPCap
}

// DeviceAttr says what a context can do (ibv_query_device(3)).
type DeviceAttr struct {
	Carrier   string // what carries the frames, for people
	Addr      string // address:port that peers create address handles for
	MaxSeg    int    // largest message in bytes that fits one datagram
	MaxSGE    int
	MaxInline int
	MaxMsg    int // largest message in bytes
}
