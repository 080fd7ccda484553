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
	inMessage = 1<<(8*partWord) - 1 // in place of an end: tableMost and lineMost are less
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
	all := 0
	for i, b := range blocks {
		if i != own {
			all += len(b)
		}
	}
	p := beginParts(s, t, len(blocks), all, tableOf(t.Size))
	p.joins = true
	_, at := partsAt(len(blocks), all)
	messages = at+all > lineMost+tableOf(t.Size)
	for i, b := range blocks {
		switch {
		case messages:
			p.message()
		case i == own:
			p.put(s, nil)
		default:
			p.put(s, b)
		}
	}
	p.end(s)
	return messages
}

// partTable is the table of the blocks that a member gives, while it is written.
type partTable struct {
	table, left []byte
	ends        int  // where the table is
	first, at   int  // where the first and the next block are
	joins       bool // all blocks are of one buffer
}

// beginParts begins a collective in which this member gives k blocks that have n bytes together, and each member most at most.
func beginParts(s *Schedule, t Team, k, n, most int) partTable {
	ends, at := partsAt(k, n)
	table := s.Temp(partWord * k)
	giveInParts(s, t, most)
	return partTable{table: table, left: table, ends: ends, first: at, at: at}
}

// put gives the next block. Those that lie side by side in one buffer, if all are of one, make one step.
func (p *partTable) put(s *Schedule, b []byte) {
	if len(b) > 0 {
		last := &s.steps[len(s.steps)-1]
		both, ok := []byte(nil), false
		if p.joins && last.what == slotPut {
			both, ok = mem.Joined(last.a, b)
		}
		if ok {
			last.a = both
		} else {
			s.steps = append(s.steps, step{what: slotPut, other: int32(p.at), a: b})
		}
		p.at += len(b)
	}
	p.word(p.at - p.first)
}

// message says that the next block is one.
func (p *partTable) message() { p.word(inMessage) }

func (p *partTable) word(n int) {
	binary.LittleEndian.PutUint16(p.left, uint16(n))
	p.left = p.left[partWord:]
}

// end lets others see what was given.
func (p *partTable) end(s *Schedule) {
	s.steps = append(s.steps, step{what: slotLast, other: int32(p.ends), a: p.table})
}

// gatherParts is GatherLinear through slots.
//
// Why: as GatherSlots.
// Cost: 2 p n b, with n bytes of a block.
func gatherParts(s *Schedule, t Team, mine []byte, blocks [][]byte, root int) {
	most := tableOf(t.Size)
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
			pick(s, i, 0, 1, b)
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
		give(s, t, nil, tableOf(t.Size))
		slotStep(s, slotAwait, root, nil, nil)
		pick(s, root, t.Me, t.Size, mine)
		s.steps[len(s.steps)-1].what = slotPickOr
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

// pickInstead is how many steps behind slotPickOr are left out where it has copied: those that receive a message, and
// wait for it.
const pickInstead = 2

// pick copies part i of the k that the slot of a member has to b.
func pick(s *Schedule, member, i, k int, b []byte) {
	s.steps = append(s.steps, step{what: slotPick, peer: int32(member), other: partOf(i, k), b: b})
}

// partOf is what steps have for part i of k.
func partOf(i, k int) int32 { return int32(k)<<16 | int32(i) }

// partsMost is how many parts a table has at most.
const partsMost = 1<<15 - 1

// pick does what that has written down, unless the part is a message, which it reports.
func (sl *Slots) pick(st *step) (message bool) {
	at, n, message := sl.part(int(st.peer), st.other)
	switch {
	case message:
	case n != len(st.b):
		sl.disagrees(int(st.peer))
	default:
		from := sl.parted(int(st.peer), at, n)
		mem.CopyAcross(st.b, from)
		sl.read(int(st.peer), from)
	}
	return message
}

// part returns where a part of what a member has given is, and its length, or that it is a message.
func (sl *Slots) part(member int, part int32) (at, n int, message bool) {
	i, k := int(part&0xffff), int(part>>16)
	table, _ := partsAt(k, 0)
	ends := sl.parted(member, table, partWord*k)
	end := partEnd(ends, i)
	if end == inMessage {
		return 0, 0, true
	}
	before, all := lastEnd(ends, i), lastEnd(ends, k)
	if _, at = partsAt(k, all); before > end || end > all || at+all > lineMost+tableOf(len(sl.sequence)) {
		return 0, -1, false // no table of parts
	}
	return at + before, end - before, false
}

func partEnd(ends []byte, i int) int { return int(binary.LittleEndian.Uint16(ends[partWord*i:])) }

// lastEnd returns where the last of the first i parts ends that is no message.
func lastEnd(ends []byte, i int) int {
	for i--; i >= 0; i-- {
		if end := partEnd(ends, i); end != inMessage {
			return end
		}
	}
	return 0
}

// disagrees says that a member does something else than this one.
func (sl *Slots) disagrees(member int) {
	if sl.err == nil {
		sl.err = sl.waiter.Disagrees(member)
	}
}
