package coll

import "encoding/binary"

// Blocks of any length go through slots, too, whose extents all members have to know: the longest kind
// there is. What does not fit is a message, which the slot says, as it says how long blocks are.
const partWord = 8

// gatherParts is GatherLinear through slots.
//
// Why: as GatherSlots.
// Cost: 2 p n b, with n bytes of a block.
func gatherParts(s *Schedule, t Team, mine []byte, blocks [][]byte, root int) {
	most := t.Slots.most()
	if t.Me != root {
		fits := partWord+len(mine) <= most
		given := s.Temp(partWord)
		if fits {
			given = s.Temp(partWord + len(mine))
			s.Copy(given[partWord:], mine)
		}
		binary.LittleEndian.PutUint64(given, uint64(len(mine)))
		give(s, t, given, most)
		if !fits {
			s.send(t, root, mine)
			s.fence()
		}
		return
	}
	give(s, t, nil, most)
	for i, b := range blocks {
		if i != root && partWord+len(b) > most {
			s.recv(t, i, b)
		}
	}
	s.Copy(blocks[root], mine)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i, b := range blocks {
		if i != root && partWord+len(b) <= most {
			pick(s, i, onlyPart, b)
		}
	}
	s.fence()
}

// scatterParts is ScatterLinear through slots: the root gives a table of where blocks begin, and the blocks.
//
// Why: as ScatterSlots.
// Cost: 3 n b, with n bytes in all.
func scatterParts(s *Schedule, t Team, blocks [][]byte, mine []byte, root int) {
	most := t.Slots.most()
	if t.Me != root {
		give(s, t, nil, most)
		slotStep(s, slotAwait, root, nil, nil)
		pick(s, root, t.Me, mine)
		s.recv(t, root, mine)
		s.fence()
		return
	}
	at := partWord * (t.Size + 1)
	end := at
	for i, b := range blocks {
		if i != root {
			end += len(b)
		}
	}
	if end > most {
		given := s.Temp(partWord)
		clear(given)
		give(s, t, given, most)
		ScatterLinear(s, t, blocks, mine, root)
		return
	}
	given := s.Temp(end)
	for i, b := range blocks {
		binary.LittleEndian.PutUint64(given[partWord*i:], uint64(at))
		if i != root {
			s.Copy(given[at:], b)
			at += len(b)
		}
	}
	binary.LittleEndian.PutUint64(given[partWord*t.Size:], uint64(at))
	give(s, t, given, most)
	s.Copy(mine, blocks[root])
}

// onlyPart is what pick has in place of a number where there is one part.
const onlyPart = -1

// pickInstead is how many steps behind a pick are left out where it has copied one of several parts: those that
// receive it as a message, and wait for that.
const pickInstead = 2

// pick copies part i of what the slot of a member has to b. Of several parts it leaves out the message that is
// received behind it, unless they are messages.
func pick(s *Schedule, member, i int, b []byte) {
	s.steps = append(s.steps, step{what: slotPick, peer: int32(member), other: int32(i), b: b})
}

// pick does what that has written down, and reports whether it has copied one of several parts.
func (sl *Slots) pick(st *step) bool {
	all := sl.slot(int(st.peer), 0, sl.most())
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(all[partWord*i:]) }
	at, n := uint64(partWord), uint64(len(st.b))
	end := at + word(0)
	if st.other != onlyPart {
		if word(0) == 0 {
			return false
		}
		at, end = word(int(st.other)), word(int(st.other)+1)
	}
	if end-at != n || at > uint64(len(all)) || n > uint64(len(all))-at {
		if sl.err == nil {
			sl.err = sl.waiter.Disagrees(int(st.peer))
		}
	} else {
		copy(st.b, all[at:])
	}
	return st.other != onlyPart
}
