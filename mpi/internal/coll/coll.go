// Package coll holds the algorithms of collective operations, one to a file,
// and the tables that choose among them.
//
// An algorithm is plain blocking code over a [Transport]: what one rank does,
// from its point of view. Costs are given in the usual terms: a is the latency
// of a message, b the time of a byte, g the time to reduce a byte, n the bytes
// of a vector and p the number of ranks (Thakur, Rabenseifner, Gropp:
// Optimization of Collective Communication Operations in MPICH, 2005).
package coll

import "math/bits"

// Transport is what an algorithm needs of point-to-point messages. They match
// in order between two ranks, and only with messages of the same communicator's
// collectives.
type Transport interface {
	Rank() int
	Size() int
	// Send sends b. It may wait for the receive.
	Send(b []byte, to int) error
	// Recv fills all of b. Another length is an error: the ranks disagree
	// about what they are doing.
	Recv(b []byte, from int) error
	// Sendrecv does both at once.
	Sendrecv(out []byte, to int, in []byte, from int) error
	// Scratch returns n bytes for 8-byte scalars that stay the transport's.
	// They are valid until the next call.
	Scratch(n int) []byte
}

// rule is a row of a selection table: the algorithm for vectors up to a size,
// on a number of ranks from ranks on. The first row that fits is taken; the
// last one fits all.
type rule[A any] struct {
	upTo  int // bytes, or 0 for any size
	ranks int
	use   A
}

func choose[A any](table []rule[A], bytes, ranks int) A {
	for _, r := range table {
		if (r.upTo == 0 || bytes <= r.upTo) && ranks >= r.ranks {
			return r.use
		}
	}
	return table[len(table)-1].use
}

// powerBelow returns the largest power of two that is not above n.
func powerBelow(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// split returns where part i of n elements in p parts begins. Parts differ by
// one element at most.
func split(n, p, i int) int { return int(uint64(n) * uint64(i) / uint64(p)) }
