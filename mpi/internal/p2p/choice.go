package p2p

// choice is between two ways of doing the same, by what each takes: first they are tried
// in turns, then the better one is usual and the other one is tried now and then. What is
// compared is the shortest time of each way: what the peer, or another process, has added
// says nothing about the way.
type choice struct {
	least   [ways]float64 // ns per byte, since the last decision
	timed   [ways]uint8
	usual   wayOf
	decided bool
	tick    uint32
}

// wayOf is one of the ways of a choice.
type wayOf uint8

const (
	firstWay wayOf = iota
	secondWay
	ways
)

const (
	choiceTimed = 6  // times each way, for a decision
	choiceEvery = 32 // one of so many goes the other way, after the first decision, and one is timed
)

// choose says which way is the next one, and whether it is to be timed.
func (c *choice) choose() (way wayOf, timed bool) {
	c.tick++
	switch {
	case !c.decided:
		return wayOf(c.tick % uint32(ways)), true
	case c.tick%choiceEvery == 0:
		return ways - 1 - c.usual, true
	}
	return c.usual, c.tick%choiceEvery == choiceEvery/2
}

// took takes a time into account, in ns per byte.
func (c *choice) took(way wayOf, each float64) {
	if c.timed[way] == 0 || each < c.least[way] {
		c.least[way] = each
	}
	c.timed[way] = min(c.timed[way]+1, choiceTimed)
	if min(c.timed[firstWay], c.timed[secondWay]) < choiceTimed {
		return
	}
	c.usual = firstWay
	if c.least[secondWay] < c.least[firstWay] {
		c.usual = secondWay
	}
	c.decided, c.timed = true, [ways]uint8{}
}
