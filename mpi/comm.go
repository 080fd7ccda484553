package mpi

import (
	"slices"
	"sync/atomic"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Comm is a communicator: a group of ranks and a context of its own, in which
// messages do not meet those of other communicators. An intercommunicator has
// two groups: ranks of one send to ranks of the other.
type Comm struct {
	p       *Proc
	ep      *p2p.Endpoint
	context uint32 // of messages; that of collectives is one higher
	rank    int
	size    int     // of the group that ranks of messages are of: the remote one of an intercommunicator
	world   []int32 // number in World of the ranks of that group; nil: they are the same
	index   []int32 // the other way round, by number in World
	local   *Group  // of an intercommunicator; else nil
	coll    collective
	within  *Comm // intercommunicator: the ranks of the local group among themselves
	name    string
	freed   bool                       // or not there yet
	coming  bool                       // it is not there yet: see Idup
	exact   bool                       // mpi_assert_exact_length
	noAny   struct{ source, tag bool } // mpi_assert_no_any_source, mpi_assert_no_any_tag
	buffer  sendBuffer
	agrees  bool // an agreement is under way
	attrs   attributes[*Comm]
	handler atomic.Pointer[Errhandler]
	hints   *Info
	stats   CommStats // of watch
	noted   bool      // by watch
	topo    any       // *cart, *graph, *distGraph, or nil
	session *Session  // that it is of; nil: the world model
	held    int       // persistent operations that were not freed
}

// newWorld makes the communicator of all ranks.
func newWorld(p *Proc) *Comm {
	c := &Comm{p: p, ep: p.ep, rank: p.job.Rank(), size: p.job.Size(), name: "MPI_COMM_WORLD"}
	c.coll.c = c
	c.register()
	return c
}

// selfContext is the context of Self, on all ranks.
const selfContext = 2

// newSelf makes the communicator of this rank alone.
func newSelf(p *Proc) *Comm {
	c := p.newComm(selfContext, p.alone())
	c.name = "MPI_COMM_SELF"
	return c
}

// alone returns the group of this rank.
func (p *Proc) alone() *Group { return &Group{world: []int32{int32(p.rank)}} }

// newComm makes a communicator of a group that this rank is in.
func (p *Proc) newComm(context uint32, g *Group) *Comm {
	c := p.view(context, g)
	c.register()
	return c
}

// view makes what looks like a communicator of a group, with a context that
// another one has.
func (p *Proc) view(context uint32, g *Group) *Comm {
	c := &Comm{p: p, ep: p.ep}
	c.become(context, g)
	return c
}

// become makes c a view of a group.
func (c *Comm) become(context uint32, g *Group) {
	c.context, c.rank, c.session = context, g.rankOf(int32(c.p.rank)), g.session
	c.world, c.index = nil, nil
	c.address(g)
	c.coll.c = c
}

// address makes g the group that ranks of messages are of.
func (c *Comm) address(g *Group) {
	c.size = g.Size()
	for r, w := range g.world {
		if int32(r) == w {
			continue
		}
		c.world = g.world
		c.index = slices.Repeat([]int32{-1}, c.p.job.Size())
		for r, w := range g.world {
			c.index[w] = int32(r)
		}
		return
	}
}

// Rank returns the number of this rank in the communicator, in the local group
// of an intercommunicator (MPI_Comm_rank).
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks, in the local group of an intercommunicator
// (MPI_Comm_size).
func (c *Comm) Size() int {
	if c.local != nil {
		return c.local.Size()
	}
	return c.size
}

// Proc returns the process that the communicator belongs to.
func (c *Comm) Proc() *Proc { return c.p }

// at returns the number in World of a rank that messages go to or come from.
func (c *Comm) at(rank int) int {
	if c.world == nil {
		return rank
	}
	return int(c.world[rank])
}

// from is the other way round. Ranks that are none stay what they are.
func (c *Comm) from(world int32) int {
	if c.world == nil || world < 0 {
		return int(world)
	}
	return int(c.index[world])
}

// sendOK reports whether dest and tag name a rank to send to. It is false
// for ProcNull too.
func (c *Comm) sendOK(dest, tag int) bool {
	return c != nil && uint(dest) < uint(c.size) && uint(tag) <= MaxTag && !c.freed
}

// live reports that the communicator was freed.
func (c *Comm) live(op string) error {
	switch {
	case c != nil && c.coming:
		return fail(ErrComm, op, "the communicator is not there yet: wait for the request that came with it")
	case c == nil || c.freed:
		return fail(ErrComm, op, "the communicator was freed, or is none")
	}
	return nil
}

// checkSend says what is wrong with the arguments of a send; nil for ProcNull.
func (c *Comm) checkSend(op string, dest, tag int) error {
	if err := c.live(op); err != nil {
		return err
	}
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
	if err := c.live(op); err != nil {
		return err
	}
	if source != AnySource && source != ProcNull && (source < 0 || source >= c.size) {
		return fail(ErrRank, op, "source %d is no rank of this communicator, which has ranks 0 to %d; from any rank is AnySource", source, c.size-1)
	}
	if source == AnySource && c.noAny.source {
		return fail(ErrRank, op, "AnySource, where %s has said that there is none", assertNoAnySource)
	}
	if tag == AnyTag && c.noAny.tag {
		return fail(ErrTag, op, "AnyTag, where %s has said that there is none", assertNoAnyTag)
	}
	if tag != AnyTag {
		return checkTag(op, tag)
	}
	return nil
}

// recvOK reports whether source and tag name a rank to receive from. It is
// false for ProcNull too.
func (c *Comm) recvOK(source, tag int) bool {
	return c != nil && (uint(source) < uint(c.size) || source == AnySource && !c.noAny.source) &&
		(uint(tag) <= MaxTag || tag == AnyTag && !c.noAny.tag) && !c.freed
}

// out is the envelope of a message from this rank.
func (c *Comm) out(tag int) match.Envelope {
	return match.Envelope{Context: c.context, Source: int32(c.p.rank), Tag: int32(tag)}
}

// in is the envelope of a receive.
func (c *Comm) in(source, tag int) match.Envelope {
	if tag == AnyTag {
		tag = match.Any
	}
	if source >= 0 {
		source = c.at(source)
	}
	return match.Envelope{Context: c.context, Source: int32(source), Tag: int32(tag)}
}
