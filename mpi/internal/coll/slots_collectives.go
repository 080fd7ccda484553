package coll

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// slotted reports whether all of the team have slots.
func (t Team) slotted() bool { return t.Slots != nil && len(t.Slots.sequence) == t.Size }

// near reports whether a vector of n bytes goes through a slot of the team.
func (t Team) near(n int) bool { return t.slotted() && n <= t.Slots.most() }

// nearAll reports whether a vector of n bytes goes through a slot on each of several hosts. All ranks say
// the same, where near does not: the more ranks a host has, the shorter their vectors are.
func (t Team) nearAll(n int) bool {
	return t.Slots != nil && t.Hosts.least > 1 && n <= slotOf(t.Hosts.most)
}

// within is the team, without slots if a vector of n bytes does not go through one.
func (t Team) within(n int) Team { return t.upTo(n, slotOf(t.Size)) }

// upTo is within for vectors of most bytes at most.
func (t Team) upTo(n, most int) Team {
	if !t.slotted() || n > most {
		t.Slots = nil
	}
	return t
}

// inPieces is within for vectors that may go through slots in pieces, as long as a ring has room for all of one. For more, members that take
// turns on processors would wait for the turns of others between.
func (t Team) inPieces(n int) Team { return t.upTo(n, ringOf(t.Size)) }

// swapMost is how many bytes two members give each other through slots. From memory in huge pages, which others read without
// a look at each 4 KiB, messages take less time for more: 256 KiB 19 us and 22 in pieces, 1 MiB 90 and 121; from small pages 60 and 27, 245 and 129.
const swapMost = 128 << 10

// swaps is inPieces for members that have n bytes for each other.
func (t Team) swaps(n int) Team {
	if t.Size == 2 && n > swapMost {
		t.Slots = nil
	}
	return t.inPieces(n)
}

// swapSlots gives out to the other one of two members, and takes in, which is as long, from it, piece by piece.
// Meanwhile it copies mine, which is this member's own, to own.
func swapSlots(s *Schedule, t Team, out, in, mine, own []byte) {
	piece := t.Slots.most()
	for at := 0; at < len(out); at += piece {
		part := pieceOf(out, at, piece)
		give(s, t, part, len(part))
		if at == 0 {
			s.Copy(own, mine)
		}
		slotStep(s, slotAwait, everyMember, nil, nil)
		take(s, 1-t.Me, 0, pieceOf(in, at, piece))
	}
}

// slotOf returns the first part of a vector that goes through a slot, of whole elements, and
// the rest.
func (t Team) slotOf(v []byte, elem int) (part, rest []byte) {
	n := min(len(v), t.Slots.most()/elem*elem)
	return v[:n], v[n:]
}

func slotStep(s *Schedule, what what, member int, a, b []byte) {
	s.steps = append(s.steps, step{what: what, peer: int32(member), a: a, b: b})
}

// take copies what the slot of a member has from an offset on, for this one alone, to b.
func take(s *Schedule, member, off int, b []byte) { takeOf(s, member, off, b, true) }

// takeOf is take of what others take, too, unless this is the sole one.
func takeOf(s *Schedule, member, off int, b []byte, sole bool) {
	s.steps = append(s.steps, step{what: slotCopy, sole: sole, peer: int32(member), other: int32(off), b: b})
}

// give begins a collective through the slots of the team, in which this member gives v and
// none more than n bytes, which all of them say alike.
func give(s *Schedule, t Team, v []byte, n int) {
	s.slots = t.Slots
	slotStep(s, slotGive, n, v, nil)
}

// giveInParts is give of n bytes at most, which slotPut puts there until slotLast.
func giveInParts(s *Schedule, t Team, n int) {
	give(s, t, nil, n)
	s.steps[len(s.steps)-1].other = inParts
}

// giveOf is give of a piece of a vector of so many bytes, of which a member gives as many at a time as its ring has room for.
func giveOf(s *Schedule, t Team, v []byte, n, whole int) {
	give(s, t, v, n)
	if whole > ringSlots*t.Slots.most() {
		s.steps[len(s.steps)-1].other = inRow
	}
}

// note says that the collective is of data of one member, for the next barrier.
func note(s *Schedule, t Team, root int) { noteOrder(s, t, root, 0) }

// noteOrder is note of a collective in which each member waits for those before it, if order is inOrder.
func noteOrder(s *Schedule, t Team, root int, order int32) {
	if t.slotted() && t.Slots.turns {
		s.slots = t.Slots
		s.steps = append(s.steps, step{what: slotNote, peer: int32(root), other: order})
	}
}

