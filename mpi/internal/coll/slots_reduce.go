package coll

import "math/bits"

// reduce sets v to the reduction of what the slots of all members have from an offset on, in
// the order in which messages do it, so that a call rounds as it did before there were slots:
// that of AllreduceDoubling, AllreduceLinear, ReduceScatterHalving, ScanChain or, with the member at its top,
// ReduceBinomial. own is that part of this member's vector if it lies somewhere else than v, too:
// see Ready.
func (sl *Slots) reduce(op Op, v, own []byte, off, top int) {
	p := len(sl.sequence)
	n, folded, mirror := p, 0, 0 // mirror: bits of a number that are in reverse
	switch top {
	case inHalving:
		mirror = bits.Len(uint(powerBelow(p))) - 1
		fallthrough
	case inDoubling:
		top, n = 0, powerBelow(p)
		folded = p - n
	case inScan:
		sl.fold(op, v, own, off, sl.me+1)
		return
	case inExscan:
		sl.fold(op, v, own, off, sl.me)
		return
	default:
		if top <= inLinear {
			sl.reduceFrom(op, v, own, off, inLinear-top)
			return
		}
	}
	var done [slotLevels][]byte // of 1, 2, 4, ... numbers before i, by the bits of i
	for i := range n {
		level, acc, member := bits.TrailingZeros(^uint(i)), v, i
		if i < n-1 {
			acc = sl.scratch[level*sl.most():][:len(v)]
		}
		if mirror != 0 {
			member = int(bits.Reverse(uint(i)) >> (bits.UintSize - mirror))
		}
		switch {
		case member < folded:
			copy(acc, sl.operand(2*member+1, own, off, len(v)))
			op.Reduce(sl.operand(2*member, own, off, len(v)), acc)
		case level == 0 && i < n-1: // it is only read
			acc = sl.operand((member+folded+top)%p, own, off, len(v))
		default:
			copy(acc, sl.operand((member+folded+top)%p, own, off, len(v)))
		}
		for k := 0; i>>k != 0; k++ {
			if i>>k&1 != 0 {
				op.Reduce(done[k], acc)
			} else if i < n-1 {
				break
			}
		}
		done[level] = acc
	}
}

// reduceFrom is reduce in the order of a member, those below it, downwards, and those above, upwards, where that of operands is of no matter.
func (sl *Slots) reduceFrom(op Op, v, own []byte, off, member int) {
	copy(v, sl.operand(member, own, off, len(v)))
	for i := member - 1; i >= 0; i-- {
		op.Reduce(sl.operand(i, own, off, len(v)), v)
	}
	for i := member + 1; i < len(sl.sequence); i++ {
		op.Reduce(sl.operand(i, own, off, len(v)), v)
	}
}

// fold is reduce of the first n members, one after the other.
func (sl *Slots) fold(op Op, v, own []byte, off, n int) {
	sum := sl.operand(0, own, off, len(v))
	for i := 1; i < n; i++ {
		next := v
		if (n-i)%2 == 0 { // so that the last one is v
			next = sl.scratch[:len(v)]
		}
		copy(next, sl.operand(i, own, off, len(v)))
		op.Reduce(sum, next)
		sum = next
	}
	if n == 1 {
		copy(v, sum)
	}
}

// operand is slot for what is only read.
func (sl *Slots) operand(member int, own []byte, off, n int) []byte {
	if member == sl.me && own != nil {
		return own
	}
	return sl.slot(member, off, n)
}

// What stands for no member at the top.
const (
	inDoubling = -1 - iota
	inHalving
	inScan   // of the members up to this one
	inExscan // of those before it
	inLinear // and below: as AllreduceLinear the part of member 0, 1, ...
)

// slotLevels is how many bits the number of a member has at most.
const slotLevels = 7
