package bench

import "runtime"

// floating runs the bursts of a test on a goroutine that is not bound to the
// thread of its end. TCP in user space shares the processor with goroutines of
// its own: between goroutines that are free to move the runtime switches in a
// fraction of a microsecond, away from one that is locked to a thread only by
// waking another. With one processor for all of them none is ever woken: half
// the latency. That is for a process with one end in it: two that spin would
// keep each other waiting.
type floating struct {
	Bench
	alone bool
}

// Run implements Bench.
func (f floating) Run(b Burst, rec *Recorder) error {
	if f.alone {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	done := make(chan error)
	go func() { done <- f.Bench.Run(b, rec) }()
	return <-done
}
