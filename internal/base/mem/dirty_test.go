package mem

import (
	"bytes"
	"testing"
)

func TestDirty(t *testing.T) {
	b, err := mapPrivate(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = Unmap(b) }()
	for i := range b {
		b[i] = byte(i)
	}
	want := bytes.Clone(b)
	for _, r := range [][2]int{{5, 5}, {0, 1}, {0, 64}, {63, 65}, {4095, 4096}, {0, 4096}} {
		Dirty(b[r[0]:r[1]])
	}
	if !bytes.Equal(b, want) {
		t.Error("it has changed memory")
	}
	if n := testing.AllocsPerRun(100, func() { Dirty(b[:128]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
