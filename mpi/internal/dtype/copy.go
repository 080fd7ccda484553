package dtype

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// copyNode copies all bytes of a node, which lies at base in buf, to or from
// packed, which is as long.
func copyNode(nd *node, buf, packed []byte, base int, act action) {
	switch nd.form {
	case formBlock:
		if act == pack {
			copyBlock(packed, buf[base:base+nd.size])
		} else {
			copyBlock(buf[base:base+nd.size], packed)
		}
	case formLoop:
		copyLoop(nd.child, nd.count, nd.step, buf, packed, base, act)
	case formScatter:
		copyScatter(nd, buf, packed, base, act)
	case formBlocks:
		copyBlocks(nd, 1, 0, buf, packed, base, act)
	case formList:
		for i, kid := range nd.kids {
			start := nd.starts[i]
			copyNode(kid, buf, packed[start:start+kid.size], base+nd.at[i], act)
		}
	}
}

// copyLoop copies count times nd, each step behind the one before.
func copyLoop(nd *node, count, step int, buf, packed []byte, base int, act action) {
	switch {
	case nd.form == formBlocks:
		copyBlocks(nd, count, step, buf, packed, base, act)
	case nd.form != formBlock:
		for range count {
			copyNode(nd, buf, packed[:nd.size], base, act)
			packed = packed[nd.size:]
			base += step
		}
	case act == pack:
		gather(packed, buf, base, nd.size, step)
	default:
		spread(buf, packed, base, nd.size, step)
	}
}

// copyBlocks copies count times the blocks of nd.
func copyBlocks(nd *node, count, step int, buf, packed []byte, base int, act action) {
	starts := nd.starts[1:]
	for range count {
		start := 0
		for i, at := range nd.at {
			size := starts[i] - start
			dst, src := packed[:size], buf[base+at:base+at+size]
			if act == unpack {
				dst, src = src, dst
			}
			switch size {
			case 4: // elements of structures, above all
				binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
			case 8:
				binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
			default:
				copyBlock(dst, src)
			}
			packed = packed[size:]
			start += size
		}
		base += step
	}
}

func copyScatter(nd *node, buf, packed []byte, base int, act action) {
	size := nd.child.size
	switch {
	case nd.child.form != formBlock:
		for _, at := range nd.at {
			copyNode(nd.child, buf, packed[:size], base+at, act)
			packed = packed[size:]
		}
	case size == 8 && act == pack: // single elements are what scatters usually have
		for _, at := range nd.at {
			binary.LittleEndian.PutUint64(packed, binary.LittleEndian.Uint64(buf[base+at:]))
			packed = packed[8:]
		}
	case size == 8:
		for _, at := range nd.at {
			binary.LittleEndian.PutUint64(buf[base+at:], binary.LittleEndian.Uint64(packed))
			packed = packed[8:]
		}
	case act == pack:
		for _, at := range nd.at {
			copyBlock(packed[:size], buf[base+at:base+at+size])
			packed = packed[size:]
		}
	default:
		for _, at := range nd.at {
			copyBlock(buf[base+at:base+at+size], packed[:size])
			packed = packed[size:]
		}
	}
}

// shortBlock is the size from which on copy is faster than copyBlock.
const shortBlock = 32

// copyBlock copies src to dst, which is as long. Short blocks are moved right
// here, as two or four words that overlap in the middle: a call of copy costs
// more than that.
func copyBlock(dst, src []byte) {
	le := binary.LittleEndian
	switch n := len(src); {
	case n > shortBlock || len(dst) != n:
		copy(dst, src)
	case n > 16:
		a, b, c, d := le.Uint64(src), le.Uint64(src[8:]), le.Uint64(src[n-16:]), le.Uint64(src[n-8:])
		le.PutUint64(dst, a)
		le.PutUint64(dst[8:], b)
		le.PutUint64(dst[n-16:], c)
		le.PutUint64(dst[n-8:], d)
	case n >= 8:
		a, b := le.Uint64(src), le.Uint64(src[n-8:])
		le.PutUint64(dst, a)
		le.PutUint64(dst[n-8:], b)
	case n >= 4:
		a, b := le.Uint32(src), le.Uint32(src[n-4:])
		le.PutUint32(dst, a)
		le.PutUint32(dst[n-4:], b)
	case n >= 2:
		a, b := le.Uint16(src), le.Uint16(src[n-2:])
		le.PutUint16(dst, a)
		le.PutUint16(dst[n-2:], b)
	case n == 1:
		dst[0] = src[0]
	}
}

