//go:build race

package verbs

// Slow says that the race detector is on, which makes tests ten times slower
// and finds little in the simulator: a world runs in one goroutine. Tests then
// take fewer seeds, and fewer places to fail at.
const Slow = true