// grouped is the team with members that take turns on a processor side by side, root at the beginning: on a tree
// those then meet first, and what goes from one processor to another one does that last, or, down the tree, first.
func (t Team) grouped(s *Schedule, root int) Team {
	if !t.slotted() || t.Size < 3 || t.Ranks != nil || !t.Slots.turns || slices.Contains(t.Slots.processors, 0) {
		return t
	}
	ranks := append(s.ranks(t.Size)[:0], int32(root))
	for at := 0; at < len(ranks); at++ { // all of the processor of this one, then the next one that is left
		for i, on := range t.Slots.processors {
			if on == t.Slots.processors[ranks[at]] && !slices.Contains(ranks, int32(i)) {
				ranks = append(ranks, int32(i))
			}
		}
		for i := range t.Size {
			if at == len(ranks)-1 && !slices.Contains(ranks, int32(i)) {
				ranks = append(ranks, int32(i))
			}
		}
	}
	t.Ranks, t.Me = ranks, slices.Index(ranks, int32(t.Me))
	return t
}

// BarrierSlots lets each member look at the lines of all others, or one member first and the others at its line.
//
// Why: no messages. With more ranks than cores each has to run once, and not once a round; the one that
// comes last goes on at once, where a leader that lets the others go costs a turn more. But that one would wait for
// the turn of the root in a Bcast behind the barrier: where there was one last time, the root goes first.
// Cost: p cache lines.
func BarrierSlots(s *Schedule, t Team) {
	give(s, t, nil, 0)
	if !t.Slots.turns {
		slotStep(s, slotAwait, everyMember, nil, nil)
		return
	}
	s.steps[len(s.steps)-1].other = inBarrier
	slotStep(s, slotAwait, membersMet, nil, nil)
	slotStep(s, slotLast, 0, nil, nil)
}

// AllreduceSlots lets each member reduce the slots of all, as AllreduceDoubling does; of many
// bytes each reduces a part, which the others copy. From linearLeast bytes on more than two reduce as AllreduceLinear does.
//
// Why: no messages. No member waits for the result of another one where that takes longer than
// to compute it.
// Cost: p n (b + g), or 2 a + n (3 b + g).
func AllreduceSlots(s *Schedule, t Team, in, v []byte) {
	for at := 0; at < len(v); {
		part, _ := t.slotOf(v[at:], s.elem)
		given := in[at : at+len(part)]
		give(s, t, given, len(part))
		slotStep(s, slotAwait, everyMember, nil, nil)
		switch {
		case t.Size > 2 && len(v) >= linearLeast && s.count(v) >= t.Size:
			shareReduction(s, t, given, part, func(off int, mine []byte) { reduceLinear(s, t, given, off, mine, v, at) })
		case t.Size == 2 || t.Size*len(part) <= slotsReduced:
			reduceSlots(s, given, 0, part, inDoubling, t.Size == 2)
		default:
			shareReduction(s, t, given, part, func(off int, mine []byte) { reduceSlots(s, given, off, mine, inDoubling, true) })
		}
		at += len(part)
	}
}

const (
	slotsReduced = 32 << 10   // bytes that each member of many reduces rather than to wait for others
	linearLeast  = 16<<10 + 1 // bytes of a vector that messages reduce in the order of AllreduceLinear
)

// shareReduction is the rest of AllreduceSlots, where each member reduces a part.
func shareReduction(s *Schedule, t Team, in, v []byte, reduce func(off int, mine []byte)) {
	mine := s.cut(v, t.Size, t.Me, t.Me+1)
	reduce(len(s.cut(v, t.Size, 0, t.Me)), mine)
	give(s, t, mine, len(v)/t.Size+s.elem)
	slotStep(s, slotAwait, everyMember, nil, nil)
	for i := range t.Size {
		if i != t.Me {
			takeOf(s, i, 0, s.cut(v, t.Size, i, i+1), t.Size == 2)
		}
	}
}

// reduceLinear is reduceSlots of a piece of v, which begins at a byte of it, in the order of AllreduceLinear: that goes by
// which member v is the part of there.
func reduceLinear(s *Schedule, t Team, in []byte, off int, mine, v []byte, at int) {
	for i := range t.Size {
		from := max(len(s.cut(v, t.Size, 0, i)), at+off)
		to := min(len(s.cut(v, t.Size, 0, i+1)), at+off+len(mine))
		if from < to {
			from, to = from-at-off, to-at-off
			reduceSlots(s, in, off+from, mine[from:to], inLinear-i, true)
		}
	}
}

