package coll

// AlltoallPairwise goes round in p - 1 rounds: in round i each rank sends to
// the one i above it and receives from the one i below.
//
// Why: for long blocks. Every rank has one message to send and one to receive
// at a time, so that none is swamped.
// Cost: (p - 1) a + n b, with n bytes in all.
func AlltoallPairwise(s *Schedule, t Team, out, in []Block) {
	s.shift(t, out, in, 1, allLengths)
	s.fence()
}

// allLengths is what shift has where no block is too short for it.
const allLengths = -1

// shift exchanges blocks of more than short bytes with all members, several at a time, and does not wait for the last of them.
func (s *Schedule) shift(t Team, out, in []Block, several, short int) {
	if t.Size == 1 {
		s.copyBlock(in[t.Me], out[t.Me])
	}
	for i := 1; i < t.Size; i++ {
		up, down := t.off(t.Me+i), t.off(t.Me-i)
		if s.Len(in[down]) > short {
			s.recvBlock(t, down, in[down])
		}
		if s.Len(out[up]) > short {
			s.sendBlock(t, up, out[up])
		}
		if i == 1 {
			s.copyBlock(in[t.Me], out[t.Me]) // while the others find out where to send
		}
		if i%several == 0 && i < t.Size-1 {
			s.fence()
		}
	}
}
