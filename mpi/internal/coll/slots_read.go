package coll

import "github.com/xwarp/xwarp/internal/base/mem"

// copy copies from the slot of a member.
func (sl *Slots) copy(st *step) {
	from := sl.slot(int(st.peer), int(st.other), len(st.b))
	mem.CopyAcross(st.b, from)
	if st.sole {
		sl.read(int(st.peer), from)
	}
}

// reduced comes behind the reading of the slots of all others.
func (sl *Slots) reduced(st *step) {
	if st.sole {
		for _, member := range sl.others {
			sl.read(member, sl.slot(member, int(st.other), len(st.b)))
		}
	}
}

// read comes behind the reading of a part of a member's vector that no other one reads: see [mem.Dirty]. Not where both run on
// one processor. Where several readers would do so, lines go from one to the other: Allgather of 64 KiB on 4 ranks 23 -> 50 us.
func (sl *Slots) read(member int, part []byte) {
	if len(part) >= slotLine && sl.beside>>member&1 == 0 {
		mem.Dirty(part)
	}
}
