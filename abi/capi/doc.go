// Package capi is what the functions of MPI's C interface do, once for both binary
// interfaces: that of the MPI 5.0 standard and, with build tag mpich, MPICH's. The generator
// in abi/gen makes C functions and Go entry points, from abi/functions.txt, that call the
// exported functions of this package; docs/ABI.md says how to add one.
//
// Handles, and all other words of the program that need not be addresses, are integers here:
// a small integer in a variable of a pointer type ends a Go program.
package capi

//go:generate go run ../gen -root ../.. -constants
