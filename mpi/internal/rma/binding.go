package rma

// Binding says which of several ghosts of a host serves which Put or Get on memory of its ranks.
// Accumulates and locks are always for the one that Ghosts.Of tells, in whose order they are.
type Binding uint8

// The bindings.
const (
	ByRank       Binding = iota // the one of the rank
	BySegment                   // the one that has this part of the memory of the host
	ByTurn                      // one after the other
	ByOperations                // the one that this rank has asked for the fewest since the last flush
	ByBytes                     // the one that it has moved the fewest bytes with since then
)
