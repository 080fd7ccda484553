package mem

import "unsafe"

// PlainBytes is [BytesOf] for any type. The caller has made sure that T has no
// pointers: bytes that are written there would be taken for addresses.
func PlainBytes[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// PlainOf is [ScalarsOf] for any type, the way back from PlainBytes. The caller
// has made sure that T has no pointers. It panics when b is not aligned for T or
// not a whole number of T long.
func PlainOf[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	if size == 0 || len(b)%size != 0 || AddressOf(b)%uint64(unsafe.Alignof(zero)) != 0 {
		panic("mem: bytes are not a whole number of aligned values")
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}
