package capi

import "github.com/xwarp/xwarp/mpi"

// group returns a group, or says what is wrong.
func (l *Lib) group(h Handle) (*mpi.Group, error) {
	if g := l.groups.get(h); g != nil {
		return *g, nil
	}
	switch h {
	case MPI_GROUP_EMPTY:
		return mpi.GroupEmpty(), nil
	case MPI_GROUP_NULL:
		return nil, fail(mpi.ErrGroup, "MPI_GROUP_NULL")
	}
	return nil, fail(mpi.ErrGroup, "%#x is no group, or was freed", uintptr(h))
}

// addGroup gives the program a group.
func (l *Lib) addGroup(g *mpi.Group) Handle {
	if g.Size() == 0 {
		return MPI_GROUP_EMPTY
	}
	return l.groups.add(g)
}

func (l *Lib) newGroup(g *mpi.Group, err error, to Handles) error {
	if err == nil {
		to.set(0, l.addGroup(g))
	}
	return err
}

// two looks two groups up.
func (l *Lib) two(a, b Handle) (first, second *mpi.Group, err error) {
	if first, err = l.group(a); err == nil {
		second, err = l.group(b)
	}
	return first, second, err
}

// GroupSize is MPI_Group_size.
func GroupSize(l *Lib, group Handle, size Ints) error {
	g, err := l.group(group)
	if err == nil {
		size.set(0, g.Size())
	}
	return err
}

// GroupRank is MPI_Group_rank.
func GroupRank(l *Lib, group Handle, rank Ints) error {
	g, err := l.group(group)
	if err == nil {
		rank.set(0, rankTo(g.Rank(l.proc)))
	}
	return err
}

// GroupFree is MPI_Group_free.
func GroupFree(l *Lib, group Handles) error {
	h := group.get(0)
	if _, err := l.group(h); err != nil {
		return err
	}
	l.groups.remove(h)
	group.set(0, MPI_GROUP_NULL)
	return nil
}

// GroupCompare is MPI_Group_compare.
func GroupCompare(l *Lib, group1, group2 Handle, result Ints) error {
	a, b, err := l.two(group1, group2)
	if err == nil {
		result.set(0, comparisons[a.Compare(b)])
	}
	return err
}

// GroupUnion is MPI_Group_union.
func GroupUnion(l *Lib, group1, group2 Handle, to Handles) error {
	return l.joined(group1, group2, (*mpi.Group).Union, to)
}

// GroupIntersection is MPI_Group_intersection.
func GroupIntersection(l *Lib, group1, group2 Handle, to Handles) error {
	return l.joined(group1, group2, (*mpi.Group).Intersection, to)
}

// GroupDifference is MPI_Group_difference.
func GroupDifference(l *Lib, group1, group2 Handle, to Handles) error {
	return l.joined(group1, group2, (*mpi.Group).Difference, to)
}

func (l *Lib) joined(group1, group2 Handle, f func(a, b *mpi.Group) *mpi.Group, to Handles) error {
	a, b, err := l.two(group1, group2)
	if err == nil {
		to.set(0, l.addGroup(f(a, b)))
	}
	return err
}

// GroupIncl is MPI_Group_incl.
func GroupIncl(l *Lib, group Handle, n int, ranks Ints, to Handles) error {
	return l.chosen(group, n, ranks, (*mpi.Group).Incl, to)
}

// GroupExcl is MPI_Group_excl.
func GroupExcl(l *Lib, group Handle, n int, ranks Ints, to Handles) error {
	return l.chosen(group, n, ranks, (*mpi.Group).Excl, to)
}

func (l *Lib) chosen(group Handle, n int, ranks Ints, f func(*mpi.Group, ...int) (*mpi.Group, error), to Handles) error {
	g, err := l.group(group)
	if err != nil {
		return err
	}
	list, err := ranks.list("ranks", n)
	if err != nil {
		return err
	}
	part, err := f(g, list...)
	return l.newGroup(part, err, to)
}

// GroupRangeIncl is MPI_Group_range_incl.
func GroupRangeIncl(l *Lib, group Handle, n int, ranges Ints, to Handles) error {
	return l.ranged(group, n, ranges, (*mpi.Group).RangeIncl, to)
}

// GroupRangeExcl is MPI_Group_range_excl.
func GroupRangeExcl(l *Lib, group Handle, n int, ranges Ints, to Handles) error {
	return l.ranged(group, n, ranges, (*mpi.Group).RangeExcl, to)
}

func (l *Lib) ranged(group Handle, n int, ranges Ints, f func(*mpi.Group, ...mpi.Range) (*mpi.Group, error), to Handles) error {
	g, err := l.group(group)
	if err != nil {
		return err
	}
	words, err := ranges.list("ranges", 3*n)
	if err != nil {
		return err
	}
	list := make([]mpi.Range, n)
	for i := range list {
		list[i] = mpi.Range{First: words[3*i], Last: words[3*i+1], Stride: words[3*i+2]}
	}
	part, err := f(g, list...)
	return l.newGroup(part, err, to)
}

// GroupTranslateRanks is MPI_Group_translate_ranks.
func GroupTranslateRanks(l *Lib, group1 Handle, n int, ranks1 Ints, group2 Handle, ranks2 Ints) error {
	a, b, err := l.two(group1, group2)
	if err != nil {
		return err
	}
	list, err := ranks1.list("ranks", n)
	if err == nil && n > 0 && ranks2.null() {
		err = fail(mpi.ErrArg, "there is no array for %d ranks", n)
	}
	if err != nil {
		return err
	}
	for i, r := range list {
		other, err := a.TranslateRank(rankFrom(r), b)
		if err != nil {
			return err
		}
		ranks2.set(i, rankTo(other))
	}
	return nil
}
