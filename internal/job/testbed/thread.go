package testbed

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// onNewThread runs fn on a thread that ends afterwards, so that fn may change
// the thread's namespace. When fn ends its goroutine (as testing.T.Fatal does)
// the caller's ends too.
func onNewThread(fn func() error) error {
	done := make(chan struct{})
	returned := false
	var err error
	go func() {
		defer close(done)
		runtime.LockOSThread() // without Unlock: Go ends the thread with the goroutine
		if unix.Gettid() == unix.Getpid() {
			// The main thread would never end but keep its namespace, and
			// /proc/self/ns would show it. Hold it back, and try another.
			defer runtime.UnlockOSThread()
			err = onNewThread(fn)
		} else {
			err = fn()
		}
		returned = true
	}()
	<-done
	if !returned {
		runtime.Goexit()
	}
	return err
}
