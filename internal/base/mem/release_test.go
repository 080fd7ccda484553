package mem

import (
	"runtime"
	"testing"
)

// Who sees a word that StoreRelease has stored sees what was stored before it, and nothing beside the
// word is written.
func TestStoreRelease(t *testing.T) {
	const rounds = 10000
	memory := make([]uint64, 64)
	data, word, back := &memory[0], Word64(BytesOf(memory[20:])), Word64(BytesOf(memory[40:]))
	go func() {
		for i := uint64(1); i <= rounds; i++ {
			*data = i
			StoreRelease(word, i)
			for back.Load() < i {
				Relax()
				runtime.Gosched()
			}
		}
	}()
	for i := uint64(1); i <= rounds; i++ {
		for word.Load() < i {
			Relax()
			runtime.Gosched()
		}
		if *data != i {
			t.Fatalf("behind word %d there is %d", i, *data)
		}
		StoreRelease(back, i)
	}
	for i, v := range memory {
		if v != 0 && i != 0 && i != 20 && i != 40 {
			t.Errorf("word %d is %d", i, v)
		}
	}
}
