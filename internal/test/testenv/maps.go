package testenv

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// HugeKiB returns how many KiB of the first mapping of this process with that name, which is shared memory, lie on huge pages.
func HugeKiB(t testing.TB, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, of, _ := strings.Cut(string(text), name)
	_, of, _ = strings.Cut(of, "ShmemPmdMapped:")
	if _, err := fmt.Sscan(of, &n); err != nil {
		t.Fatalf("%s is not mapped: %v", name, err)
	}
	return n
}
