package mem

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, n := range []int{0, 1, HugePage/8 - 1, 2 * HugePage / 8, 3*HugePage/8 + 1} {
		words := NewWords(n)
		if w := words.Slice(); len(w) < n || slices.ContainsFunc(w, func(v uint64) bool { return v != 0 }) {
			t.Errorf("%d words: not %d that are 0", len(w), n)
		}
		runtime.KeepAlive(words)
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the kernel has no huge pages of memory without a file: ", err)
	}
	words := NewWords(HugePage/8 + 1)
	defer runtime.KeepAlive(words)
	w := words.Slice()
	if at := AddressOf(BytesOf(w)); at%HugePage != 0 || len(w) != 2*HugePage/8 {
		t.Errorf("%d words at %#x do not fill huge pages", len(w), at)
	}
	if at := AddressOf(BytesOf(w[len(w)/2:])); !strings.Contains(flagsAt(t, at), " hg") {
		t.Error("the kernel was not asked for huge pages")
	}
}

// flagsAt returns what the kernel says of the mapping at an address (proc_pid_smaps(5)).
func flagsAt(t *testing.T, at uint64) string {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			in = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && in {
			return flags
		}
	}
	return ""
}

// TestWords_Keep writes where only a slice is left.
func TestWords_Keep(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	w := NewWords(wordsHuge / 8)
	left := w.Slice()
	w.Keep()
	w = nil
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
	left[0] = 1
}
