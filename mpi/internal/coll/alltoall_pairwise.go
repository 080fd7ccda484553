package coll

// AlltoallPairwise goes round in p - 1 rounds: in round i each rank sends to
// the one i above it and receives from the one i below.
//
// Why: for long blocks. Every rank has one message to send and one to receive
// at a time, so that none is swamped.
// Cost: (p - 1) a + n b, with n bytes in all.
func AlltoallPairwise(s *Schedule, t Team, out, in []Block) { s.shift(t, out, in, 1) }

// shift exchanges blocks with all members, several at a time.
func (s *Schedule) shift(t Team, out, in []Block, several int) {
	if t.Size == 1 {
		s.copyBlock(in[t.Me], out[t.Me])
	}
	for i := 1; i < t.Size; i++ {
		up, down := t.off(t.Me+i), t.off(t.Me-i)
		s.recvBlock(t, down, in[down])
		s.sendBlock(t, up, out[up])
		if i == 1 {
			s.copyBlock(in[t.Me], out[t.Me]) // while the others find out where to send
		}
		if i%several == 0 {
			s.fence()
		}
	}
	s.fence()
}
