package coll

// Team is the ranks that take part in an algorithm, numbered from 0, seen by
// one of them. It is a whole communicator or a part of it.
type Team struct {
	Me, Size int
	Ranks    []int32 // their ranks in the communicator; nil: they are the same
	Hosts    *Hosts  // where they run; nil: nothing is known, or there is nothing to gain
	OneHost  bool    // all of them run on one
	Slots    *Slots  // that the members on this rank's host have in common; nil: none
	Tables   *Tables // rows before those that are built in; nil: none
}

// rank returns the rank in the communicator of member i.
func (t Team) rank(i int) int32 {
	if t.Ranks == nil {
		return int32(i)
	}
	return t.Ranks[i]
}

// from returns this rank's number when numbers begin at root.
func (t Team) from(root int) int { return t.off(t.Me - root) }

// off brings a number that is off by less than Size back into the team.
func (t Team) off(i int) int {
	switch {
	case i < 0:
		return i + t.Size
	case i >= t.Size:
		return i - t.Size
	}
	return i
}

// Part returns the part of a team of the given ranks, in their order, seen by
// rank me of the communicator. Me is -1 when that is none of them.
func Part(me int32, ranks []int32) Team {
	t := Team{Me: -1, Size: len(ranks), Ranks: ranks}
	for i, r := range ranks {
		if r == me {
			t.Me = i
		}
	}
	return t
}
