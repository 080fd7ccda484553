//go:build !race

package mpi_test

const slow = false
