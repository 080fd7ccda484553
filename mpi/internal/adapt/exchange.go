package adapt

// Exchange is what a ghost knows of what ranks want, where ghosts tell one another of it while the
// ranks call nothing. It looks at the ranks of its host once an interval, and learns of all others
// from ghosts there. What it knows is recent and no more than that: two ghosts may know different
// things of a rank.
type Exchange struct {
	wants  []State  // by rank
	calls  []uint32 // of the ranks of this host, when it looked last
	left   int      // intervals for which a probe lasts still
	asked  []bool   // by rank: it has asked for a probe that lasts
	probes uint32
}

// probeLasts is for how many intervals a probe lasts: it begins within one of ghosts, and what counts is the
// next whole one of ranks.
const probeLasts = 2

// NewExchange returns what knows that all want to be On, of so many ranks, some of which are of this host.
func NewExchange(ranks, here int) *Exchange {
	return &Exchange{wants: make([]State, ranks), calls: make([]uint32, here), asked: make([]bool, ranks)}
}

// Begin begins an interval.
func (x *Exchange) Begin() {
	if x.left = max(x.left-1, 0); x.left == 0 {
		clear(x.asked)
	}
}

// Look takes in what a rank, number i of this host, wants. calls changes with each call of MPI that the rank
// begins or ends, and is odd while it is in one: a rank that has been in none for an interval computes, and cannot say
// so itself.
func (x *Exchange) Look(rank int32, i int, want State, calls uint32) {
	if calls == x.calls[i] && calls&1 == 0 {
		want = On
	}
	x.calls[i] = calls
	x.note(rank, want)
}

func (x *Exchange) note(rank int32, want State) {
	if want == Probe && x.wants[rank] != Probe {
		x.left = probeLasts
		x.probes++
		x.asked[rank] = true
	}
	x.wants[rank] = want
}

// Hear takes in what a ghost has said of ranks. false: it makes no sense.
func (x *Exchange) Hear(ranks []int32, said []byte) bool {
	if len(said) > len(ranks) {
		return false
	}
	for _, s := range said {
		if State(s) > Probe {
			return false
		}
	}
	for i, s := range said {
		x.note(ranks[i], State(s))
	}
	return true
}

// Say appends what is to be told of ranks. A rank asks for a probe until it sees that one has begun, which may
// be for one interval: a ghost that could be told nothing in that one is told of the probe for as long as it lasts.
func (x *Exchange) Say(b []byte, ranks []int32) []byte {
	for _, rank := range ranks {
		want := x.wants[rank]
		if x.asked[rank] {
			want = Probe
		}
		b = append(b, byte(want))
	}
	return b
}

// On reports whether ghosts are to do what a rank is asked for.
func (x *Exchange) On(rank int32) bool { return x.left > 0 || x.wants[rank] != Off }

// Probes returns how many probes have begun.
func (x *Exchange) Probes() uint32 { return x.probes }
