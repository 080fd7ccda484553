package verbs

import (
	"net/netip"
	"time"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Access is what a memory region or window may be used for (ibv_reg_mr(3)).
type Access uint32

// Access rights. Local reading is always granted.
const (
	LocalWrite Access = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic
	MWBind           // memory windows may be bound to the region
	RemoteInvalidate // a peer's Send with Invalidate may end the registration
	// SequentialWrite says that a peer's RDMA Writes fill the region once, from front to back, and that what is behind
	// them is not determined until they have: so they may be received where they belong, unseen. An extension.
	SequentialWrite
)

// QPType is the transport of a queue pair.
type QPType uint8

// Transports. RD is reliable datagrams: one queue pair talks to all peers, in
// order and exactly once to each. UD is unreliable datagrams: a message of one
// datagram arrives, or it does not. RC is one TCP connection, as the standard
// has it.
const (
	RD QPType = iota + 1
	UD
	RC
)

func (t QPType) String() string {
	return enumName([]string{"QPType(0)", "RD", "UD", "RC"}, "QPType", uint8(t))
}

// Opcode says what a work request does.
type Opcode uint8

// Opcodes of send work requests, then of receive completions. Which one may be
// posted to which type of queue pair is in legality.go.
const (
	OpSend              Opcode = iota + 1
	OpSendWithInv              // Send that ends the registration InvKey of the target (RFC 5040, section 5.3)
	OpSendWithImm              // known to libibverbs; iWARP has no such operation
	OpRDMAWrite                // tagged placement, unnoticed by the target
	OpRDMAWriteWithImm         // Write, then Immediate Data (RFC 7306, section 6)
	OpRDMARead                 // RDMA Read into the SGL, which needs LocalWrite
	OpAtomicCmpAndSwp          // 64 bits; the old value goes to the SGL (RFC 7306, section 5)
	OpAtomicFetchAndAdd        // likewise
	OpAtomicSwap               // likewise
	OpRDMAWriteRecord          // Write whose target logs what arrived, and completes
	OpLocalInv                 // end the registration InvKey of one's own
	OpBindMW                   // bind the window Bind.MW

	OpRecv                // a Send was received
	OpRecvRDMAWithImm     // Immediate Data was received
	OpRecvRDMAWriteRecord // a Write-Record ended, whole or not: see WC.Record
	opcodeCount
)

var opcodeNames = [opcodeCount]string{
	"Opcode(0)", "SEND", "SEND_WITH_INV", "SEND_WITH_IMM", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "RDMA_READ",
	"ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "ATOMIC_SWAP", "RDMA_WRITE_RECORD", "LOCAL_INV", "BIND_MW",
	"RECV", "RECV_RDMA_WITH_IMM", "RECV_RDMA_WRITE_RECORD",
}

func (o Opcode) String() string { return enumName(opcodeNames[:], "Opcode", uint8(o)) }

// SendFlags modify a send work request.
type SendFlags uint8

// Flags of send work requests.
const (
	Signaled  SendFlags = 1 << iota // make a completion when done; failures always make one
	Inline                          // copy the data now: the buffers are free when PostSend returns
	Solicited                       // wake a target that waits for solicited events only
	Fence                           // not before all earlier Reads and atomics to this peer are done
	Numbered                        // OpRDMAWriteRecord on UD: SendWR.RecordID is the number of the record
	Bulk                            // UD: by the second path, for large data, if DeviceAttr.Bulk. It may lead nowhere
	BulkNext                        // UD: what follows may go by the second path: the target is to look there
	More                            // another request to this peer follows at once: on RD and RC they go out together
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
	NumSGE     uint8 // elements of SGL; 0: it moves no data
	SGL        [MaxSGE]SGE
	InlineData []byte // with Inline: the data, instead of SGL; at most MaxInline bytes
	AH         *AH    // destination
	RemoteQPN  uint32 // UD: number of the destination queue pair
	RKey       uint32 // one-sided operations: the target's MR.RKey or MW.RKey
	RemoteAddr uint64 // and where in it, as the target's MR.Addr counts
	InvKey     uint32 // OpSendWithInv: the target's key; OpLocalInv: one's own
	ImmData    uint64 // OpRDMAWriteWithImm: 8 bytes, as RFC 7306 has them
	RecordID   uint32 // with Numbered, see RecordConfig
	Atomic     Atomic // atomic operations
	Bind       *Bind  // OpBindMW
}

// Atomic holds the operands of an atomic operation on 64 bits in the byte
// order of the target (RFC 7306, section 5.1).
type Atomic struct {
	Add     uint64 // OpAtomicFetchAndAdd
	Swap    uint64 // OpAtomicSwap, OpAtomicCmpAndSwp
	Compare uint64 // OpAtomicCmpAndSwp
	// Mask restricts the operation; 0 means all bits. CmpAndSwp and Swap
	// replace only these bits; FetchAndAdd carries nothing out of a bit
	// position that is set.
	Mask uint64
	// CompareMask restricts what CmpAndSwp compares; 0 means all bits.
	CompareMask uint64
}

// Bind says what OpBindMW binds.
type Bind struct {
	MW     *MW
	MR     *MR // registered with MWBind
	Offset int // bytes from the start of MR
	Length int
	Access Access
}

// RecvWR is a receive work request for one Send of a peer. PostRecv copies it.
type RecvWR struct {
	WRID   uint64
	NumSGE uint8 // elements of SGL; 0: the message has no data
	SGL    [MaxSGE]SGE
}

// Status is how a work request ended (ibv_poll_cq(3)).
type Status uint8

// Statuses.
const (
	Success      Status = iota
	LocLenErr           // a message was longer than the receive buffer
	LocProtErr          // an SGE names memory outside of its region, or without the right
	LocQPOpErr          // the queue pair cannot do this
	WRFlushErr          // the queue pair was closed or the peer lost before this request was done
	RemAccessErr        // the peer refused the remote key, range or right
	RetryExcErr         // the peer did not answer in time, or restarted: it is considered lost
	RemInvReqErr        // the peer could not make sense of the request
	RemOpErr            // the peer failed to do it
	MWBindErr           // the window could not be bound
	statusCount
)

var statusNames = [statusCount]string{
	"success", "local length error", "local protection error", "local QP operation error", "work request flushed",
	"remote access error", "retry limit exceeded (peer lost)", "remote invalid request", "remote operation error",
	"memory window bind error",
}

func (s Status) String() string { return enumName(statusNames[:], "Status", uint8(s)) }

// WCFlags say which fields of a completion mean something.
type WCFlags uint8

// Flags of completions.
const (
	WCWithImm       WCFlags = 1 << iota // ImmData
	WCWithInv                           // InvKey was invalidated by the peer
	WCWithSolicited                     // the sender asked for a solicited event
)

// Remote is the IPv4 or IPv6 address and UDP port of a peer, as a value that can be
// compared. The zero Remote is none.
type Remote = fabric.Remote

// RemoteOf returns an address and port as completions tell them.
func RemoteOf(a netip.AddrPort) Remote { return fabric.RemoteOf(a) }

// WC is a work completion.
type WC struct {
	WRID    uint64
	Status  Status
	Opcode  Opcode
	Flags   WCFlags
	ByteLen uint32 // bytes received (OpRecv), read, or valid (OpRecvRDMAWriteRecord)
	QPNum   uint32 // of the queue pair here
	SrcQP   uint32 // UD receives: of the sender
	InvKey  uint32 // with WCWithInv
	// SrcEpoch is the life of the endpoint that sent it, for UD receives: see
	// AH.SetEpoch.
	SrcEpoch uint32
	ImmData  uint64  // with WCWithImm
	Src      *AH     // RD receives: the sender. For a failed send: the destination
	SrcAddr  Remote  // receives: address of the sender; see PD.CreateAHFromWC
	Record   *Record // OpRecvRDMAWriteRecord: valid until Record.Release
}

// QPCap are the sizes of a queue pair. Zero values mean the defaults.
type QPCap struct {
	MaxSendWR int // default 512
	MaxRecvWR int // default 512; unused with an SRQ
}

// QPInit describes a queue pair to make.
type QPInit struct {
	Type   QPType
	SendCQ *CQ
	RecvCQ *CQ
	SRQ    *SRQ // receives come from here; default: the queue pair's own
	Cap    QPCap
	// Reset leaves the queue pair in state Reset, for programs that walk
	// it up with Modify. Default: it is ready to send; datagrams need no
	// exchange before.
	Reset  bool
	Record RecordConfig // Write-Record at this end
	// RecvWait is for type RC: a message that finds no posted receive waits for
	// one, and so does everything behind it on its connection, Writes and answers
	// to Reads too. The stream is not read meanwhile, so that TCP holds the peer
	// back. That is what libibverbs calls an endless rnr_retry, and an extension
	// here: iWARP itself knows no answer but to terminate the connection (RFC
	// 5040, section 7.1), which is the default. Queue pairs that wait at one SRQ
	// are served in turn.
	RecvWait bool
	// SegmentMin is for type RC: DDP segments may have so many bytes though a segment of TCP
	// carries less. Default: each fits into one, with its FPDU, as RFC 5044, section 5.1, asks
	// for, since hardware that receives wants that. Software takes less time for long ones,
	// and the kernel's TCP is given 64 KiB in one piece anyway.
	SegmentMin int
	// Lasting is for type UD, whose requests are complete when the carrier has
	// them: their memory stays as it is for longer, until the user knows that what
	// was sent has arrived. Then it may be sent from where it lies, if it is in the
	// arena (QP.Direct). RD holds requests for that long anyway.
	Lasting bool
	// RecvHandler is for type RD: it is offered short Sends before they take a receive.
	// Default: none is. An extension.
	RecvHandler RecvHandler
}

// RecvHandler is an inline receive handler: it takes messages in without a receive, which spares short ones the way
// through a buffer and two queues.
type RecvHandler interface {
	// HandleRecv is offered a Send of src that is whole, in order, and not behind anything
	// that was not polled yet. It reports whether it has taken it in; if not, the
	// message goes to the next receive. It is called inside a step of the engine, must
	// not call the context's objects, and b is the caller's again when it returns.
	HandleRecv(src *AH, b []byte) bool
}

// RecordConfig says how a target logs Write-Records. Zero values mean the
// defaults.
//
// Records are told apart by their numbers, which the sending queue pair counts
// up. A sender that writes again what may have been lost numbers its records
// itself ([Numbered]): one that has ended at the target is not placed a second
// time, nor one that is 512 or more behind the highest that has.
type RecordConfig struct {
	// PerChunk makes a completion of its own for each chunk that is placed
	// and keeps no record.
	PerChunk bool
	// MaxPerSource bounds the records of one source that are not complete
	// yet; a further one ends the oldest, as it is. Default 8.
	MaxPerSource int
	// Deadline is how long after its last chunk an incomplete record of a UD
	// queue pair ends, as it is. Default 10 ms.
	Deadline time.Duration
}

// CQInit describes a completion queue to make.
type CQInit struct {
	Depth    int          // completions; default 1024
	Channel  *CompChannel // tells of completions after CQ.ReqNotify; default none
	UserData any
}

// DeviceAttr says what a context can do (ibv_query_device(3)).
type DeviceAttr struct {
	Carrier       string // what carries the frames, for people
	CarrierDetail string // how it is used: device, queues, buffers; may be empty
	StreamCarrier string // what carries the streams of RC; empty: nothing does
	Addr          string // address:port that peers create address handles for
	MTU           int    // largest UDP payload in bytes; 0 without datagrams
	MaxSeg        int    // largest message in bytes that fits one datagram, on RD and UD
	MaxSGE        int
	MaxInline     int
	MaxMsg        int // largest message in bytes on RD and RC
	MaxQP         int
	MaxQPWR       int
	MaxCQE        int
	MaxMR         int
	MaxMW         int
	MaxSRQWR      int
	MaxQPRdAtom   int // Reads and atomics outstanding per peer, in each direction
	MaxMcastGrp   int
	Bulk          bool // there is a second path out, for large data
	Aggregates    bool // several datagrams in a row to one peer take little longer than one
	AtomicAtomic  bool // atomics are atomic with sync/atomic on this host too
}
