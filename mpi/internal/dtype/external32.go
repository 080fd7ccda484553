package dtype

import (
	"encoding/binary"
	"math"
)

// External32Size returns how many bytes count elements of t have in external32
// (MPI_Pack_external_size).
func (t *Type) External32Size(count int) (int, error) {
	if count < 0 {
		return 0, fail(InvalidCount, "Pack_external_size", "the count is %d", count)
	}
	if t.sig == nil {
		return 0, nil
	}
	size, huge := times(t.sig.external, count)
	if huge {
		return 0, fail(InvalidCount, "Pack_external_size", "%d elements are more than memory can hold", count)
	}
	return size, nil
}

// PackExternal32 converts count elements of t, whose buffer is that of
// [Type.Cursor], to external32 at the start of dst, and returns how many bytes
// these are (MPI_Pack_external; MPI 4.1, section 14.5.2). A value that has no
// place in external32, where a long and a wide character are shorter, is an
// error of the class ConversionFailed, and a dst that is too short is Truncated;
// part of dst has been written then.
func (t *Type) PackExternal32(dst, mem []byte, origin, count int) (int, error) {
	x := external32{op: "Pack_external", to: true, ext: dst}
	return x.convert(t, mem, origin, count)
}

// UnpackExternal32 does the opposite: it converts the bytes of external32 at
// the start of src to count elements of t, and returns how many bytes these
// were (MPI_Unpack_external).
func (t *Type) UnpackExternal32(mem []byte, origin, count int, src []byte) (int, error) {
	x := external32{op: "Unpack_external", ext: src}
	return x.convert(t, mem, origin, count)
}

// external32 converts packed bytes, piece by piece: the signature says what
// they are, and a cursor where.
type external32 struct {
	op    string
	to    bool // to external32, or from there
	ext   []byte
	c     Cursor
	chunk [512]byte // packed bytes on their way
	lost  bool      // a value does not fit
}

func (x *external32) convert(t *Type, mem []byte, origin, count int) (int, error) {
	var err error
	if x.c, err = t.Cursor(mem, origin, count); err != nil {
		return 0, err
	}
	size, err := t.External32Size(count)
	if err != nil {
		return 0, err
	}
	if len(x.ext) < size {
		return 0, fail(Truncated, x.op, "%d elements have %d bytes in external32, the buffer has %d", count, size, len(x.ext))
	}
	switch {
	case size == 0:
	case t.sig.isRun():
		x.run(&kinds[t.sig.kind], t.sig.count*count)
	default:
		for range count {
			x.walk(t.sig)
		}
	}
	if x.lost {
		return 0, fail(ConversionFailed, x.op, "a value does not fit: a long has 32 bits in external32 and a wide character 16; use MPI_LONG_LONG or MPI_INT64_T")
	}
	return size, nil
}

func (x *external32) walk(s *signature) {
	switch {
	case s.isRun():
		x.run(&kinds[s.kind], s.count)
	case s.child != nil:
		for range s.count {
			x.walk(s.child)
		}
	default:
		for _, p := range s.parts {
			x.walk(p)
		}
	}
}

// run converts n elements of one kind.
func (x *external32) run(k *kindInfo, n int) {
	for n > 0 {
		part := min(n, len(x.chunk)/k.size)
		packed, ext := x.chunk[:part*k.size], x.ext[:part*k.external]
		if x.to {
			x.c.Pack(packed)
			x.lost = !encode(k, ext, packed) || x.lost
		} else {
			decode(k, packed, ext)
			x.c.Unpack(packed)
		}
		x.ext = x.ext[len(ext):]
		n -= part
	}
}

// encode converts elements of one kind to external32, and reports whether all
// of them fit.
func encode(k *kindInfo, ext, packed []byte) bool {
	switch {
	case k.machine == mFloat80 || k.machine == mComplex160:
		for i := 0; i < len(ext); i += size80 {
			load80(packed[i:]).store128(ext[i:])
		}
	case k.size == k.external:
		swap(ext, packed, k.width())
	case k.size == 4: // a wide character
		for ; len(ext) > 0; ext, packed = ext[2:], packed[4:] {
			v := binary.LittleEndian.Uint32(packed)
			if v > math.MaxUint16 {
				return false
			}
			binary.BigEndian.PutUint16(ext, uint16(v))
		}
	default: // a long
		for ; len(ext) > 0; ext, packed = ext[4:], packed[8:] {
			v := binary.LittleEndian.Uint64(packed)
			if k.machine == mInt64 && int64(v) != int64(int32(v)) || k.machine == mUint64 && v > math.MaxUint32 {
				return false
			}
			binary.BigEndian.PutUint32(ext, uint32(v))
		}
	}
	return true
}

// decode converts elements of one kind from external32.
func decode(k *kindInfo, packed, ext []byte) {
	switch {
	case k.machine == mFloat80 || k.machine == mComplex160:
		for i := 0; i < len(ext); i += size80 {
			clear(packed[i+10 : i+size80])
			load128(ext[i:]).store(packed[i:])
		}
	case k.size == k.external:
		swap(packed, ext, k.width())
	case k.size == 4:
		for ; len(ext) > 0; ext, packed = ext[2:], packed[4:] {
			binary.LittleEndian.PutUint32(packed, uint32(binary.BigEndian.Uint16(ext)))
		}
	default:
		for ; len(ext) > 0; ext, packed = ext[4:], packed[8:] {
			v := uint64(binary.BigEndian.Uint32(ext))
			if k.machine == mInt64 {
				v = uint64(int64(int32(v)))
			}
			binary.LittleEndian.PutUint64(packed, v)
		}
	}
}

// width is how many bytes belong together: a complex number is two of its
// parts.
func (k *kindInfo) width() int {
	if k.machine == mComplex64 || k.machine == mComplex128 || k.machine == mWords128 {
		return k.size / 2
	}
	return k.size
}

// swap turns the bytes of each word around.
func swap(dst, src []byte, width int) {
	switch width {
	case 1:
		copy(dst, src)
	case 2:
		for ; len(src) >= 2; dst, src = dst[2:], src[2:] {
			binary.BigEndian.PutUint16(dst, binary.LittleEndian.Uint16(src))
		}
	case 4:
		for ; len(src) >= 4; dst, src = dst[4:], src[4:] {
			binary.BigEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
		}
	case 8:
		for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
			binary.BigEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
		}
	case 16:
		for ; len(src) >= 16; dst, src = dst[16:], src[16:] {
			binary.BigEndian.PutUint64(dst, binary.LittleEndian.Uint64(src[8:]))
			binary.BigEndian.PutUint64(dst[8:], binary.LittleEndian.Uint64(src))
		}
	}
}
