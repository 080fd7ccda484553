package coll

import "github.com/xwarp/xwarp/internal/base/mem"

// AlltoallParts sends long blocks as AlltoallLinear or AlltoallPairwise do, and gives short ones through the slots of each
// host: those for another member of the host, and those for other hosts to the member that sends to their rank what
// all of its host have for it, in one message. How long a block is both its ends know, and what goes into such
// a message the slots say.
//
// Why: as AlltoallSlots, and between hosts fewer messages; no member waits for a leader.
// Cost: (hosts - 1) a + 3 n b, with n bytes in all.
func AlltoallParts(s *Schedule, t Team, out, in []Block) {
	short, me, near := t.partMost(), t.Slots.me, len(t.Slots.sequence)
	carriers := t.carriers(s, near)
	blocks, all, allLong := s.Blocks(t.Size), 0, true
	for i, b := range out {
		n := s.Len(b)
		allLong = allLong && (i == t.Me || n > short && s.Len(in[i]) > short)
		if i != t.Me && n <= short {
			blocks[i] = packed(s, b)
			if int(carriers[i]) != me {
				all += n
			}
		}
	}
	p := beginParts(s, t, t.Size, all, t.partRoom())
	for i, b := range blocks {
		switch {
		case i != t.Me && s.Len(out[i]) > short:
			p.message()
		case int(carriers[i]) == me:
			p.put(s, nil) // it is this member that sends it
		default:
			p.put(s, b)
		}
	}
	p.end(s)
	several := linearWindow
	if t.chooseParts(s, out, in) == pairwise {
		several = 1
	}
	s.shift(t, out, in, several, short)
	if allLong {
		s.fence() // what others may have for ranks that this one sends to has time
	}
	bundles := recvBundles(s, t, in, short)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i, carrier := range carriers {
		if int(carrier) == me {
			s.steps = append(s.steps, step{what: slotBundle, peer: int32(i), other: partOf(i, t.Size), a: blocks[i], b: s.Temp(near * short)})
		}
	}
	member := 0
	for i, carrier := range carriers {
		if carrier >= 0 {
			continue
		}
		if i != t.Me {
			pickBlock(s, member, t, in[i], short)
		}
		member++
	}
	s.fence()
	for h, b := range bundles {
		for _, i := range t.Hosts.ranks[h] {
			if n := s.Len(in[i]); len(b) > 0 && n <= short {
				s.copyBlock(in[i], Flat(b[:n]))
				b = b[n:]
			}
		}
	}
}

// partMost returns how many bytes a block has at most that goes through slots: those that a member gives have room
// there. 0: blocks are messages, all of them. All ranks say the same.
func (t Team) partMost() int {
	if use := t.choose(ofAlltoall, 0); use != slots && use != hosts || t.Size <= 2 || t.Size > partsMost {
		return 0
	}
	room, given := t.partRoom(), t.Size-1
	if t.Hosts != nil {
		given = t.Hosts.given
	}
	if table := partWord * t.Size; table > lineMost {
		room -= table
	}
	return max(room/given, 0)
}

// partRoom returns how many bytes a member gives at most, with the table of them.
func (t Team) partRoom() int {
	if t.Hosts != nil {
		return min(tableOf(t.Hosts.most), bundleMost)
	}
	return tableOf(t.Size)
}

// bundleMost is how many bytes the blocks have, with their table, that a member gives for ranks of other hosts, too.
const bundleMost = 32 << 10

// carriers returns which member of this host sends to a rank of another one what is short, by rank; -1 for ranks of this host.
func (t Team) carriers(s *Schedule, near int) []int32 {
	list := s.ranks(t.Size)
	for i := range list {
		list[i] = -1
	}
	if t.Hosts == nil {
		return list
	}
	for h, ranks := range t.Hosts.ranks {
		for j, r := range ranks {
			if h != int(t.Hosts.of[t.Me]) {
				list[r] = int32(j % near)
			}
		}
	}
	return list
}

// recvBundles receives what is short from each of the other hosts, and returns where.
func recvBundles(s *Schedule, t Team, in []Block, short int) [][]byte {
	if t.Hosts == nil {
		return nil
	}
	bundles := s.Blocks(len(t.Hosts.ranks))
	for h, ranks := range t.Hosts.ranks {
		n := 0
		for _, r := range ranks {
			if k := s.Len(in[r]); k <= short {
				n += k
			}
		}
		if n > 0 && h != int(t.Hosts.of[t.Me]) {
			bundles[h] = s.Temp(n)
			s.recv(t, int(ranks[t.Slots.me%len(ranks)]), bundles[h])
		}
	}
	return bundles
}

// pickBlock takes what a member of this host has for this one, or sees that it sends it.
func pickBlock(s *Schedule, member int, t Team, b Block, short int) {
	switch {
	case s.Len(b) > short:
		s.steps = append(s.steps, step{what: slotFar, peer: int32(member), other: partOf(t.Me, t.Size)})
	case b.cursor == 0:
		pick(s, member, t.Me, t.Size, b.b)
	default:
		packed := s.Temp(s.Len(b))
		pick(s, member, t.Me, t.Size, packed)
		s.copyBlock(b, Flat(packed))
	}
}

// packed returns the bytes of a block, side by side.
func packed(s *Schedule, b Block) []byte {
	if b.cursor == 0 {
		return b.b
	}
	v := s.Temp(s.Len(b))
	s.copyBlock(Flat(v), b)
	return v
}

// beginBundle begins the message of a slotBundle, if anything is in it.
func beginBundle(s *Schedule, t Transport, st *step) {
	b := s.slots.bundle(st)
	if len(b) == 0 {
		return
	}
	s.gives = true
	if h := t.Isend(b, st.peer, s.Tag); h != nil {
		s.begin(h, len(b), st.peer)
	}
}

// bundle returns the part that all members have for one rank, in the order of members.
func (sl *Slots) bundle(st *step) []byte {
	b := st.b[:0]
	for member := range sl.sequence {
		if member == sl.me {
			b = append(b, st.a...)
			continue
		}
		at, n, message := sl.part(member, st.other)
		switch {
		case message:
		case n < 0 || n > len(st.b)/len(sl.sequence):
			sl.disagrees(member)
		default:
			b = b[:len(b)+n]
			from := sl.parted(member, at, n)
			mem.CopyAcross(b[len(b)-n:], from)
			sl.read(member, from)
		}
	}
	return b
}
