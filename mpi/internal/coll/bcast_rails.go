package coll

import "math/bits"

// BcastRails cuts the message into a part for each rail. The ranks of the root's
// host take all of it from the root, the part of their rail first, and each rail
// passes its part from host to host, or down a binomial tree of hosts where there
// are too many for its segments; a rank gives its own host what comes by its rail,
// segment by segment, while the next ones come.
//
// Why: for long messages. They go to each host once, and as many cores as there
// are rails work on that.
// Cost: (h - 2 + k) (a + n/(kR) b) between hosts, or ceil(log2 h) (k a + n/R b), with
// R rails, h hosts and k segments of a part, and n b inside of the hosts.
func BcastRails(s *Schedule, t Team, buf []byte, root int) {
	local, rail, rails := t.Hosts.rails(s, t, root)
	k := segments(len(buf) / rails)
	up, down := steps(rail, k)
	home := rail.Me == 0
	if home && local.Me == 0 {
		for r := 1; r < local.Size; r++ {
			for i := range rails {
				s.sendCut(local, r, segment(buf, rails, (r+i)%rails), k)
			}
		}
	} else {
		for i := range rails {
			part := (local.Me + i) % rails
			switch b := segment(buf, rails, part); {
			case home:
				s.recvCut(local, 0, b, k)
			case part == local.Me:
				s.recvCut(rail, rail.Me-up, b, k)
			default:
				s.recvCut(local, part, b, k)
			}
		}
	}
	if local.Me < rails {
		s.passOn(local, rail, down, segment(buf, rails, local.Me), k)
	}
	s.fence()
}

// steps returns how far up a rail the segments of this host come from, and how far
// down it they go first: then half as far, and so on.
func steps(rail Team, k int) (up, down int) {
	if rail.Size-2+k <= k*bits.Len(uint(rail.Size-1)) {
		return 1, 1 // the chain takes less time than the tree
	}
	up = below(rail.Me, rail.Size)
	return up, up / 2
}

// passOn gives a part to the hosts below and to this one, unless it is the root's,
// as its segments come.
func (s *Schedule) passOn(local, rail Team, down int, part []byte, k int) {
	home := rail.Me == 0
	for i := range k {
		if !home || local.Me != 0 {
			s.await(i + 1)
		}
		b := segment(part, k, i)
		for span := down; span > 0; span /= 2 {
			if rail.Me+span < rail.Size {
				s.send(rail, rail.Me+span, b)
			}
		}
		if !home {
			s.sendAll(local, b)
		}
	}
}
