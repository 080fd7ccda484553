// Package rdmap is the Remote Direct Memory Access Protocol (RFC 5040) with
// its extensions (RFC 7306): what the segments that DDP places mean.
package rdmap

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/record"
)

// Opcode is the operation of a message (RFC 5040, section 4.3).
type Opcode uint8

// Opcodes.
const (
	Write        Opcode = 0
	ReadRequest  Opcode = 1
	ReadResponse Opcode = 2
	Send         Opcode = 3
	SendInv      Opcode = 4
	SendSE       Opcode = 5
	SendSEInv    Opcode = 6
	Terminate    Opcode = 7
	// RFC 7306.
	Immediate      Opcode = 8
	ImmediateSE    Opcode = 9
	AtomicRequest  Opcode = 10
	AtomicResponse Opcode = 11
	// WriteRecord is ours, for datagrams: a Write whose target learns which of
	// its bytes arrived (package record). IANA has not assigned 12 to 15.
	WriteRecord Opcode = 12
)

// Version is the RDMAP version of RFC 5040.
const Version = 1

const maskOpcode = 0x0f

// Control returns the control byte: version, reserved bits, opcode.
func Control(op Opcode) uint8 { return Version<<6 | uint8(op) }

// ParseControl takes the opcode out of a control byte. ok is false when the
// version is not ours. Reserved bits are ignored, as RFC 5040 asks.
func ParseControl(b uint8) (op Opcode, ok bool) { return Opcode(b & maskOpcode), b>>6 == Version }

// Placement says where the payload of a segment goes when it arrives, in
// whatever order segments arrive (RFC 5041, section 5).
type Placement uint8

// Placements.
const (
	PlaceRegion  Placement = iota // where STag and tagged offset say
	PlaceReceive                  // into the posted receive of this MSN
	PlaceQueue                    // into RDMAP's own queue: it is read, not handed up
)

// Delivery says what happens when the whole message is placed and all before
// it are delivered (RFC 5041, section 5.4).
type Delivery uint8

// Deliveries.
const (
	DeliverNothing  Delivery = iota // the target does not learn of it
	DeliverReceive                  // completes a posted receive
	DeliverRequest                  // the target carries it out and responds
	DeliverResponse                 // completes the request that it answers
	DeliverEnd                      // the stream is over
	DeliverRecord                   // the target learns which bytes are valid
)

// traits is all that the protocol knows of an opcode before it looks into the
// payload.
type traits struct {
	name   string
	tagged bool
	qn     iwarp.QN // of untagged ones
	single bool     // the message is one segment: MO = 0, L = 1
	// Bytes behind the DDP header. max counts for single ones only; the payload
	// of others is bounded by the buffer that it goes to.
	min, max  int
	place     Placement
	deliver   Delivery
	solicited bool
	inv       bool // ULP2 of the DDP header is an STag to invalidate
}

// ops is RFC 5040, section 4.3, and RFC 7306, sections 5.2 and 6.
var ops = [maskOpcode + 1]traits{
	Write:          {name: "Write", tagged: true, place: PlaceRegion, deliver: DeliverNothing},
	ReadRequest:    {name: "Read Request", qn: iwarp.QNReadReq, single: true, min: ReadReqLen, max: ReadReqLen, place: PlaceQueue, deliver: DeliverRequest},
	ReadResponse:   {name: "Read Response", tagged: true, place: PlaceRegion, deliver: DeliverResponse},
	Send:           {name: "Send", qn: iwarp.QNSend, place: PlaceReceive, deliver: DeliverReceive},
	SendInv:        {name: "Send with Invalidate", qn: iwarp.QNSend, place: PlaceReceive, deliver: DeliverReceive, inv: true},
	SendSE:         {name: "Send with SE", qn: iwarp.QNSend, place: PlaceReceive, deliver: DeliverReceive, solicited: true},
	SendSEInv:      {name: "Send with SE and Invalidate", qn: iwarp.QNSend, place: PlaceReceive, deliver: DeliverReceive, solicited: true, inv: true},
	Terminate:      {name: "Terminate", qn: iwarp.QNTerminate, single: true, min: TermMinLen, max: TermMaxLen, place: PlaceQueue, deliver: DeliverEnd},
	Immediate:      {name: "Immediate Data", qn: iwarp.QNSend, single: true, min: ImmLen, max: ImmLen, place: PlaceQueue, deliver: DeliverReceive},
	ImmediateSE:    {name: "Immediate Data with SE", qn: iwarp.QNSend, single: true, min: ImmLen, max: ImmLen, place: PlaceQueue, deliver: DeliverReceive, solicited: true},
	AtomicRequest:  {name: "Atomic Request", qn: iwarp.QNReadReq, single: true, min: AtomicReqLen, max: AtomicReqLen, place: PlaceQueue, deliver: DeliverRequest},
	AtomicResponse: {name: "Atomic Response", qn: iwarp.QNAtomicResp, single: true, min: AtomicRespLen, max: AtomicRespLen, place: PlaceQueue, deliver: DeliverResponse},
	WriteRecord:    {name: "Write-Record", tagged: true, min: record.ChunkLen, place: PlaceRegion, deliver: DeliverRecord},
}