// reduceSlots reduces what the slots of all members have from an offset on to b. in is what this
// member has given. sole: no other member reads that of the slots.
func reduceSlots(s *Schedule, in []byte, off int, b []byte, top int, sole bool) {
	own := in[off : off+len(b)]
	if overlap(own, b) {
		own = nil
	}
	s.steps = append(s.steps, step{what: slotReduce, sole: sole, peer: int32(top), other: int32(off), a: own, b: b})
}

func overlap(a, b []byte) bool {
	at, bt := mem.AddressOf(a), mem.AddressOf(b)
	return at < bt+uint64(len(b)) && bt < at+uint64(len(a))
}

// ReduceSlots lets the root reduce the slots of all, as ReduceBinomial does. in and out may
// be the same.
//
// Why: as AllreduceSlots; the others do not wait.
// Cost: p n (b + g).
func ReduceSlots(s *Schedule, t Team, in, out []byte, root int) {
	whole := len(in)
	for more := true; more; more = len(in) > 0 { // once for nothing at all, too
		var part []byte
		part, in = t.slotOf(in, max(s.elem, 1))
		giveOf(s, t, part, len(part), whole)
		if t.Me == root {
			slotStep(s, slotAwait, everyMember, nil, nil)
			reduceSlots(s, part, 0, out[:len(part)], topFor(s, root), true)
			out = out[len(part):]
		}
	}
}

// ReduceScatterSlots lets each member reduce its part of the slots of all, as
// ReduceScatterHalving does.
//
// Why: as AllreduceSlots.
// Cost: n (2 b + g).
func ReduceScatterSlots(s *Schedule, t Team, in []byte, blocks [][]byte, out []byte) {
	off := 0
	for _, b := range blocks[:t.Me] {
		off += len(b)
	}
	give(s, t, in, len(in))
	slotStep(s, slotAwait, everyMember, nil, nil)
	reduceSlots(s, in, off, out, inHalving, true)
}

// reduceScatterPair is ReduceScatterSlots of two members, of which each gives what the other one reduces, piece by piece.
func reduceScatterPair(s *Schedule, t Team, blocks [][]byte, out []byte) {
	mine, theirs := blocks[t.Me], blocks[1-t.Me]
	if overlap(mine, out) {
		mine = s.Temp(len(mine))
		s.Copy(mine, blocks[t.Me])
	}
	whole, piece := max(len(mine), len(theirs)), t.Slots.most()/s.elem*s.elem
	for at := 0; at < whole; at += piece {
		give(s, t, pieceOf(theirs, at, piece), min(piece, whole-at))
		slotStep(s, slotAwait, everyMember, nil, nil)
		s.steps = append(s.steps, step{what: slotReduce, sole: true, peer: inHalving, a: pieceOf(mine, at, piece), b: pieceOf(out, at, piece)})
	}
}

// ScanSlots lets each member reduce the slots of those below it, as ScanChain does.
//
// Why: as AllreduceSlots; no member waits for members above.
// Cost: p n (b + g).
func ScanSlots(s *Schedule, t Team, in, v []byte, exclusive bool) {
	whole := len(in)
	for len(in) > 0 {
		part, rest := t.slotOf(in, s.elem)
		giveOf(s, t, part, len(part), whole)
		switch {
		case t.Me == 0 && exclusive:
		case t.Me == 0:
			s.Copy(v[:len(part)], part)
		default:
			slotStep(s, slotAwait, membersBelow, nil, nil)
			top := inScan
			if exclusive {
				top = inExscan
			}
			reduceSlots(s, part, 0, v[:len(part)], top, t.Size == 2)
		}
		if len(v) > 0 {
			v = v[len(part):]
		}
		in = rest
	}
}

// bcastLines is from how many bytes on a member of those on two processors reads a Bcast as if no other one did: 4 KiB for 4 of them
// 0.65 -> 0.55 us, 64 KiB 6.0 -> 4.2, 1 KiB 0.34 -> 0.37.
const bcastLines = 2 << 10

