package mpa

import "github.com/xwarp/xwarp/iwarp"

// Lengths of the parts of an FPDU in bytes (RFC 5044, section 4).
const (
	LengthLen = 2
	CRCLen    = 4
	MaxULPDU  = 65535
)

// Pad returns how many zeros follow a ULPDU of n bytes, so that the FPDU is a
// multiple of 4 bytes.
func Pad(n int) int { return -(LengthLen + n) & 3 }

// MULPDU returns the longest ULPDU in bytes whose FPDU fits into one segment of
// mss bytes.
func MULPDU(mss int, markers bool) int { return 0 }

// Tx frames ULPDUs for sending. The caller sends header and payload from where
// they lie; see Marker for streams with markers.
type Tx struct {
	CRC     bool
	Markers bool
}

// Trailer writes what follows a ULPDU (pad and CRC) to the start of b, which
// has room for 7 bytes, and returns how many it wrote. The parts are the FPDU
// so far, from its length on. Without CRC the field is 0.
func (t *Tx) Trailer(b []byte, parts ...[]byte) int { return 0 }

// Mark appends an FPDU that is at hand in one piece, with the markers that fall
// into it, to dst. It keeps account of the position in the stream, so every
// FPDU of a stream with markers must go through it.
func (t *Tx) Mark(dst, fpdu []byte) []byte { return dst }

// Rx finds ULPDUs in a byte stream.
type Rx struct {
	CRC     bool
	Markers bool
}

// Next looks at b, the bytes of the stream that were not consumed yet, and
// returns the ULPDU at its front and how many bytes its FPDU takes. The ULPDU
// lies in b; markers are taken out in place. n == 0: it is not all there yet,
// and want says how long b must at least be for progress. After ok == false the
// stream is over, because of cause.
func (r *Rx) Next(b []byte) (ulpdu []byte, n, want int, cause iwarp.Cause, ok bool) {
	return nil, 0, 0, 0, false
}
