package mpi

import (
	"bytes"
	"testing"
)

// What a peer tells about its partitions is understood as it was meant, or refused.
func FuzzReadWord(f *testing.F) {
	f.Add(word{tag: 5, first: tagWord + 1, n: 4, bytes: 400}.encode())
	f.Add(word{tag: MaxTag, first: tagWord + tagsOfParts, n: 1}.encode())
	f.Add(word{tag: 1, first: tagWord, n: 1}.encode())
	f.Add(word{tag: 1, first: tagWord + tagsOfParts, n: 2}.encode())
	f.Add(word{tag: 1, first: tagWord + 1, n: 3, bytes: 4}.encode())
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, ok := readWord(b)
		if !ok {
			return
		}
		if !bytes.Equal(w.encode(), b) {
			t.Errorf("%x was read as %+v", b, w)
		}
		if last := w.first + int32(w.n) - 1; w.n < 1 || w.first <= tagWord || last > tagWord+tagsOfParts || w.bytes%uint64(w.n) != 0 {
			t.Errorf("accepted %+v", w)
		}
	})
}

func TestReadWord(t *testing.T) {
	for what, tt := range map[string]struct {
		w    word
		want bool
	}{
		"the least":  {word{first: tagWord + 1, n: 1}, true},
		"the last":   {word{tag: MaxTag, first: tagWord + tagsOfParts, n: 1, bytes: 1 << 40}, true},
		"a word":     {word{first: tagWord, n: 1}, false},
		"too many":   {word{first: tagWord + 2, n: tagsOfParts}, false},
		"none":       {word{first: tagWord + 1}, false},
		"uneven":     {word{first: tagWord + 1, n: 3, bytes: 4}, false},
		"before all": {word{first: -1, n: 1}, false},
	} {
		if got, ok := readWord(tt.w.encode()); ok != tt.want || ok && got != tt.w {
			t.Errorf("%s: %+v, %v", what, got, ok)
		}
	}
}
