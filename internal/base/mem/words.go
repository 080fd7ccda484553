package mem

import "golang.org/x/sys/unix"

// wordsHuge is from how many bytes on words are in huge pages: 64 smaller ones.
const wordsHuge = 256 << 10

// Words returns n words or a few more that are 0. Many are in huge pages, and fill these, where the kernel gives
// some: to touch a page for the first time takes up to 20 us in a virtual machine whose page tables are shadowed.
func Words(n int) []uint64 {
	if n*8 < wordsHuge {
		return make([]uint64, n)
	}
	whole := roundUp(n*8, hugePage)
	w := make([]uint64, (whole+hugePage)/8) // of which as much is never touched as is not whole pages
	from := int(-AddressOf(BytesOf(w)) & (hugePage - 1))
	w = w[from/8:][: whole/8 : whole/8]
	_ = unix.Madvise(BytesOf(w), unix.MADV_HUGEPAGE) // smaller pages do as well
	return w
}
