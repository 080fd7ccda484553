package coll

// ScanHosts scans on each host through slots, while the reduction of the hosts before comes in a message from
// the last rank of the host before, which sends it to each rank of the next one. It is for hosts whose ranks follow
// one another, and keeps the order of ranks.
//
// Why: on ranks that share processors the chain goes on when it is the turn of the next one; here all ranks of
// a host have what they need when the message is there, whosever turn it is.
// Cost: (hosts - 1) a + p n b of messages, and p n (b + g) inside of hosts.
func ScanHosts(s *Schedule, t Team, in, v []byte, exclusive bool) {
	host := int(t.Hosts.of[t.Me])
	local := Part(int32(t.Me), t.Hosts.ranks[host])
	local.Slots = t.Slots
	give(s, local, in, len(in))
	var before []byte // the reduction of the hosts before
	alone := exclusive && local.Me == 0
	if host > 0 {
		if before = v; !alone {
			before = s.Temp(len(in))
		}
		ranks := t.Hosts.ranks[host-1]
		s.recv(t, int(ranks[len(ranks)-1]), before) // into v not before that was given
	}
	if local.Me > 0 {
		slotStep(s, slotAwait, membersBelow, nil, nil)
	}
	last := local.Me == local.Size-1 && host < len(t.Hosts.ranks)-1
	sum := v
	if last && exclusive {
		sum = s.Temp(len(in))
	}
	if last || !exclusive {
		scanned(s, local, in, sum, before, inScan)
	}
	if last {
		for _, r := range t.Hosts.ranks[host+1] {
			s.send(t, int(r), sum)
		}
	}
	if exclusive && !alone {
		scanned(s, local, in, v, before, inExscan)
	}
	s.fence()
}

// scanned makes v the reduction of what is before a host and of its members up to this one.
func scanned(s *Schedule, local Team, in, v, before []byte, top int) {
	if local.Me > 0 {
		reduceSlots(s, in, 0, v, top)
	} else {
		s.Copy(v, in)
	}
	if before != nil {
		s.await(1)
		s.combine(v, before, true)
	}
}