// BcastSlots lets all members copy from the slot of the root.
//
// Why: one copy, however many read it; the root does not wait.
// Cost: n b.
func BcastSlots(s *Schedule, t Team, buf []byte, root int) {
	whole, sole := len(buf), t.Size == 2 || t.Slots.twoCaches && len(buf) >= bcastLines
	for more := true; more; more = len(buf) > 0 { // once for nothing at all, too
		var part []byte
		part, buf = t.slotOf(buf, 1)
		if t.Me == root {
			giveOf(s, t, part, len(part), whole)
			continue
		}
		giveOf(s, t, nil, len(part), whole)
		slotStep(s, slotAwait, root, nil, nil)
		takeOf(s, root, 0, part, sole)
	}
}

// AllgatherSlots lets each member copy the slots of all others.
//
// Why: as AllreduceSlots; each block is written once, however many read it.
// Cost: p n b.
func AllgatherSlots(s *Schedule, t Team, mine []byte, blocks [][]byte) {
	if t.Size == 2 && len(blocks[0]) == len(blocks[1]) {
		swapSlots(s, t, mine, blocks[1-t.Me], mine, blocks[t.Me])
		return
	}
	longest := 0
	for _, b := range blocks {
		longest = max(longest, len(b))
	}
	piece := t.Slots.most()
	for at := 0; at < longest; at += piece {
		n := min(piece, longest-at)
		give(s, t, pieceOf(mine, at, n), n)
		if at == 0 {
			s.Copy(blocks[t.Me], mine) // the line is on its way to the others
		}
		slotStep(s, slotAwait, everyMember, nil, nil)
		for i, b := range blocks {
			if i != t.Me {
				takeOf(s, i, 0, pieceOf(b, at, n), false)
			}
		}
	}
}

// pieceOf returns n bytes of b from at on, or what there is of them.
func pieceOf(b []byte, at, n int) []byte { return b[min(at, len(b)):min(at+n, len(b))] }

// GatherSlots lets the root copy the slots of all others, piece by piece. Their blocks have n bytes each.
//
// Why: as ReduceSlots.
// Cost: p n b.
func GatherSlots(s *Schedule, t Team, mine []byte, blocks [][]byte, n, root int) {
	piece := t.Slots.most()
	for at := 0; at == 0 || at < n; at += piece { // once for nothing at all, too
		part := min(piece, n-at)
		if t.Me != root {
			give(s, t, mine[at:at+part], part)
			continue
		}
		give(s, t, nil, part)
		if at == 0 {
			s.Copy(blocks[root], mine)
		}
		slotStep(s, slotAwait, everyMember, nil, nil)
		for i, b := range blocks {
			if i != root {
				take(s, i, 0, b[at:at+part])
			}
		}
	}
}

// ScatterSlots lets all members copy their block from the slot of the root, piece by piece.
//
// Why: as BcastSlots.
// Cost: 2 n b, with n bytes in all.
func ScatterSlots(s *Schedule, t Team, all, mine []byte, root int) {
	whole, piece := len(mine), t.Slots.most()/t.Size
	if whole <= piece {
		scatterWhole(s, t, all, mine, root)
		return
	}
	piece &^= slotLine - 1
	for at := 0; at < whole; at += piece {
		n := min(piece, whole-at)
		if t.Me == root {
			givePieces(s, t, all, at, n, whole)
			continue
		}
		give(s, t, nil, piecesLen(t, n))
		slotStep(s, slotAwait, root, nil, nil)
		take(s, root, otherAt(t.Me, root)*n, mine[at:at+n])
	}
	if t.Me == root {
		s.Copy(mine, all[root*whole:(root+1)*whole])
	}
}

// scatterWhole is ScatterSlots in one piece, with the block of the root, too: that is one step.
func scatterWhole(s *Schedule, t Team, all, mine []byte, root int) {
	n := len(mine)
	if t.Me == root {
		give(s, t, all, t.Size*n)
		s.Copy(mine, all[root*n:(root+1)*n])
		return
	}
	give(s, t, nil, t.Size*n)
	slotStep(s, slotAwait, root, nil, nil)
	take(s, root, t.Me*n, mine)
}

// givePieces begins a collective in which this member gives n bytes, from at on, of each block for another member: all has
// those of all, of so many bytes.
func givePieces(s *Schedule, t Team, all []byte, at, n, each int) {
	giveInParts(s, t, piecesLen(t, n))
	to := lineMost // of the ring
	put := func(b []byte) {
		if len(b) > 0 {
			s.steps = append(s.steps, step{what: slotPut, other: int32(to), a: b})
			to += len(b)
		}
	}
	if n == each { // they lie side by side
		put(all[:t.Me*each])
		put(all[(t.Me+1)*each:])
	}
	for i := range t.Size {
		if i != t.Me && n < each {
			put(all[i*each+at:][:n])
		}
	}
	slotStep(s, slotLast, 0, nil, nil)
}

