package p2p

// choice is between two options by what each takes. One is usual from the beginning, as the better
// one as a rule, and the other one is tried now and then: a program that has just begun, or that sends a few
// messages of a length and then goes on to others, is not to pay for a measurement. The shortest time of each is
// compared: what the peer, or another process, has added says nothing about the option.
type choice struct {
	least   [options]float64 // ns per byte, since the last decision
	timed   [options]uint8
	usual   option
	decided bool
	sure    uint8 // decisions in a row that found the other option to take much longer
	tick    uint32
}

// option is what a choice is between.
type option uint8

const (
	firstOption option = iota
	secondOption
	options
)

const (
	choiceTimed = 6  // times each option, for a decision
	choiceFirst = 2  // and for the first one
	choiceSoon  = 8  // one of so many takes the other option before the first decision
	choiceEvery = 32 // and after it, when one is timed
	choiceSure  = 3  // as often as this is doubled for what takes choiceClear times as long
	choiceClear = 1.5
)

// choose says which option is the next one, and whether it is to be timed.
func (c *choice) choose() (o option, timed bool) {
	c.tick++
	switch {
	case c.tick%(choiceEvery<<c.sure) == 0, !c.decided && c.tick%choiceSoon == 0:
		return options - 1 - c.usual, true
	}
	return c.usual, !c.decided || c.tick%choiceEvery == choiceEvery/2
}

// took takes a time into account, in ns per byte.
func (c *choice) took(o option, each float64) {
	if c.timed[o] == 0 || each < c.least[o] {
		c.least[o] = each
	}
	c.timed[o] = min(c.timed[o]+1, choiceTimed)
	enough := uint8(choiceTimed)
	if !c.decided {
		enough = choiceFirst
	}
	if min(c.timed[firstOption], c.timed[secondOption]) < enough {
		return
	}
	was := c.usual
	c.usual = firstOption
	if c.least[secondOption] < c.least[firstOption] {
		c.usual = secondOption
	}
	if c.usual == was && c.least[options-1-was] > choiceClear*c.least[was] {
		c.sure = min(c.sure+1, choiceSure)
	} else {
		c.sure = 0
	}
	c.decided, c.timed = true, [options]uint8{}
}
