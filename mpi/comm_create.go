package mpi

import (
	"cmp"
	"slices"
)

// Group returns the ranks of the communicator, of the local group of an
// intercommunicator (MPI_Comm_group).
func (c *Comm) Group() *Group {
	if c.local != nil {
		return c.local
	}
	return c.RemoteGroup()
}

// RemoteGroup returns the ranks that messages go to (MPI_Comm_remote_group); of
// an intracommunicator its own.
func (c *Comm) RemoteGroup() *Group {
	world := slices.Clone(c.world)
	if world == nil {
		world = make([]int32, c.size)
		for i := range world {
			world[i] = int32(i)
		}
	}
	return &Group{world: world, session: c.session}
}

// Compare compares two communicators (MPI_Comm_compare).
func (c *Comm) Compare(other *Comm) Comparison {
	if c == other {
		return Ident
	}
	if c == nil || other == nil || c.Inter() != other.Inter() {
		return Unequal
	}
	r := c.Group().Compare(other.Group())
	if c.Inter() {
		r = max(r, c.RemoteGroup().Compare(other.RemoteGroup()))
	}
	if r == Ident {
		r = Congruent
	}
	return r
}

// Create makes a communicator of a part of the ranks (MPI_Comm_create). All
// ranks of c call it, those of one group with this group; groups must not
// overlap. Those that are in no group give GroupEmpty, and get nil. Of an
// intercommunicator each side gives a part of its own group, and what is made is an
// intercommunicator of both parts, or nil when one has no ranks.
func (c *Comm) Create(g *Group) (*Comm, error) {
	if err := c.checkPart("Comm.Create", g); err != nil {
		return nil, c.report(err)
	}
	if c.Inter() {
		key := g.rankOf(int32(c.p.rank))
		return c.split("Comm.Create", colorOf(key), key)
	}
	got, err := c.agree("Comm.Create", 1, nil)
	if err != nil {
		return nil, c.report(err)
	}
	if g.rankOf(int32(c.p.rank)) == Undefined {
		c.p.giveContexts(got[0])
		return nil, nil
	}
	n := c.p.newComm(2*got[0], g)
	n.SetErrhandler(c.Errhandler())
	return n, nil
}

// checkPart says what is wrong with a group that is to be a part of c.
func (c *Comm) checkPart(op string, g *Group) error {
	switch {
	case c.live(op) != nil:
		return c.live(op)
	case g == nil || g.Difference(c.Group()).Size() > 0:
		return fail(ErrGroup, op, "the group has ranks that are not of this communicator")
	case len(g.world) > 0 && (g.mixed || g.session != c.session):
		return fail(ErrGroup, op, "the group is of another session than this communicator")
	}
	return nil
}

// CreateGroup is Create that only the ranks of the group call
// (MPI_Comm_create_group). tag tells apart what is made at the same time by
// different goroutines or in different orders.
func (c *Comm) CreateGroup(g *Group, tag int) (*Comm, error) {
	const op = "Comm.CreateGroup"
	err := c.checkPart(op, g)
	if err == nil {
		err = checkTag(op, tag)
	}
	switch {
	case err != nil:
		return nil, c.report(err)
	case c.Inter():
		return nil, c.report(fail(ErrComm, op, "it is not for intercommunicators: Merge first"))
	case g.rankOf(int32(c.p.rank)) == Undefined:
		return nil, c.report(fail(ErrGroup, op, "this rank is not in the group: only its ranks call it"))
	}
	part := c.p.view(c.context, g)
	part.coll.part = tagPart | int32(tag)
	defer c.ep.RegisterPart(c.context, part.coll.part, g.world)()
	got, err := part.agree(op, 1, nil)
	if err != nil {
		return nil, c.report(err)
	}
	n := c.p.newComm(2*got[0], g)
	n.SetErrhandler(c.Errhandler())
	return n, nil
}

// Split makes a communicator of the ranks with the same color, ordered by key,
// then by rank (MPI_Comm_split). Color Undefined gets nil. Of an intercommunicator
// what is made are intercommunicators of the ranks of both groups with the same
// color, or nil when one group has none.
func (c *Comm) Split(color, key int) (*Comm, error) { return c.split("Comm.Split", color, key) }

func (c *Comm) split(op string, color, key int) (*Comm, error) {
	switch {
	case c.live(op) != nil:
		return nil, c.report(c.live(op))
	case color < 0 && color != Undefined:
		return nil, c.report(fail(ErrArg, op, "color %d; colors are 0 and up, or Undefined", color))
	}
	t := c.p.watch.begin(op, c, Undefined, Undefined, 0)
	n, err := c.parts(op, color, key)
	t.end(err)
	return n, err
}

// parts is split with arguments that are right.
func (c *Comm) parts(op string, color, key int) (*Comm, error) {
	if c.Inter() {
		return c.splitInter(op, color, key)
	}
	all, err := c.gatherInts(op, int64(color), int64(key))
	if err != nil {
		return nil, c.report(err)
	}
	return c.parted(op, all)
}

// parted is split when all ranks know color and key of each.
func (c *Comm) parted(op string, all []int64) (*Comm, error) {
	got, err := c.agreed(op, 1, nil)
	if err != nil {
		return nil, c.report(err)
	}
	color := int(all[2*c.rank])
	if color == Undefined {
		c.p.giveContexts(got[0])
		return nil, nil
	}
	n := c.p.newComm(2*got[0], c.Group().colored(all, color))
	n.SetErrhandler(c.Errhandler())
	return n, nil
}

// colored returns the ranks of a group with a color, ordered by their keys. all has
// color and key of each.
func (g *Group) colored(all []int64, color int) *Group {
	var members []int
	for r := range g.world {
		if all[2*r] == int64(color) {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	part := g.only(nil)
	for _, r := range members {
		part.world = append(part.world, g.world[r])
	}
	return part
}

// splitInter is split for intercommunicators.
func (c *Comm) splitInter(op string, color, key int) (*Comm, error) {
	mine, err := c.within.gatherInts(op, int64(color), int64(key))
	theirs := make([]int64, 2*c.size)
	if err == nil {
		err = planAllgather(c.beginCached(op, planOfAllgather), Slice([]int64{int64(color), int64(key)}), Slice(theirs)).finish()
	}
	if err != nil {
		return nil, c.report(err)
	}
	got, err := c.agreeInter(op)
	if err != nil {
		return nil, c.report(err)
	}
	near, far := c.local.colored(mine, color), c.RemoteGroup().colored(theirs, color)
	if color == Undefined || far.Size() == 0 {
		c.p.giveContexts(got...)
		return nil, nil
	}
	side := c.p.view(c.within.context, near)
	side.SetErrhandler(c.Errhandler())
	return side.inter(got, far), nil
}

// SetName names the communicator, for messages to people (MPI_Comm_set_name).
func (c *Comm) SetName(name string) {
	c.ep.Enter()
	c.name = name
	c.ep.Leave()
}

// Name returns the name (MPI_Comm_get_name).
func (c *Comm) Name() string {
	c.ep.Enter()
	defer c.ep.Leave()
	return c.name
}
