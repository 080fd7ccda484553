//go:build race

package check

// slow says that the race detector is on, which makes tests ten times slower
// and finds little: a world runs in one goroutine.
const slow = true