// gather fills dst with blocks of size bytes from src, the first at index at,
// each step behind the one before. dst is a whole number of blocks long. The
// sizes of the usual elements have loops of their own.
func gather(dst, src []byte, at, size, step int) {
	switch size {
	case 1:
		gatherScalars(dst, src, at, step)
		return
	case 2:
		if fit(dst, src, at, size, step) {
			gatherScalars(mem.ScalarsOf[uint16](dst), scalars[uint16](src[at%2:]), at/2, step/2)
			return
		}
	case 4:
		if fit(dst, src, at, size, step) {
			gatherScalars(mem.ScalarsOf[uint32](dst), scalars[uint32](src[at%4:]), at/4, step/4)
			return
		}
	case 8:
		if fit(dst, src, at, size, step) {
			gatherScalars(mem.ScalarsOf[uint64](dst), scalars[uint64](src[at%8:]), at/8, step/8)
			return
		}
	case 16:
		for ; len(dst) >= 16; dst = dst[16:] {
			from := src[at : at+16]
			binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(from))
			binary.LittleEndian.PutUint64(dst[8:], binary.LittleEndian.Uint64(from[8:]))
			at += step
		}
		return
	}
	switch le := binary.LittleEndian; {
	case size > shortBlock:
		for ; len(dst) >= size; dst = dst[size:] {
			copy(dst[:size], src[at:])
			at += step
		}
	case size >= 8 && size < 16: // two words, which overlap: structures with a gap, above all
		for ; len(dst) >= size; dst = dst[size:] {
			to, from := dst[:size], src[at:at+size]
			head, tail := le.Uint64(from), le.Uint64(from[size-8:])
			le.PutUint64(to, head)
			le.PutUint64(to[size-8:], tail)
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
		spreadScalars(dst, src, at, step)
		return
	case 2:
		if fit(src, dst, at, size, step) {
			spreadScalars(scalars[uint16](dst[at%2:]), mem.ScalarsOf[uint16](src), at/2, step/2)
			return
		}
	case 4:
		if fit(src, dst, at, size, step) {
			spreadScalars(scalars[uint32](dst[at%4:]), mem.ScalarsOf[uint32](src), at/4, step/4)
			return
		}
	case 8:
		if fit(src, dst, at, size, step) {
			spreadScalars(scalars[uint64](dst[at%8:]), mem.ScalarsOf[uint64](src), at/8, step/8)
			return
		}
	case 16:
		for ; len(src) >= 16; src = src[16:] {
			to := dst[at : at+16]
			binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(src))
			binary.LittleEndian.PutUint64(to[8:], binary.LittleEndian.Uint64(src[8:]))
			at += step
		}
		return
	}
	switch le := binary.LittleEndian; {
	case size > shortBlock:
		for ; len(src) >= size; src = src[size:] {
			copy(dst[at:], src[:size])
			at += step
		}
	case size >= 8 && size < 16:
		for ; len(src) >= size; src = src[size:] {
			to, from := dst[at:at+size], src[:size]
			head, tail := le.Uint64(from), le.Uint64(from[size-8:])
			le.PutUint64(to, head)
			le.PutUint64(to[size-8:], tail)
			at += step
		}
	default:
		for ; len(src) >= size; src = src[size:] {
			copyBlock(dst[at:at+size], src[:size])
			at += step
		}
	}
}

// fit reports whether blocks of size bytes, a power of 2, are aligned on both
// sides, so that they can be moved as scalars.
func fit(packed, buf []byte, at, size, step int) bool {
	return len(packed) > 0 && (mem.AddressOf(packed)|mem.AddressOf(buf[at:])|uint64(step))&uint64(size-1) == 0
}

func gatherScalars[T mem.Scalar](dst, src []T, at, step int) {
	for i := range dst {
		dst[i] = src[at]
		at += step
	}
}

func spreadScalars[T mem.Scalar](dst, src []T, at, step int) {
	for _, v := range src {
		dst[at] = v
		at += step
	}
}