// Known tells whether there is such an operation.
func (o Opcode) Known() bool { return int(o) < len(ops) && ops[o].name != "" }

func (o Opcode) String() string {
	if o.Known() {
		return ops[o].name
	}
	return fmt.Sprintf("Opcode(%d)", uint8(o))
}

// Tagged tells whether segments of o have tagged headers. o is known, here and
// below.
func (o Opcode) Tagged() bool { return ops[o].tagged }

// QN returns the queue of an untagged operation.
func (o Opcode) QN() iwarp.QN { return ops[o].qn }

// Single tells whether a message of o is always one segment.
func (o Opcode) Single() bool { return ops[o].single }

// Placement returns where the payload of o goes.
func (o Opcode) Placement() Placement { return ops[o].place }

// Delivery returns what delivering a message of o does.
func (o Opcode) Delivery() Delivery { return ops[o].deliver }

// Solicited tells whether o raises a solicited event at the target.
func (o Opcode) Solicited() bool { return ops[o].solicited }

// Invalidates tells whether o revokes an STag at the target (ULP2 of the DDP
// header).
func (o Opcode) Invalidates() bool { return ops[o].inv }

// Check says whether a segment with header h and n bytes behind it makes sense
// (RFC 5040, section 7.2; RFC 5041, section 7), before anything is looked up:
// versions, opcode, kind of header, queue, offset and length. If not, cause
// (without meaning when ok) is what a Terminate answers with. After it, the payload structs of this package
// parse without failing.
//
// What depends on state is for the caller: STags, bounds, rights, MSNs, posted
// buffers.
func Check(h *ddp.Header, n int) (op Opcode, cause iwarp.Cause, ok bool) {
	op = Opcode(h.ULP & maskOpcode)
	t := &ops[op]
	switch {
	case h.ULP>>6 != Version:
		return op, InvalidVersion, false
	case t.name == "" || h.Tagged != t.tagged:
		return op, UnexpectedOpcode, false
	case n < t.min && !t.single:
		return op, OperationUnspecified, false
	case h.Tagged:
		// The tagged offset counts from the first byte of payload, behind the
		// header that a Write-Record has.
		return op, ddp.TOWrap, !ddp.Wraps(h.TO, n-t.min)
	case h.QN != t.qn:
		return op, ddp.InvalidQN, false
	case !t.single:
		return op, ddp.InvalidMO, uint64(h.MO)+uint64(n) <= 1<<32
	case h.MO != 0:
		return op, ddp.InvalidMO, false
	case n > t.max || !h.Last: // L = 0: more is to follow
		return op, ddp.MessageTooLong, false
	}
	return op, OperationUnspecified, n >= t.min
}

// IsWholeSend reports whether a segment is a Send that is one segment, without
// a solicited event or an STag to invalidate: what most messages are. b is the
// segment from its DDP header on, ddp.UntaggedLen bytes at least. Check would
// accept the segment.
func IsWholeSend(b []byte) bool {
	_ = b[ddp.UntaggedLen-1]
	const control = (0x40|ddp.Version)<<8 | Version<<6 | uint16(Send) // L = 1, T = 0
	return binary.BigEndian.Uint16(b) == control && binary.BigEndian.Uint32(b[6:]) == uint32(iwarp.QNSend) && binary.BigEndian.Uint32(b[14:]) == 0
}
