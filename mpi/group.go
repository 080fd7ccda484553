package mpi

import "slices"

// Group is an ordered set of the ranks of a job (MPI_Group). It does not
// change, and is no communicator: nothing is agreed upon with any rank.
type Group struct {
	world   []int32  // number in World of each rank
	session *Session // that it is of; nil: the world model
	mixed   bool     // made of groups of several sessions: nothing can be made of it
}

// GroupEmpty returns the group without ranks (MPI_GROUP_EMPTY).
func GroupEmpty() *Group { return &Group{} }

// Comparison is the result of comparing groups or communicators.
type Comparison int

// Results of comparisons.
const (
	Ident     Comparison = iota // the same
	Congruent                   // communicators: the same ranks in the same order, but another context
	Similar                     // the same ranks in another order
	Unequal
)

// Size returns the number of ranks (MPI_Group_size).
func (g *Group) Size() int { return len(g.world) }

// Session returns the session that the group is of; nil: the world model, or no ranks.
func (g *Group) Session() *Session { return g.session }

// Rank returns the rank of a process in the group, or Undefined (MPI_Group_rank).
func (g *Group) Rank(p *Proc) int { return g.rankOf(int32(p.rank)) }

// rankOf returns the rank in the group of a rank of World, or Undefined.
func (g *Group) rankOf(world int32) int {
	if i := slices.Index(g.world, world); i >= 0 {
		return i
	}
	return Undefined
}

// TranslateRank returns the rank in other of rank r of g, or Undefined
// (MPI_Group_translate_ranks). ProcNull is ProcNull in every group.
func (g *Group) TranslateRank(r int, other *Group) (int, error) {
	const op = "Group.TranslateRank"
	switch {
	case g == nil || other == nil:
		return Undefined, noGroup(op)
	case r == ProcNull:
		return ProcNull, nil
	case r < 0 || r >= len(g.world):
		return Undefined, g.noRank(op, r)
	}
	return other.rankOf(g.world[r]), nil
}

func noGroup(op string) error { return fail(ErrGroup, op, "the group is nil") }

func (g *Group) noRank(op string, r int) error {
	return fail(ErrRank, op, "%d is no rank of this group, which has ranks 0 to %d", r, len(g.world)-1)
}

// Compare compares two groups (MPI_Group_compare): Ident, Similar or Unequal.
func (g *Group) Compare(other *Group) Comparison {
	if slices.Equal(g.world, other.world) {
		return Ident
	}
	a, b := slices.Clone(g.world), slices.Clone(other.world)
	slices.Sort(a)
	slices.Sort(b)
	if slices.Equal(a, b) {
		return Similar
	}
	return Unequal
}

// set returns which ranks of World are in the group.
func (g *Group) set() map[int32]bool {
	in := make(map[int32]bool, len(g.world))
	for _, w := range g.world {
		in[w] = true
	}
	return in
}

// Union returns all ranks of g, followed by those of other that are not in it
// (MPI_Group_union).
func (g *Group) Union(other *Group) *Group {
	return g.beside(other, append(slices.Clone(g.world), other.Difference(g).world...))
}

// Intersection returns the ranks of g that are in other too, in the order of g
// (MPI_Group_intersection).
func (g *Group) Intersection(other *Group) *Group {
	return g.beside(other, g.filter(other.set(), true))
}

// Difference returns the ranks of g that are not in other (MPI_Group_difference).
func (g *Group) Difference(other *Group) *Group {
	return g.beside(other, g.filter(other.set(), false))
}

func (g *Group) filter(in map[int32]bool, want bool) (world []int32) {
	for _, w := range g.world {
		if in[w] == want {
			world = append(world, w)
		}
	}
	return world
}

// beside returns a group of ranks that are of g and other.
func (g *Group) beside(other *Group, world []int32) *Group {
	n := &Group{world: world, session: g.session, mixed: g.mixed || other.mixed}
	switch {
	case len(other.world) == 0 && !other.mixed:
	case len(g.world) == 0 && !g.mixed:
		n.session = other.session
	case g.session != other.session:
		n.mixed = true
	}
	return n
}

// only returns the group of some ranks of g.
func (g *Group) only(world []int32) *Group {
	return &Group{world: world, session: g.session, mixed: g.mixed}
}

// Incl returns the group of these ranks of g, in this order (MPI_Group_incl).
func (g *Group) Incl(ranks ...int) (*Group, error) { return g.incl("Group.Incl", ranks) }

func (g *Group) incl(op string, ranks []int) (*Group, error) {
	if g == nil {
		return nil, noGroup(op)
	}
	world := make([]int32, 0, len(ranks))
	in := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		switch {
		case r < 0 || r >= len(g.world):
			return nil, g.noRank(op, r)
		case in[r]:
			return nil, fail(ErrRank, op, "rank %d is named twice", r)
		}
		in[r] = true
		world = append(world, g.world[r])
	}
	return g.only(world), nil
}

// Excl returns g without these ranks (MPI_Group_excl).
func (g *Group) Excl(ranks ...int) (*Group, error) {
	out, err := g.incl("Group.Excl", ranks)
	if err != nil {
		return nil, err
	}
	return g.Difference(out), nil
}

// Range is the ranks First, First+Stride, ... as far as Last.
type Range struct{ First, Last, Stride int }

// ranks lists the ranks of ranges.
func (g *Group) ranks(op string, ranges []Range) (ranks []int, err error) {
	if g == nil {
		return nil, noGroup(op)
	}
	for _, r := range ranges {
		if r.Stride == 0 {
			return nil, fail(ErrArg, op, "the range from %d to %d has the stride 0", r.First, r.Last)
		}
		if r.First < r.Last && r.Stride < 0 || r.First > r.Last && r.Stride > 0 {
			return nil, fail(ErrArg, op, "steps of %d do not go from %d to %d", r.Stride, r.First, r.Last)
		}
		for i := r.First; r.Stride > 0 && i <= r.Last || r.Stride < 0 && i >= r.Last; i += r.Stride {
			if i < 0 || i >= len(g.world) { // before it goes on for ever
				return nil, fail(ErrArg, op, "a range has %d, which is no rank of this group, which has ranks 0 to %d", i, len(g.world)-1)
			}
			ranks = append(ranks, i)
		}
	}
	return ranks, nil
}

// RangeIncl is Incl for the ranks of ranges (MPI_Group_range_incl).
func (g *Group) RangeIncl(ranges ...Range) (*Group, error) {
	ranks, err := g.ranks("Group.RangeIncl", ranges)
	if err != nil {
		return nil, err
	}
	return g.Incl(ranks...)
}

// RangeExcl is Excl for the ranks of ranges (MPI_Group_range_excl).
func (g *Group) RangeExcl(ranges ...Range) (*Group, error) {
	ranks, err := g.ranks("Group.RangeExcl", ranges)
	if err != nil {
		return nil, err
	}
	return g.Excl(ranks...)
}
