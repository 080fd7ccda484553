package p2p

import "github.com/xwarp/xwarp/mpi/internal/match"

// numbersKept is for how many different envelopes messages are counted: a program
// that never uses a tag twice must not make the rank grow. Others get no number.
const numbersKept = 1 << 18

// numbersWindow is how many collectives of a communicator have counters of their own.
// Their tags rise and never come back, so they share counters in turn: on both ends
// messages of the n-th one are counted before those of the one numbersWindow later,
// unless that many are under way at a time.
const numbersWindow = 1 << 8

// number counts a message that has met its receive. Messages with one envelope
// meet theirs in the order in which they were sent.
func (mt *matching) number(env match.Envelope) Mark {
	if mt.numbers == nil {
		return 0
	}
	return Mark(Count(mt.numbers, env))
}

// Count returns how many messages with an envelope there were, this one included,
// or 0 when there are too many different ones to count. Sender and receiver come to
// the same number.
func Count(numbers map[match.Envelope]uint64, env match.Envelope) uint64 {
	if collective(env.Context) && env.Tag <= SeqTagMax {
		env.Tag %= numbersWindow
	}
	n, known := numbers[env]
	if !known && len(numbers) >= numbersKept {
		return 0
	}
	numbers[env] = n + 1
	return n + 1
}
