package mem

import "golang.org/x/sys/unix"

// alignedLeast is how many words begin with a huge page: one then holds what would lie in 64 small pages and more.
const alignedLeast = hugePage / 8 / 8

// Words returns n words that are 0. Those of many are in huge pages where the kernel gives some: to
// touch a page for the first time takes up to 20 us in a virtual machine whose page tables are shadowed, and
// for another process to read so many of them takes longer.
func Words(n int) []uint64 {
	if n < alignedLeast {
		return make([]uint64, n)
	}
	const more = hugePage / 8
	w := make([]uint64, n+2*more)
	at := int(-AddressOf(BytesOf(w))&(hugePage-1)) / 8
	_ = unix.Madvise(BytesOf(w[at:at+(n+more-1)/more*more]), unix.MADV_HUGEPAGE) // smaller pages do as well
	return w[at : at+n : at+n]
}