// piecesLen returns how many bytes pieces of n bytes for others have, which go into the ring however few those are.
func piecesLen(t Team, n int) int { return max((t.Size-1)*n, lineMost+1) }

// otherAt returns which of the pieces that another member gives is that of member.
func otherAt(member, giver int) int {
	if member > giver {
		return member - 1
	}
	return member
}

// scatterPair is ScatterSlots of two members: blocks of any length.
func scatterPair(s *Schedule, t Team, blocks [][]byte, mine []byte, root int) {
	if t.Me != root {
		BcastSlots(s, t, mine, root)
		return
	}
	BcastSlots(s, t, blocks[1-root], root)
	s.Copy(mine, blocks[root])
}

// swapPair is swapSlots of blocks of any length.
func swapPair(s *Schedule, t Team, out, in []Block) {
	to, from := out[1-t.Me], in[1-t.Me]
	if to.cursor != 0 {
		packed := Flat(s.Temp(s.Len(to)))
		s.copyBlock(packed, to)
		to = packed
	}
	room := from
	if from.cursor != 0 {
		room = Flat(s.Temp(s.Len(from)))
	}
	whole, piece := max(len(to.b), len(room.b)), t.Slots.most()/2 // both together have room
	for at := 0; at == 0 || at < whole; at += piece {
		give(s, t, pieceOf(to.b, at, piece), len(pieceOf(to.b, at, piece))+len(pieceOf(room.b, at, piece)))
		if at == 0 {
			s.copyBlock(in[t.Me], out[t.Me])
		}
		slotStep(s, slotAwait, everyMember, nil, nil)
		take(s, 1-t.Me, 0, pieceOf(room.b, at, piece))
	}
	if from.cursor != 0 {
		s.copyBlock(from, room)
	}
}

// oneStepMost is how many bytes AlltoallSlots gives with the block of the giver among them.
const oneStepMost = 2 << 10

// AlltoallSlots lets each member copy its blocks from the slots of all, piece by piece. More than two give their own blocks, too, where
// they are short: that is one step.
//
// Why: as AllgatherSlots.
// Cost: p a + 2 n b, with n bytes in all.
func AlltoallSlots(s *Schedule, t Team, out, in []byte) {
	each := len(out) / t.Size
	if t.Size == 2 {
		to, me := (1-t.Me)*each, t.Me*each
		swapSlots(s, t, out[to:to+each], in[to:to+each], out[me:me+each], in[me:me+each])
		return
	}
	me := t.Me * each
	if len(out) <= oneStepMost {
		give(s, t, out, len(out))
		s.Copy(in[me:me+each], out[me:me+each])
		slotStep(s, slotAwait, everyMember, nil, nil)
		for i := range t.Size {
			if i != t.Me {
				take(s, i, me, in[i*each:(i+1)*each])
			}
		}
		return
	}
	piece := t.Slots.most() / max(t.Size-1, 1) &^ (slotLine - 1)
	for at := 0; at < each; at += piece {
		n := min(piece, each-at)
		givePieces(s, t, out, at, n, each)
		if at == 0 {
			s.Copy(in[me:me+each], out[me:me+each])
		}
		slotStep(s, slotAwait, everyMember, nil, nil)
		for i := range t.Size {
			if i != t.Me {
				take(s, i, otherAt(t.Me, i)*n, in[i*each+at:][:n])
			}
		}
	}
}

// reduceNearMost is how many bytes one rank of a host reduces for all: 8 ranks on two hosts took
// 54 us by slots and 108 by messages for 64 KiB, 1.06 and 0.88 ms for 1 MiB.
const reduceNearMost = 256 << 10

// reduceNear reduces among the ranks of a host.
func reduceNear(s *Schedule, t Team, in, out []byte, root int) {
	if t.slotted() && len(in) <= reduceNearMost && (len(in) == 0 || t.near(s.elem)) {
		ReduceSlots(s, t, in, out, root)
		return
	}
	ReduceBinomial(s, t, in, out, root)
}

// bcastNear sends to the ranks of a host.
func bcastNear(s *Schedule, t Team, buf []byte, root int) {
	if t.slotted() {
		BcastSlots(s, t, buf, root)
		return
	}
	BcastBinomial(s, t, buf, root)
}
