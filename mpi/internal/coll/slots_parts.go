package coll

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Blocks of any length go through slots, too, whose extents all members have to know: the longest kind
// there is. What does not fit is a message, which the slot says, as it says where blocks end: a table
// of partWord bytes for each, of which a reader takes three words however many blocks there are. Table and
// blocks are in the line if there is room for them, so that one miss of the cache brings all, or else the
// table alone.
const (
	partWord  = 2
	inMessage = 1<<(8*partWord) - 1 // in place of an end: slotMost and lineMost are less
)

// partsAt returns where the table of k blocks is, and where the blocks begin that have n bytes together: in
// the line, or in the ring from lineMost on.
func partsAt(k, n int) (table, blocks int) {
	switch {
	case partWord*k+n <= lineMost:
		return 0, partWord * k
	case partWord*k <= lineMost:
		return 0, lineMost
	}
	return lineMost, lineMost + partWord*k
}

// parted is slot of n bytes of a vector that partsAt has laid out.
func (sl *Slots) parted(member, off, n int) []byte {
	at := sl.line(member) + vectorAt + off
	if off >= lineMost {
		at = member*sl.stride() + ringAt + int(sl.start)&(sl.ring-1) + off - lineMost
	}
	return sl.memory[at : at+n : at+n]
}

// giveParts begins a collective in which this member gives blocks, all but that of member own, or says that they
// are messages, which it reports.
func giveParts(s *Schedule, t Team, blocks [][]byte, own int) (messages bool) {
	most, all := t.Slots.most(), 0
	for i, b := range blocks {
		if i != own {
			all += len(b)
		}
	}
	ends, at := partsAt(len(blocks), all)
	table := s.Temp(partWord * len(blocks))
	first := at
	messages = at+all > lineMost+most
	give(s, t, nil, most)
	s.steps[len(s.steps)-1].other = inParts
	for i, b := range blocks {
		end := inMessage
		if !messages {
			if i != own && len(b) > 0 {
				put(s, at, b)
				at += len(b)
			}
			end = at - first
		}
		binary.LittleEndian.PutUint16(table[partWord*i:], uint16(end))
	}
	s.steps = append(s.steps, step{what: slotLast, other: int32(ends), a: table})
	return messages
}

// put copies b, of one buffer with what was put before, to what this member gives, at off.
func put(s *Schedule, off int, b []byte) {
	if last := &s.steps[len(s.steps)-1]; last.what == slotPut {
		if both, ok := mem.Joined(last.a, b); ok {
			last.a = both
			return
		}
	}
	s.steps = append(s.steps, step{what: slotPut, other: int32(off), a: b})
}

// gatherParts is GatherLinear through slots.
//
// Why: as GatherSlots.
// Cost: 2 p n b, with n bytes of a block.
func gatherParts(s *Schedule, t Team, mine []byte, blocks [][]byte, root int) {
	most := t.Slots.most()
	if t.Me != root {
		given := s.Blocks(1)
		given[0] = mine
		if giveParts(s, t, given, -1) {
			s.send(t, root, mine)
			s.fence()
		}
		return
	}
	give(s, t, nil, most)
	for i, b := range blocks {
		if i != root && len(b) > most {
			s.recv(t, i, b)
		}
	}
	s.Copy(blocks[root], mine)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i, b := range blocks {
		if i != root && len(b) <= most {
			pick(s, i, onlyPart, b)
		}
	}
	s.fence()
}

// scatterParts is ScatterLinear through slots.
//
// Why: as ScatterSlots.
// Cost: 2 n b, with n bytes in all.
func scatterParts(s *Schedule, t Team, blocks [][]byte, mine []byte, root int) {
	if t.Me != root {
		give(s, t, nil, t.Slots.most())
		slotStep(s, slotAwait, root, nil, nil)
		pick(s, root, t.Me, mine)
		s.recv(t, root, mine)
		s.fence()
		return
	}
	if giveParts(s, t, blocks, root) {
		ScatterLinear(s, t, blocks, mine, root)
		return
	}
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
	member, i, k := int(st.peer), int(st.other), len(sl.sequence)
	if i == onlyPart {
		i, k = 0, 1
	}
	at, _ := partsAt(k, 0)
	ends := sl.parted(member, at, partWord*k)
	before, end, all := 0, int(binary.LittleEndian.Uint16(ends[partWord*i:])), int(binary.LittleEndian.Uint16(ends[partWord*(k-1):]))
	if end == inMessage && st.other != onlyPart {
		return false
	}
	if i > 0 {
		before = int(binary.LittleEndian.Uint16(ends[partWord*(i-1):]))
	}
	n := end - before
	if _, at = partsAt(k, all); n != len(st.b) || end > all || at+all > lineMost+sl.most() {
		if sl.err == nil {
			sl.err = sl.waiter.Disagrees(member)
		}
	} else {
		mem.CopyAcross(st.b, sl.parted(member, at+before, n))
	}
	return st.other != onlyPart
}
