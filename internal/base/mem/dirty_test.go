package mem

import (
	"bytes"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// BenchmarkDirty tells what it takes one core to write what another one has read, and that one to read it, with
// Dirty behind the reading and without.
func BenchmarkDirty(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("two cores are needed")
	}
	for _, dirties := range []bool{false, true} {
		for _, n := range []int{4 << 10, 16 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("dirties=%v/%d", dirties, n), func(b *testing.B) { handOver(b, n, dirties) })
		}
	}
}

// handOver has one core write n bytes b.N times, which another one reads each time.
func handOver(b *testing.B, n int, dirties bool) {
	var shared, source, sink []byte
	for _, m := range []*[]byte{&shared, &source, &sink} {
		var err error
		if *m, err = mapPrivate(n); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = Unmap(*m) })
		copy(*m, make([]byte, n)) // its pages are there
	}
	var turn atomic.Uint64
	var reads time.Duration
	over := make(chan struct{})
	go func() {
		defer close(over)
		bind(b, 1)
		for i := range uint64(b.N) {
			for turn.Load() != 2*i+1 {
			}
			start := time.Now()
			CopyAcross(sink, shared)
			if dirties {
				Dirty(shared)
			}
			reads += time.Since(start)
			turn.Store(2*i + 2)
		}
	}()
	bind(b, 0)
	var writes time.Duration
	for i := range uint64(b.N) {
		start := time.Now()
		CopyAcross(shared, source)
		writes += time.Since(start)
		turn.Store(2*i + 1)
		for turn.Load() != 2*i+2 {
		}
	}
	<-over
	b.ReportMetric(float64(writes)/float64(b.N), "ns/write")
	b.ReportMetric(float64(reads)/float64(b.N), "ns/read")
}

// bind ties the thread of the caller to a processor, as far as the machine has it.
func bind(b *testing.B, processor int) {
	runtime.LockOSThread() // until the goroutine ends, and the thread with it
	var set unix.CPUSet
	set.Set(processor)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		b.Log(err)
	}
}
