package mpi

import "github.com/xwarp/xwarp/mpi/internal/rma"

// GhostConfig says what ghosts do.
type GhostConfig struct {
	Failure GhostFailure
	Binding GhostBinding // of windows whose hint ghost_binding says nothing else
}

// GhostFailure says what the end of a ghost is, before that of the ranks.
type GhostFailure int

// What it may be.
const (
	GhostAbort    GhostFailure = iota // the end of the job
	GhostFallback                     // ranks serve their windows themselves from the next Fence on
)

// A fence is where ranks can take over what a ghost has served: all of them are there, none has
// a lock or operations under way, and a rank that has had some that the ghost may or may not
// have done was told so (by this Fence, or before). What is known of the loss may differ, so they
// tell one another: see Win.exchange.

// fallsBack reports whether ranks go on without a ghost that is lost.
func (p *Proc) fallsBack() bool { return p.ghosts != nil && p.async.Ghosts.Failure == GhostFallback }

// GhostBinding says which of several ghosts of a host serves which Put or Get on the memory of
// its ranks; locks of a rank are always for the same one, and so are accumulates, but where all ranks of a
// window bind by segment.
type GhostBinding = rma.Binding

// The bindings.
const (
	GhostByRank       = rma.ByRank       // that of the rank
	GhostBySegment    = rma.BySegment    // that of this part of the memory of the host
	GhostByTurn       = rma.ByTurn       // one after the other
	GhostByOperations = rma.ByOperations // that with the fewest operations of the origin since its last flush
	GhostByBytes      = rma.ByBytes      // that with the fewest bytes
)
