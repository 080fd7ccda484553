package rdmap

import (
	"encoding/binary"
	"math"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// The shortest and the longest payload of a Terminate in bytes: the control
// word alone, and with copies of the headers of an Atomic Request.
const (
	TermMinLen = 4
	TermMaxLen = termDDP + ddp.UntaggedLen + AtomicReqLen
)

// Bits of the control word behind the cause, and what follows it.
const (
	bitM    = 0x8000
	bitD    = 0x4000
	bitR    = 0x2000
	termDDP = 6 // offset of the DDP header, behind the 16 bits of its segment's length
)

// Term is the payload of a Terminate: why the sender ends the stream, and if
// it was because of a segment, the headers of that one (RFC 5040, section 4.8):
//
//	0                   1                   2                   3
//	0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+---------------+-+-+-+-------------------------+
//	| layer | etype |  error code   |M|D|R|        reserved         |
//	+-------+-------+---------------+-+-+-+-------------------------+
//	|  DDP segment length (if D)    | terminated DDP header (if D)  |
//	+-------------------------------+                               +
//	|  14 or 18 bytes, then (if R) the terminated RDMAP header:     |
//	|  28 bytes of a Read Request, 52 of an Atomic Request          |
type Term struct {
	Cause iwarp.Cause
	// HasLen (M) tells whether SegLen is valid, HasDDP (D) and HasRDMAP (R)
	// which headers are there. SegLen is the length of the terminated segment,
	// header included, as far as 16 bits go.
	HasLen, HasDDP, HasRDMAP bool
	SegLen                   uint16
	// Swapped: the bit fields of the control word are in the order in which
	// Linux's siw driver has them (etype before layer; M, D, R = 1, 2, 4).
	Swapped bool
	// The copies are bytes and no structs: they may be what made no sense.
	ddp [ddp.UntaggedLen]byte
	req [AtomicReqLen]byte
}

// Blame sets t to what answers a segment that was refused for cause. seg is
// the segment as far as it is at hand, from its DDP header on (only headers
// are copied); segLen is the whole length in bytes. A nil seg copies nothing.
func (t *Term) Blame(cause iwarp.Cause, seg []byte, segLen int) {
	*t = Term{Cause: cause}
	if !blames(cause) || len(seg) == 0 || len(seg) < ddp.LenOf(seg[0]) {
		return
	}
	t.HasLen, t.HasDDP = true, true
	t.SegLen = uint16(min(segLen, math.MaxUint16))
	n := copy(t.ddp[:ddp.LenOf(seg[0])], seg)
	if req := t.reqLen(); cause.Layer() == iwarp.LayerRDMAP && req > 0 && len(seg) >= n+req {
		t.HasRDMAP = true
		copy(t.req[:req], seg[n:])
	}
}

// blames tells whether cause is about one segment whose header can be read:
// not a version that we do not know, a local failure, or the lower layer.
func blames(cause iwarp.Cause) bool {
	switch cause {
	case InvalidVersion, ddp.TaggedVersion, ddp.UntaggedVersion:
		return false
	}
	return cause.Type() != 0 && cause.Layer() != iwarp.LayerLLP
}

// reqLen returns how long the RDMAP header of the copied segment is: only
// requests have one.
func (t *Term) reqLen() int {
	switch op, _ := ParseControl(t.ddp[1]); {
	case ddp.LenOf(t.ddp[0]) != ddp.UntaggedLen:
		return 0
	case op == ReadRequest:
		return ReadReqLen
	case op == AtomicRequest:
		return AtomicReqLen
	}
	return 0
}

// Len returns the length of t on the wire.
func (t *Term) Len() int {
	n := TermMinLen
	if t.HasDDP {
		n = termDDP + ddp.LenOf(t.ddp[0])
		if t.HasRDMAP {
			n += t.reqLen()
		}
	}
	return n
}

// Put writes t to the start of b, which has room for Len bytes (TermMaxLen is
// enough for any), and returns how many it wrote.
func (t *Term) Put(b []byte) int {
	w := uint32(t.Cause) << 16
	if t.HasLen {
		w |= bitM
	}
	if t.HasDDP {
		w |= bitD
	}
	if t.HasRDMAP {
		w |= bitR
	}
	if t.Swapped {
		w = swap(w)
	}
	binary.BigEndian.PutUint32(b, w)
	n := TermMinLen
	if !t.HasDDP {
		return n
	}
	binary.BigEndian.PutUint16(b[TermMinLen:], t.SegLen)
	n = termDDP + copy(b[termDDP:], t.ddp[:ddp.LenOf(t.ddp[0])])
	if t.HasRDMAP {
		n += copy(b[n:], t.req[:t.reqLen()])
	}
	return n
}

// Parse reads a Terminate. ok is false when not even the control word is
// there. Copies that are cut off count as not there: whatever comes behind it,
// the cause is the peer's last word.
func (t *Term) Parse(b []byte) (ok bool) {
	if len(b) < TermMinLen {
		return false
	}
	w := binary.BigEndian.Uint32(b)
	*t = Term{Swapped: swapped(w, len(b))}
	if t.Swapped {
		w = swap(w)
	}
	t.Cause = iwarp.Cause(w >> 16)
	if w&bitD == 0 || len(b) <= termDDP || len(b) < termDDP+ddp.LenOf(b[termDDP]) {
		return true
	}
	t.HasLen, t.HasDDP = w&bitM != 0, true
	t.SegLen = binary.BigEndian.Uint16(b[TermMinLen:])
	b = b[termDDP:]
	b = b[copy(t.ddp[:ddp.LenOf(b[0])], b):]
	if req := t.reqLen(); w&bitR != 0 && req > 0 && len(b) >= req {
		t.HasRDMAP = true
		copy(t.req[:req], b)
	}
	return true
}

// ParseStream is Parse for a connection of MPA, where it is known how far that
// is: startup says that the peer has had no message of ours. Without headers the bytes 20 06 and 20 07, and 02 06 and 02 07,
// mean one thing in the RFC's order and another in siw's. Only a start-up
// frame can be the reason for LLPResources and LLPNoRTR, and only a message
// the one for RDMAP's UnexpectedOpcode and StreamCatastrophic.
func (t *Term) ParseStream(b []byte, startup bool) (ok bool) {
	if !t.Parse(b) {
		return false
	}
	if t.HasDDP {
		return true
	}
	for _, k := range [...]struct{ mpa, rdmap iwarp.Cause }{
		{iwarp.LLPResources, UnexpectedOpcode}, {iwarp.LLPNoRTR, StreamCatastrophic},
	} {
		switch {
		case t.Cause == k.rdmap && startup:
			t.Cause, t.Swapped = k.mpa, !t.Swapped
		case t.Cause == k.mpa && !startup:
			t.Cause, t.Swapped = k.rdmap, !t.Swapped
		}
	}
	return true
}

// swap turns a control word from the RFC's order of bits into siw's or back.
func swap(w uint32) uint32 {
	hdr := w&bitM>>7 | w&bitD>>5 | w&bitR>>3 | w<<7&bitM | w<<5&bitD | w<<3&bitR
	return w>>4&0x0f000000 | w<<4&0xf0000000 | w&0x00ff0000 | hdr
}

// swapped tells whether w, at the start of n bytes, is a control word in siw's
// order: it announces headers in that order and none in the RFC's, or it makes
// sense in that order only. Without headers some are ambiguous (02 06, 20 05
// and the like); those are read as the RFC has them. See ParseStream.
func swapped(w uint32, n int) bool {
	if w&(bitM|bitD|bitR) != 0 {
		return false
	}
	return n > TermMinLen && swap(w)&(bitM|bitD|bitR) != 0 ||
		!iwarp.Cause(w>>16).Known() && iwarp.Cause(swap(w)>>16).Known()
}

// Header reads the DDP header that t has a copy of. ok is false when it has
// none, or not one of this version.
func (t *Term) Header(h *ddp.Header) (ok bool) {
	return t.HasDDP && h.Parse(t.ddp[:])
}

// ReadReq reads the Read Request that t has a copy of. ok is false when it has
// none.
func (t *Term) ReadReq(r *ReadReq) (ok bool) {
	return t.HasRDMAP && t.reqLen() == ReadReqLen && r.Parse(t.req[:])
}

// AtomicReq reads the Atomic Request that t has a copy of. ok is false when it
// has none.
func (t *Term) AtomicReq(r *AtomicReq) (ok bool) {
	return t.HasRDMAP && t.reqLen() == AtomicReqLen && r.Parse(t.req[:])
}
