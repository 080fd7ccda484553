package ring

import (
	"runtime"
	"sync"
	"testing"
)

func TestMPSC_inOrder(t *testing.T) {
	q := NewMPSC[int](4)
	if _, ok := q.Pop(); ok {
		t.Fatal("a value in an empty queue")
	}
	next := 0
	for i := 0; i < 100; {
		for q.Push(i) {
			i++
		}
		if i-next != 4 {
			t.Fatalf("%d values fit into 4 slots", i-next)
		}
		for range 1 + i%4 {
			v, ok := q.Pop()
			if !ok || v != next {
				t.Fatalf("Pop = %d, %v; want %d", v, ok, next)
			}
			next++
		}
	}
}

func TestMPSC_keepsNoGarbage(t *testing.T) {
	q := NewMPSC[*int](2)
	q.Push(new(int))
	q.Pop()
	for i := range q.slots {
		if q.slots[i].value != nil {
			t.Error("a popped pointer is still in the queue")
		}
	}
}

func TestNewMPSC_panics(t *testing.T) {
	for _, n := range []int{-4, 0, 1, 3, 100} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("capacity %d was accepted", n)
				}
			}()
			NewMPSC[int](n)
		}()
	}
}

func TestMPSC_manyProducers(t *testing.T) {
	const producers, each = 8, 5000
	type item struct{ producer, number int }
	q := NewMPSC[item](16)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				for !q.Push(item{p, i}) {
					runtime.Gosched()
				}
			}
		})
	}
	var next [producers]int
	for got := 0; got < producers*each; {
		v, ok := q.Pop()
		if !ok {
			runtime.Gosched()
			continue
		}
		if v.number != next[v.producer] {
			t.Fatalf("producer %d: number %d came when %d was due", v.producer, v.number, next[v.producer])
		}
		next[v.producer]++
		got++
	}
	wg.Wait()
	if _, ok := q.Pop(); ok {
		t.Error("more values came out than went in")
	}
}

func TestAllocs_MPSC(t *testing.T) {
	q := NewMPSC[*int](8)
	v := new(int)
	if n := testing.AllocsPerRun(100, func() { q.Push(v); q.Pop() }); n != 0 {
		t.Errorf("%v allocations per value", n)
	}
}

func BenchmarkMPSC_empty(b *testing.B) {
	q := NewMPSC[*int](8)
	for b.Loop() {
		q.Pop()
	}
}
