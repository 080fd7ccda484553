package mem

import "golang.org/x/sys/unix"

// Words returns n words that are 0. Those of many are in huge pages where the kernel gives some: to
// touch a page for the first time takes up to 20 us in a virtual machine whose page tables are shadowed.
func Words(n int) []uint64 {
	w := make([]uint64, n)
	b := BytesOf(w)
	if b = b[min(int(-AddressOf(b)&(hugePage-1)), len(b)):]; len(b) >= hugePage {
		_ = unix.Madvise(b[:len(b)/hugePage*hugePage], unix.MADV_HUGEPAGE) // smaller pages do as well
	}
	return w
}
