package coll

import "math/bits"

// BcastMultiLeader cuts the message into a part for each leader of a host. The ranks
// of the root's host take all of it from the root, the part that they lead first. The
// leaders of a part pass it from host to host, or down a binomial tree of hosts where
// there are too many for its segments; a leader gives its own host what comes, segment
// by segment, while the next ones come.
//
// Why: for long messages. They go to each host once, and as many cores as there
// are parts work on that.
// Cost: (h - 2 + k) (a + n/(kR) b) between hosts, or ceil(log2 h) (k a + n/R b), with
// R parts, h hosts and k segments of a part, and n b inside of the hosts.
func BcastMultiLeader(s *Schedule, t Team, buf []byte, root int) {
	local, leaders, parts := t.Hosts.leaders(s, t, root)
	k := segments(len(buf) / parts)
	up, down := steps(leaders, k)
	home := leaders.Me == 0
	if home && local.Me == 0 {
		for r := 1; r < local.Size; r++ {
			for i := range parts {
				s.sendCut(local, r, segment(buf, parts, (r+i)%parts), k)
			}
		}
	} else {
		for i := range parts {
			part := (local.Me + i) % parts
			switch b := segment(buf, parts, part); {
			case home:
				s.recvCut(local, 0, b, k)
			case part == local.Me:
				s.recvCut(leaders, leaders.Me-up, b, k)
			default:
				s.recvCut(local, part, b, k)
			}
		}
	}
	if local.Me < parts {
		s.passOn(local, leaders, down, segment(buf, parts, local.Me), k)
	}
	s.fence()
}

// steps returns how far up among the leaders the segments of this host come from, and how far
// down it they go first: then half as far, and so on.
func steps(leaders Team, k int) (up, down int) {
	if leaders.Size-2+k <= k*bits.Len(uint(leaders.Size-1)) {
		return 1, 1 // the chain takes less time than the tree
	}
	up = below(leaders.Me, leaders.Size)
	return up, up / 2
}

// passOn gives a part to the hosts below and to this one, unless it is the root's,
// as its segments come.
func (s *Schedule) passOn(local, leaders Team, down int, part []byte, k int) {
	home := leaders.Me == 0
	for i := range k {
		if !home || local.Me != 0 {
			s.await(i + 1)
		}
		b := segment(part, k, i)
		for span := down; span > 0; span /= 2 {
			if leaders.Me+span < leaders.Size {
				s.send(leaders, leaders.Me+span, b)
			}
		}
		if !home {
			s.sendAll(local, b)
		}
	}
}
