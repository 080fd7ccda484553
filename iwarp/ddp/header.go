// Package ddp is Direct Data Placement (RFC 5041): the headers that say where
// the payload of a segment belongs.
package ddp

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/iwarp"
)

// Lengths of the two headers in bytes, RDMAP's control byte included
// (RFC 5041, section 4; RFC 5040, section 4.1).
const (
	TaggedLen   = 14
	UntaggedLen = 18
)

// Version is the only DDP version there is.
const Version = 1

const (
	bitTagged = 0x80
	bitLast   = 0x40
	maskVer   = 0x03
)

// Header is a DDP header of either kind. Fields of the other kind are zero.
//
//	 byte 0        byte 1     tagged: 2..5  6..13
//	|T|L|rsvd  |DV|  ULP    | STag         | tagged offset         |
//	                          untagged: 2..5 6..9   10..13  14..17
//	                        | ULP           | QN   | MSN   | MO    |
type Header struct {
	Tagged bool
	Last   bool  // last segment of its message
	ULP    uint8 // RDMAP's control byte
	STag   iwarp.STag
	TO     uint64 // tagged offset of the first payload byte
	ULP2   uint32 // untagged: for RDMAP, the STag to invalidate
	QN     iwarp.QN
	MSN    iwarp.MSN
	MO     uint32 // offset of the payload in its message
}

// Len returns the length of h on the wire.
func (h *Header) Len() int {
	if h.Tagged {
		return TaggedLen
	}
	return UntaggedLen
}

// Put writes h to the start of b, which has room for Len bytes, and returns
// how many it wrote.
func (h *Header) Put(b []byte) int {
	ctl := byte(Version)
	if h.Last {
		ctl |= bitLast
	}
	if h.Tagged {
		_ = b[TaggedLen-1]
		binary.BigEndian.PutUint16(b, uint16(ctl|bitTagged)<<8|uint16(h.ULP))
		binary.BigEndian.PutUint32(b[2:], uint32(h.STag))
		binary.BigEndian.PutUint64(b[6:], h.TO)
		return TaggedLen
	}
	_ = b[UntaggedLen-1]
	binary.BigEndian.PutUint16(b, uint16(ctl)<<8|uint16(h.ULP))
	binary.BigEndian.PutUint64(b[2:], uint64(h.ULP2)<<32|uint64(h.QN)) // whole words: see dgram.Header
	binary.BigEndian.PutUint64(b[10:], uint64(h.MSN)<<32|uint64(h.MO))
	return UntaggedLen
}

// LenOf tells from the first byte of a segment how long its header is.
func LenOf(first byte) int {
	if first&bitTagged != 0 {
		return TaggedLen
	}
	return UntaggedLen
}

// Parse reads a header from the start of b. ok is false when b is too short or
// the version is not ours; reserved bits are ignored, as RFC 5041 asks.
func (h *Header) Parse(b []byte) (ok bool) {
	if len(b) < TaggedLen || b[0]&maskVer != Version {
		return false
	}
	h.Last = b[0]&bitLast != 0
	h.ULP = b[1]
	if b[0]&bitTagged != 0 {
		h.Tagged = true
		h.STag = iwarp.STag(binary.BigEndian.Uint32(b[2:]))
		h.TO = binary.BigEndian.Uint64(b[6:])
		h.ULP2, h.QN, h.MSN, h.MO = 0, 0, 0, 0
		return true
	}
	if len(b) < UntaggedLen {
		return false
	}
	h.Tagged = false
	h.ULP2 = binary.BigEndian.Uint32(b[2:])
	h.QN = iwarp.QN(binary.BigEndian.Uint32(b[6:]))
	h.MSN = iwarp.MSN(binary.BigEndian.Uint32(b[10:]))
	h.MO = binary.BigEndian.Uint32(b[14:])
	h.STag, h.TO = 0, 0
	return true
}
