package p2p

import (
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/agree"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// groups has the communicators.
type groups struct {
	ep     *Endpoint
	list   []*group // by context/2
	others Counts   // of contexts that have none
}

// group is what an endpoint knows of a communicator: which ranks are in it, and whether it
// still works. It is found by its context, which messages of the user's have, and
// with one more those of collectives.
type group struct {
	counts  Counts
	members []int32 // ranks of World, in their order; nil: not registered yet
	parts   []part
	lost    []int32 // members that are lost, in the order in which this rank has learned of it
	acked   int     // how many of these the user knows of
	revoked bool
	left    bool // the user is done with it, and others may not be
	machine *agree.Machine
	heard   map[int32][]byte // pieces of messages of the machine, by source
	early   []early          // what came before Register
	active  ActiveHandler    // or nil
}

// SeqTagMax is the highest tag that is the number of a collective of all members, in
// the order in which these are called.
const SeqTagMax = 1<<29 - 1

// PartTag is in the tags of collectives of a part of the members.
const PartTag = 1 << 30

// Tags from PairTag to PairTagMax in the context of collectives are of messages that
// two members exchange, and no other is needed for.
const (
	PairTag    = 3 << 28
	PairTagMax = 1<<30 - 1
)

// part is some members that do a collective among themselves, told from others by
// its tag.
type part struct {
	tag     int32
	members []int32
}

// early is a message about a communicator that others have made already.
type early struct {
	h    header
	body []byte
}

func (g *group) has(rank int32) bool {
	_, found := slices.BinarySearch(g.members, rank)
	return found
}

// Counts are the messages that were sent in a communicator, those of collectives
// included.
type Counts struct {
	Eager, Rendezvous uint64 // whole, and after the receiver was asked
	Near              uint64 // of the eager ones, those through shared memory
}

// counted is a message that was sent eagerly.
func (gs *groups) counted(context uint32, near bool) {
	gs.ep.Stats.Eager++
	c := gs.countsOf(context)
	c.Eager++
	if near {
		gs.ep.Stats.Near++
		c.Near++
	}
}

// countsOf returns the counters of a context; those that have no group share some.
func (gs *groups) countsOf(context uint32) *Counts {
	if i := int(context / 2); i < len(gs.list) && gs.list[i] != nil {
		return &gs.list[i].counts
	}
	return &gs.others
}

// groupOf returns the group that messages with an envelope belong to, or nil.
func (gs *groups) groupOf(env match.Envelope) *group {
	if i := int(env.Context / 2); i < len(gs.list) {
		return gs.list[i]
	}
	return nil
}

// at returns the group of a context, made now if there is none.
func (gs *groups) at(context uint32) *group {
	for int(context/2) >= len(gs.list) {
		gs.list = append(gs.list, nil)
	}
	g := &gs.list[context/2]
	if *g == nil {
		*g = &group{}
	}
	return *g
}

// register is Register for those inside.
func (gs *groups) register(context uint32, members []int32, agreed int) {
	g := gs.at(context)
	g.members = slices.Clone(members)
	slices.Sort(g.members)
	for _, rank := range gs.ep.failures.losses {
		if g.has(rank) {
			g.lost = append(g.lost, rank)
		}
	}
	gs.newMachine(context, g, agreed)
	waiting := g.early
	g.early = nil
	for i := range waiting {
		if e := &waiting[i]; gs.ep.peers[e.h.source].err == nil {
			gs.arrivedAbout(&e.h, e.body)
		}
	}
}

// unregister is Inside.Unregister.
func (gs *groups) unregister(context uint32, all bool) {
	if all {
		gs.list[context/2] = nil
		return
	}
	gs.at(context).left = true
	gs.ep.failures.impaired = true
	gs.ep.match.purge()
}

// registerPart is RegisterPart for those inside.
func (gs *groups) registerPart(context uint32, tag int32, members []int32) (end func()) {
	g := gs.at(context)
	g.parts = append(g.parts, part{tag, members})
	return func() {
		g.parts = slices.DeleteFunc(g.parts, func(p part) bool { return p.tag == tag })
	}
}

// broken returns why messages with an envelope cannot go on any more, whichever
// rank is at the other end, or nil.
func (fs *failures) broken(env match.Envelope) error {
	g := fs.ep.groups.groupOf(env)
	switch {
	case fs.over != nil:
		return fs.over
	case g == nil:
		return nil
	case g.revoked:
		return &Error{Code: Revoked, Peer: -1, Detail: "a rank has revoked the communicator: Shrink makes one of those that are left"}
	}
	if collective(env.Context) {
		for _, rank := range g.lost {
			if g.needs(rank, env.Tag) {
				return fs.ep.peers[rank].err
			}
		}
	}
	return nil
}

// needs reports whether collectives with a tag need a member.
func (g *group) needs(rank, tag int32) bool {
	if tag >= PairTag && tag <= PairTagMax {
		return false
	}
	p := g.part(tag)
	return p == nil || slices.Contains(p.members, rank)
}

// part returns the members that do collectives with a tag, or nil for all members.
func (g *group) part(tag int32) *part {
	for i := range g.parts {
		if g.parts[i].tag == tag {
			return &g.parts[i]
		}
	}
	return nil
}

// unwanted reports whether no receive here takes a message any more: as broken
// says, or because the user is done with the communicator, or because the source
// is not in it: there it was made, with a context that is free here, and here that
// has failed.
func (fs *failures) unwanted(env match.Envelope) bool {
	g := fs.ep.groups.groupOf(env)
	switch {
	case g == nil || g.members == nil:
		return false
	case g.left || !g.has(env.Source):
		return true
	case !g.revoked && env.Tag&PartTag != 0 && g.part(env.Tag) == nil:
		return false // perhaps the part is not registered yet
	}
	return fs.broken(env) != nil
}

// interruption returns why waiting for r may be in vain: it is a receive from any
// source, and a loss that the user does not know of was perhaps that of the source.
func (fs *failures) interruption(r *Request) error {
	if r.state != posted {
		return nil
	}
	return fs.doubt(r.entry.Envelope)
}

// doubt is interruption for an envelope.
func (fs *failures) doubt(env match.Envelope) error {
	g := fs.ep.groups.groupOf(env)
	if env.Source != match.Any || g == nil || g.acked >= len(g.lost) {
		return nil
	}
	rank := g.lost[g.acked]
	return &Error{Code: MayBeLost, Peer: int(rank), Detail: fmt.Sprintf(
		"rank %d, from which the message may have been to come, is lost: receiving from any goes on after AckFailed", rank), Err: fs.ep.peers[rank].err}
}

// acknowledge is Acknowledge for those inside.
func (gs *groups) acknowledge(context uint32, n int) {
	g := gs.at(context)
	g.acked = max(g.acked, min(n, len(g.lost)))
}

func (gs *groups) revoke(context uint32, g *group) {
	ep := gs.ep
	g.revoked, ep.failures.impaired = true, true
	ep.failures.failRequests(ep.failures.overtaken)
	ep.match.purge()
	gs.spreadRevocation(context, g)
}

func (gs *groups) spreadRevocation(context uint32, g *group) {
	gs.ep.failures.neighbours(g.members, func(to int) { gs.ep.out.tell(to, header{kind: kindRevoke, context: context}, nil) })
}

// arrivedAbout handles a peer's word about a communicator: that it is revoked, or a
// piece of a message of its agreement.
func (gs *groups) arrivedAbout(h *header, body []byte) {
	switch g := gs.at(h.context); {
	case g.members == nil:
		g.early = append(g.early, early{*h, slices.Clone(body)})
	case !g.has(h.source):
		gs.ep.Stats.Stale++
	case h.kind == kindRevoke && !g.revoked:
		gs.revoke(h.context&^1, g)
	case h.kind == kindRevoke:
	default:
		gs.arrivedAgree(g, h, body)
	}
}
