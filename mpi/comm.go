package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Comm is a communicator: a group of ranks and a context of its own, in which
// messages do not meet those of other communicators.
type Comm struct {
	p       *Proc
	ep      *p2p.Endpoint
	context uint32 // of messages; that of collectives is one higher
	rank    int
	size    int
	coll    collective
}

func newComm(p *Proc, context uint32) *Comm {
	c := &Comm{p: p, ep: p.ep, context: context, rank: p.job.Rank(), size: p.job.Size()}
	c.coll.c = c
	return c
}

// Rank returns the number of this rank in the communicator (MPI_Comm_rank).
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks (MPI_Comm_size).
func (c *Comm) Size() int { return c.size }

// Proc returns the process that the communicator belongs to.
func (c *Comm) Proc() *Proc { return c.p }

// sendOK reports whether dest and tag name somebody to send to. It is false
// for ProcNull too.
func (c *Comm) sendOK(dest, tag int) bool {
	return uint(dest) < uint(c.size) && uint(tag) <= MaxTag
}

// checkSend says what is wrong with the arguments of a send; nil for ProcNull.
func (c *Comm) checkSend(op string, dest, tag int) error {
	if dest != ProcNull && (dest < 0 || dest >= c.size) {
		return fail(ErrRank, op, "destination %d is no rank of this communicator, which has ranks 0 to %d", dest, c.size-1)
	}
	return checkTag(op, tag)
}

func checkTag(op string, tag int) error {
	if tag < 0 || tag > MaxTag {
		return fail(ErrTag, op, "tag %d; tags are 0 to %d", tag, MaxTag)
	}
	return nil
}

// checkRecv says what is wrong with the arguments of a receive.
func (c *Comm) checkRecv(op string, source, tag int) error {
	if source != AnySource && source != ProcNull && (source < 0 || source >= c.size) {
		return fail(ErrRank, op, "source %d is no rank of this communicator, which has ranks 0 to %d; from any rank is AnySource", source, c.size-1)
	}
	if tag != AnyTag {
		return checkTag(op, tag)
	}
	return nil
}

// recvOK reports whether source and tag name somebody to receive from. It is
// false for ProcNull too.
func (c *Comm) recvOK(source, tag int) bool {
	return (uint(source) < uint(c.size) || source == AnySource) && (uint(tag) <= MaxTag || tag == AnyTag)
}

// out is the envelope of a message from this rank.
func (c *Comm) out(tag int) match.Envelope {
	return match.Envelope{Context: c.context, Source: int32(c.rank), Tag: int32(tag)}
}

// in is the envelope of a receive.
func (c *Comm) in(source, tag int) match.Envelope {
	if tag == AnyTag {
		tag = match.Any
	}
	return match.Envelope{Context: c.context, Source: int32(source), Tag: int32(tag)}
}
