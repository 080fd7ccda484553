package mpa

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/crc32c"
	"github.com/xwarp/xwarp/iwarp"
)

// Markers stand in the stream every 512 bytes, whatever else is there, from the
// first byte behind the start-up frame on (RFC 5044, section 4.3):
//
//	+-------------------------------+-------------------------------+
//	|               0               |           FPDUPTR             |
//	+-------------------------------+-------------------------------+
//
// FPDUPTR is how many bytes before the marker the FPDU begins that it stands
// in, counted from the length field, other markers included; 0 when it stands
// right before the length field. All parts of the stream are multiples of 4
// bytes, so a marker never splits a length or a CRC. One that stands right
// before an FPDU belongs to it: the CRC covers it.
const (
	markerEvery = 512
	markerLen   = 4
	markerData  = markerEvery - markerLen

	// maxMarkedULPDU keeps FPDUPTR below 2^16.
	maxMarkedULPDU = 64768
)

// Mark appends an FPDU that is at hand in one piece, with the markers that fall
// into it, to dst. The CRC is made anew, because it covers the markers. It
// keeps account of the position in the stream, so every FPDU of a stream with
// markers must go through it, once. Without markers it copies.
func (t *Tx) Mark(dst, fpdu []byte) []byte {
	if !t.Markers {
		return append(dst, fpdu...)
	}
	start := len(dst)
	if t.left == 0 {
		dst = t.marker(dst, 0)
	}
	begin := len(dst)
	body := fpdu[:len(fpdu)-CRCLen]
	for len(body) > 0 {
		if t.left == 0 {
			dst = t.marker(dst, len(dst)-begin)
		}
		n := min(t.left, len(body))
		dst = append(dst, body[:n]...)
		body = body[n:]
		t.left -= n
	}
	if t.left == 0 {
		dst = t.marker(dst, len(dst)-begin)
	}
	t.left -= CRCLen
	crc := uint32(0)
	if t.CRC {
		crc = crc32c.Update(0, dst[start:])
	}
	return binary.LittleEndian.AppendUint32(dst, crc)
}

func (t *Tx) marker(dst []byte, distance int) []byte {
	t.left = markerData
	return binary.BigEndian.AppendUint32(dst, uint32(uint16(distance)))
}

// MarkedLen returns how long an FPDU of n bytes is with the markers that Mark
// puts into it next.
func (t *Tx) MarkedLen(n int) int {
	if !t.Markers {
		return n
	}
	first, left := opening(t.left)
	return first + n + markerLen*markersIn(n, left)
}

// opening returns the length of the marker that stands right before an FPDU,
// if one does, and how many bytes of the FPDU there are before the next.
func opening(left int) (first, before int) {
	if left == 0 {
		return markerLen, markerData
	}
	return 0, left
}

// markersIn returns how many markers fall into n bytes, of which left are
// before the first.
func markersIn(n, left int) int {
	if n <= left {
		return 0
	}
	return 1 + (n-left-1)/markerData
}

// nextMarked is Next for a stream with markers.
func (r *Rx) nextMarked(b []byte) (ulpdu []byte, n, want int, cause iwarp.Cause, ok bool) {
	first, left := opening(r.left)
	if len(b) < first+LengthLen {
		return nil, 0, first + LengthLen, 0, true
	}
	size := int(binary.BigEndian.Uint16(b[first:]))
	bare := LengthLen + size + Pad(size) + CRCLen
	markers := markersIn(bare, left)
	if n = first + bare + markerLen*markers; len(b) < n {
		return nil, 0, n, 0, true
	}
	if cause, ok = r.check(b[:n], size); !ok {
		return nil, 0, 0, cause, false
	}
	if first > 0 && !isMarker(b, 0) {
		return nil, 0, 0, iwarp.LLPMarker, false
	}
	if !unmark(b[first:n], left) {
		return nil, 0, 0, iwarp.LLPMarker, false
	}
	if r.left = left - bare; markers > 0 {
		r.left += markers * markerData
	}
	return b[first+LengthLen : first+LengthLen+size], n, 0, 0, true
}

// unmark takes the markers out of an FPDU, the first of which comes behind left
// bytes. What is behind the last one moves to the front by all of them. ok is
// false when one of them is not what it should be.
func unmark(fpdu []byte, left int) (ok bool) {
	to := left
	for at := left; at < len(fpdu); at += markerEvery {
		if !isMarker(fpdu[at:], at) {
			return false
		}
		to += copy(fpdu[to:], fpdu[at+markerLen:min(at+markerEvery, len(fpdu))])
	}
	return true
}

// isMarker tells whether there is a marker at b for an FPDU that begins
// distance bytes before it. The lowest two bits are ignored, and so are the
// reserved ones.
func isMarker(b []byte, distance int) bool {
	return binary.BigEndian.Uint16(b[2:])&^3 == uint16(distance)
}
