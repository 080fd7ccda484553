package dtype

import "encoding/binary"

// gather fills dst with blocks of size bytes from src, the first at index at,
// each step behind the one before. dst is a whole number of blocks long. The
// sizes of the usual elements have loops of their own: a call of copy costs
// more than moving them.
func gather(dst, src []byte, at, size, step int) {
	switch size {
	case 1:
		for i := range dst {
			dst[i] = src[at]
			at += step
		}
	case 2:
		for ; len(dst) >= 2; dst = dst[2:] {
			binary.LittleEndian.PutUint16(dst, binary.LittleEndian.Uint16(src[at:]))
			at += step
		}
	case 4:
		for ; len(dst) >= 4; dst = dst[4:] {
			binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(src[at:]))
			at += step
		}
	case 8:
		for ; len(dst) >= 8; dst = dst[8:] {
			binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src[at:]))
			at += step
		}
	case 16:
		for ; len(dst) >= 16; dst = dst[16:] {
			from := src[at : at+16]
			binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(from))
			binary.LittleEndian.PutUint64(dst[8:], binary.LittleEndian.Uint64(from[8:]))
			at += step
		}
	default:
		for ; len(dst) >= size; dst = dst[size:] {
			copyBlock(dst[:size], src[at:at+size])
			at += step
		}
	}
}

// spread does the opposite: blocks from src go to dst.
func spread(dst, src []byte, at, size, step int) {
	switch size {
	case 1:
		for _, b := range src {
			dst[at] = b
			at += step
		}
	case 2:
		for ; len(src) >= 2; src = src[2:] {
			binary.LittleEndian.PutUint16(dst[at:], binary.LittleEndian.Uint16(src))
			at += step
		}
	case 4:
		for ; len(src) >= 4; src = src[4:] {
			binary.LittleEndian.PutUint32(dst[at:], binary.LittleEndian.Uint32(src))
			at += step
		}
	case 8:
		for ; len(src) >= 8; src = src[8:] {
			binary.LittleEndian.PutUint64(dst[at:], binary.LittleEndian.Uint64(src))
			at += step
		}
	case 16:
		for ; len(src) >= 16; src = src[16:] {
			to := dst[at : at+16]
			binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(src))
			binary.LittleEndian.PutUint64(to[8:], binary.LittleEndian.Uint64(src[8:]))
			at += step
		}
	default:
		for ; len(src) >= size; src = src[size:] {
			copyBlock(dst[at:at+size], src[:size])
			at += step
		}
	}
}

// copyBlock copies src to dst, which is as long.
func copyBlock(dst, src []byte) {
	switch len(src) {
	case 1:
		dst[0] = src[0]
	case 2:
		binary.LittleEndian.PutUint16(dst, binary.LittleEndian.Uint16(src))
	case 4:
		binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
	case 8:
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
	default:
		copy(dst, src)
	}
}
