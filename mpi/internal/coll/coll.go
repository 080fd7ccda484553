// Package coll holds the algorithms of collective operations, one to a file,
// and the tables that choose among them.
//
// An algorithm is a function that writes down what one rank does, as a
// [Schedule]: messages, reductions and copies, in rounds. It does nothing yet.
// The same schedule is then run to its end ([Schedule.Run]), or advanced
// whenever messages have moved ([Schedule.Advance]), or run again and again.
//
// Costs are given in the usual terms: a is the latency of a message, b the time
// of a byte, g the time to reduce a byte, n the bytes of a vector and p the
// number of ranks (Thakur, Rabenseifner, Gropp: Optimization of Collective
// Communication Operations in MPICH, 2005).
//
// Files: schedule.go what an algorithm writes, run.go how it is run, team.go
// which ranks take part, hosts.go which of them share a host, tables.go how one is chosen.
// For every collective there is a file with its table, and one for each algorithm.
package coll

import "math/bits"

// powerBelow returns the largest power of two that is not above n.
func powerBelow(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// split returns where part i of n elements in p parts begins. Parts differ by
// one element at most.
func split(n, p, i int) int { return int(uint64(n) * uint64(i) / uint64(p)) }
