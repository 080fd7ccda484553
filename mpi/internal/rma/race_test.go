//go:build race

package rma

// slow says that the race detector is on, which makes tests ten times slower.
const slow = true
