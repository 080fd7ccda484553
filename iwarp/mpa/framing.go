package mpa

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/crc32c"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// Lengths of the parts of an FPDU in bytes (RFC 5044, section 4):
//
//	+-------------------------------+-------------------------------+
//	|        ULPDU length           |  ULPDU: a DDP segment ...     |
//	+-------------------------------+                               |
//	|                               +-------------------------------+
//	|                               |  pad, 0 to 3 zeros            |
//	+-------------------------------+-------------------------------+
//	|                            CRC32C                             |
//	+---------------------------------------------------------------+
//
// The CRC is over everything before it, markers included, and goes out with
// its least significant byte first (as in RFC 3720). Without CRC it is 0.
const (
	LengthLen  = 2
	CRCLen     = 4
	TrailerMax = 3 + CRCLen
	MaxULPDU   = 65535
)

// MaxFPDU is the length of the longest FPDU with the markers in it: what a
// receiver must be able to keep.
const MaxFPDU = LengthLen + MaxULPDU + TrailerMax + markerLen*(2+MaxULPDU/markerData)

// minMULPDU is what DDP asks of its LLP at least (RFC 5041, section 5.1). A
// segment of TCP that is shorter than that gets part of an FPDU.
const minMULPDU = 128

// Pad returns how many zeros follow a ULPDU of n bytes, so that the FPDU is a
// multiple of 4 bytes.
func Pad(n int) int { return -(LengthLen + n) & 3 }

// MULPDU returns the longest ULPDU in bytes whose FPDU fits into one segment of
// mss bytes (RFC 5044, section 5.1), rounded down as siw does it, so that the
// next one in a buffer is aligned to 8 bytes.
func MULPDU(mss int, markers bool) int {
	mss &^= 7
	n := mss - LengthLen - CRCLen
	longest := MaxULPDU
	if markers {
		n -= markerLen * ((mss + markerEvery - 1) / markerEvery)
		longest = maxMarkedULPDU
	}
	return min(max(n, minMULPDU), longest)
}

// Tx frames ULPDUs for sending. The caller sends header and payload from where
// they lie; see Mark for streams with markers.
type Tx struct {
	CRC     bool
	Markers bool
	left    int // bytes until the next marker is due
}

// Trailer writes what follows a ULPDU (pad and CRC) to the start of b, which
// has room for TrailerMax bytes, and returns how many it wrote. The parts are
// the FPDU so far, from its length on.
func (t *Tx) Trailer(b []byte, parts ...[]byte) int {
	n, crc := 0, uint32(0)
	for _, p := range parts {
		n += len(p)
		if t.CRC {
			crc = crc32c.Update(crc, p)
		}
	}
	n = -n & 3
	clear(b[:n])
	if t.CRC {
		crc = crc32c.Update(crc, b[:n])
	}
	binary.LittleEndian.PutUint32(b[n:], crc)
	return n + CRCLen
}

// Rx finds ULPDUs in a byte stream.
type Rx struct {
	CRC     bool
	Markers bool
	Empty   bool // an FPDU without a ULPDU may come: first, in peer-to-peer mode
	left    int  // bytes until the next marker
}

// Next looks at b, the bytes of the stream that were not consumed yet, and
// returns the ULPDU at its front and how many bytes its FPDU takes: those the
// caller consumes before it asks again. The ULPDU lies in b; markers are taken
// out in place. n == 0: it is not all there yet, and want says how long b must
// at least be for progress, at most MaxFPDU. After ok == false the stream is
// over, because of cause.
func (r *Rx) Next(b []byte) (ulpdu []byte, n, want int, cause iwarp.Cause, ok bool) {
	if r.Markers {
		return r.nextMarked(b)
	}
	if len(b) < LengthLen {
		return nil, 0, LengthLen, 0, true
	}
	size := int(binary.BigEndian.Uint16(b))
	n = LengthLen + size + Pad(size) + CRCLen
	if len(b) < n {
		return nil, 0, n, 0, true
	}
	if cause, ok = r.check(b[:n], size); !ok {
		return nil, 0, 0, cause, false
	}
	return b[LengthLen : LengthLen+size], n, 0, 0, true
}

// check judges an FPDU, markers included, with a ULPDU of size bytes. The CRC
// comes first: if it is wrong, so may be all the rest.
func (r *Rx) check(fpdu []byte, size int) (cause iwarp.Cause, ok bool) {
	body := len(fpdu) - CRCLen
	switch {
	case r.CRC && crc32c.Update(0, fpdu[:body]) != binary.LittleEndian.Uint32(fpdu[body:]):
		return iwarp.LLPCRC, false
	case size < ddp.TaggedLen && (size > 0 || !r.Empty):
		// Not even a DDP header. RFC 5044 has no code for it; it does not
		// happen to a peer that is in its right mind.
		return iwarp.LLPCatastrophic, false
	}
	return 0, true
}
