package rdmap

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/iwarp"
)

// Lengths in bytes of the payloads that RDMAP reads itself.
const (
	ReadReqLen    = 28 // RFC 5040, section 4.4
	AtomicReqLen  = 52 // RFC 7306, section 5.2.1
	AtomicRespLen = 12 // RFC 7306, section 5.2.2
	ImmLen        = 8  // RFC 7306, section 6
)

// ReadReq is the payload of a Read Request: where to read, and where to put
// what was read (RFC 5040, section 4.4).
type ReadReq struct {
	SinkSTag iwarp.STag // of the requester
	SinkTO   uint64
	Size     uint32 // bytes; 0 is legal
	SrcSTag  iwarp.STag
	SrcTO    uint64
}

// Put writes r to the first ReadReqLen bytes of b.
func (r *ReadReq) Put(b []byte) {
	_ = b[ReadReqLen-1]
	binary.BigEndian.PutUint32(b, uint32(r.SinkSTag))
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Size)
	binary.BigEndian.PutUint32(b[16:], uint32(r.SrcSTag))
	binary.BigEndian.PutUint64(b[20:], r.SrcTO)
}

// Parse reads r from the start of b. ok is false when b is too short.
func (r *ReadReq) Parse(b []byte) (ok bool) {
	if len(b) < ReadReqLen {
		return false
	}
	r.SinkSTag = iwarp.STag(binary.BigEndian.Uint32(b))
	r.SinkTO = binary.BigEndian.Uint64(b[4:])
	r.Size = binary.BigEndian.Uint32(b[12:])
	r.SrcSTag = iwarp.STag(binary.BigEndian.Uint32(b[16:]))
	r.SrcTO = binary.BigEndian.Uint64(b[20:])
	return true
}

// AtomicOp is the kind of an atomic operation (AOpCode in RFC 7306).
type AtomicOp uint8

// Atomic operations on 64 bits.
const (
	FetchAdd AtomicOp = 0
	Swap     AtomicOp = 1
	CmpSwap  AtomicOp = 2
)

func (o AtomicOp) String() string {
	switch o {
	case FetchAdd:
		return "FetchAdd"
	case Swap:
		return "Swap"
	case CmpSwap:
		return "CmpSwap"
	}
	return "unknown atomic operation"
}

// AtomicReq is the payload of an Atomic Request (RFC 7306, section 5.2.1).
type AtomicReq struct {
	Op   AtomicOp
	ID   uint32 // comes back in the response
	STag iwarp.STag
	TO   uint64 // a multiple of 8
	// Data is what is added or swapped in. Mask of a FetchAdd has a 1 at the
	// highest bit of each field that is added for itself, 0 for one of 64 bits;
	// Mask of Swap and CmpSwap has a 1 at each bit that is written.
	Data, Mask uint64
	// A CmpSwap writes if all bits of Compare with a 1 in CompareMask are equal.
	Compare, CompareMask uint64
}

// Put writes r to the first AtomicReqLen bytes of b.
func (r *AtomicReq) Put(b []byte) {
	_ = b[AtomicReqLen-1]
	binary.BigEndian.PutUint32(b, uint32(r.Op)) // 28 reserved bits above it
	binary.BigEndian.PutUint32(b[4:], r.ID)
	binary.BigEndian.PutUint32(b[8:], uint32(r.STag))
	binary.BigEndian.PutUint64(b[12:], r.TO)
	binary.BigEndian.PutUint64(b[20:], r.Data)
	binary.BigEndian.PutUint64(b[28:], r.Mask)
	binary.BigEndian.PutUint64(b[36:], r.Compare)
	binary.BigEndian.PutUint64(b[44:], r.CompareMask)
}

// Parse reads r from the start of b. ok is false when b is too short; whether
// the request can be carried out is for Check to say.
func (r *AtomicReq) Parse(b []byte) (ok bool) {
	if len(b) < AtomicReqLen {
		return false
	}
	r.Op = AtomicOp(b[3] & 0xf)
	r.ID = binary.BigEndian.Uint32(b[4:])
	r.STag = iwarp.STag(binary.BigEndian.Uint32(b[8:]))
	r.TO = binary.BigEndian.Uint64(b[12:])
	r.Data = binary.BigEndian.Uint64(b[20:])
	r.Mask = binary.BigEndian.Uint64(b[28:])
	r.Compare = binary.BigEndian.Uint64(b[36:])
	r.CompareMask = binary.BigEndian.Uint64(b[44:])
	return true
}

// Check says whether r names an operation, and an address that one can be done
// at; if not, cause is what a Terminate answers with.
func (r *AtomicReq) Check() (cause iwarp.Cause, ok bool) {
	if r.Op > CmpSwap {
		return UnexpectedOpcode, false
	}
	return StreamCatastrophic, r.TO%8 == 0
}

// Apply returns what the target holds after r when it held old before
// (RFC 7306, section 5.1). The responder returns old.
func (r *AtomicReq) Apply(old uint64) uint64 {
	switch r.Op {
	case FetchAdd:
		// The highest bit of each field is added without its carry, so that
		// none gets out; this is the bit-by-bit sum of the RFC at once.
		return (old&^r.Mask + r.Data&^r.Mask) ^ (old^r.Data)&r.Mask
	case CmpSwap:
		if (old^r.Compare)&r.CompareMask != 0 {
			return old
		}
	}
	return old&^r.Mask | r.Data&r.Mask
}

// AtomicResp is the payload of an Atomic Response (RFC 7306, section 5.2.2).
type AtomicResp struct {
	ID    uint32 // of the request
	Value uint64 // what the target held before it
}

// Put writes r to the first AtomicRespLen bytes of b.
func (r *AtomicResp) Put(b []byte) {
	_ = b[AtomicRespLen-1]
	binary.BigEndian.PutUint32(b, r.ID)
	binary.BigEndian.PutUint64(b[4:], r.Value)
}

// Parse reads r from the start of b. ok is false when b is too short.
func (r *AtomicResp) Parse(b []byte) (ok bool) {
	if len(b) < AtomicRespLen {
		return false
	}
	r.ID = binary.BigEndian.Uint32(b)
	r.Value = binary.BigEndian.Uint64(b[4:])
	return true
}

// Imm is the payload of Immediate Data: 8 bytes without meaning to RDMAP
// (RFC 7306, section 6).
type Imm uint64

// Put writes i to the first ImmLen bytes of b.
func (i Imm) Put(b []byte) { binary.BigEndian.PutUint64(b, uint64(i)) }

// Parse reads i from the start of b. ok is false when b is too short.
func (i *Imm) Parse(b []byte) (ok bool) {
	if len(b) < ImmLen {
		return false
	}
	*i = Imm(binary.BigEndian.Uint64(b))
	return true
}
