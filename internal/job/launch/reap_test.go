package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What a process says about itself may be of any length.
func TestReadSome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environ")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]int{10: 10, 100: 100, 1000: 100} {
		if b, err := readSome(path, limit); err != nil || len(b) != want {
			t.Errorf("%d bytes of up to %d: %v", len(b), limit, err)
		}
	}
}
