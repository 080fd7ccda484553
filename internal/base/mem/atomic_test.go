package mem

import (
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Memory that is no word is refused, and left alone.
func TestLoad64_alignment(t *testing.T) {
	words := []uint64{1, 2, 3}
	b := BytesOf(words)
	for at := range 17 {
		v, ok := Load64(b[at:])
		if ok != (at%8 == 0) || ok && v != words[at/8] {
			t.Errorf("at %d: %d, %v", at, v, ok)
		}
	}
	if !CompareAndSwap64(b[8:16], 2, 7) || CompareAndSwap64(b[8:16], 2, 9) || words[0] != 1 || words[1] != 7 || words[2] != 3 {
		t.Errorf("after a swap from 2 to 7 and a vain one: %v", words)
	}
}

// Nothing is lost among threads that use these and sync/atomic, through two
// mappings of the same memory as two processes have them.
func TestCompareAndSwap64_amongThreads(t *testing.T) {
	a := newArena(t, Config{Size: 4096, SmallPages: true})
	fd, err := unix.Dup(a.FD())
	if err != nil {
		t.Fatal(err)
	}
	other, err := Map(fd, a.Len())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	here, there := a.At(64, 8), other.At(64, 8)
	const each = 20000
	add := func(b []byte) {
		for {
			if old, _ := Load64(b); CompareAndSwap64(b, old, old+1) {
				return
			}
		}
	}
	increment := []func(){
		func() { add(here) },
		func() { add(there) },
		func() { atomic.AddUint64(&ScalarsOf[uint64](there)[0], 1) },
	}
	var wg sync.WaitGroup
	for _, inc := range increment {
		wg.Go(func() {
			for range each {
				inc()
			}
		})
	}
	wg.Wait()
	if got, _ := Load64(here); got != uint64(each*len(increment)) {
		t.Errorf("%d of %d increments were counted", got, each*len(increment))
	}
}
