//go:build race

package mpi_test

// slow says that the race detector is on, which makes tests ten times slower.
const slow = true
