package p2p

import "github.com/xwarp/xwarp/mpi/internal/match"

// numbersKept is for how many different envelopes messages are counted: a program
// that never uses a tag twice must not make the rank grow. Others get no number.
const numbersKept = 1 << 16

// number counts a message that has met its receive. Messages with one envelope
// meet theirs in the order in which they were sent.
func (ep *Endpoint) number(env match.Envelope) Mark {
	if ep.numbers == nil || collective(env.Context) {
		return 0
	}
	return Mark(Count(ep.numbers, env))
}

// Count returns how many messages with an envelope there were, this one included,
// or 0 when there are too many different ones to count.
func Count(numbers map[match.Envelope]uint64, env match.Envelope) uint64 {
	n, known := numbers[env]
	if !known && len(numbers) >= numbersKept {
		return 0
	}
	numbers[env] = n + 1
	return n + 1
}
