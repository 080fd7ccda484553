//go:build race

package bench

// slow says that the race detector is on, which makes tests ten times slower.
const slow = true
