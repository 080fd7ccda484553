package mem

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Words are words that are 0 at first, until the garbage collector finds that nothing holds them any more: a slice
// of theirs does not.
type Words struct {
	words  []uint64
	unmaps runtime.Cleanup
}

// wordsHuge is from how many bytes on words are in huge pages: 64 smaller ones.
const wordsHuge = 256 << 10

// NewWords returns n words or a few more. Many are in huge pages, and fill these, where the kernel gives some: to
// touch a page for the first time takes up to 20 us in a virtual machine whose page tables are shadowed. They are not
// of Go's heap, which may clear what it gives before it can be asked for huge pages.
func NewWords(n int) *Words {
	if n*8 >= wordsHuge {
		if b, err := mapPrivate(roundUp(n*8, HugePage)); err == nil {
			_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // smaller pages do as well
			w := &Words{words: ScalarsOf[uint64](b)}
			w.unmaps = runtime.AddCleanup(w, func(b []byte) { _ = Unmap(b) }, b)
			return w
		}
	}
	return &Words{words: make([]uint64, n)}
}

// Slice returns all of them.
func (w *Words) Slice() []uint64 { return w.words }

// Keep leaves them for good to those that have slices of them.
func (w *Words) Keep() { w.unmaps.Stop() }
