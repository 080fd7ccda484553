package capi

import (
	"runtime"
	"syscall"
)

// stayAwake keeps the first call after a long computation short: while no goroutine runs, the
// monitor of Go's runtime falls asleep, and waking it up takes each call from C 7 us. A thread
// that is forever in a short system call, of which the runtime does not know that it blocks,
// keeps it awake, and costs next to no time. A rank that is bound to one processor has one P,
// which that thread has.
func stayAwake() {
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	go func() {
		runtime.LockOSThread()
		for nap := (syscall.Timespec{Nsec: 1e6}); ; {
			rawNanosleep(&nap)
		}
	}()
}
