package capi

import (
	"runtime"
	"syscall"
)

// stayAwake keeps the first call after a long computation short: while no goroutine runs, the
// monitor of Go's runtime falls asleep, and waking it up takes each call from C 7 us. A thread
// that is forever in a short system call, of which the runtime does not know that it blocks,
// keeps it awake, and costs little: a fifth of the time of short collectives with four ranks to a processor where the
// call took 1 ms, and half of the first calls 1.4 us more where it took 8. That thread has a P for ever, and one more than
// there are processors is idle: while one is, the monitor leaves a thread that computes in C
// the P of its last call for 10 ms, and without it would take the P away at once.
func stayAwake() {
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)) + 1)
	go func() {
		runtime.LockOSThread()
		for pause := (syscall.Timespec{Nsec: 4e6}); ; {
			rawNanosleep(&pause)
		}
	}()
}
