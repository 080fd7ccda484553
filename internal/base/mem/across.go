package mem

// acrossLeast is from how many bytes on CopyAcross may have another way than copy.
const acrossLeast = 2 << 10

// CopyAcross is copy of ranges that do not overlap, where another core has read dst last and
// reads it next, or has written src. It is small enough to be inlined.
func CopyAcross(dst, src []byte) int {
	if len(src) < acrossLeast {
		return copy(dst, src)
	}
	return copyLines(dst, src)
}
