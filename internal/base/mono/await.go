package mono

import "time"

// Await returns what c brings, or false if it has brought nothing for d and is open.
// The time in which this process stood still (stopped, or kept from the processors)
// counts as a tenth of d at most: a process that could not look has not waited in vain, and
// those it waits for may have stood still with it.
func Await[T any](c <-chan T, d Duration) (v T, came bool) {
	const parts = 10
	for range parts {
		select {
		case v = <-c:
			return v, true
		case <-time.After(d / parts):
		}
	}
	return v, false
}
