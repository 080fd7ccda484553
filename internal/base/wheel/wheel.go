// Package wheel is a hierarchical timing wheel (Varghese and Lauck, SOSP 1987):
// arming, cancelling and firing cost the same however many timers there are.
package wheel

import (
	"math/bits"

	"github.com/xwarp/xwarp/internal/base/mono"
)

const (
	tickShift = 10 // a tick is 1.024 us
	slotBits  = 6
	slots     = 1 << slotBits
	levels    = 5 // 64^5 ticks are 18 minutes; later timers are put off on the way
)

// none ends a list, and is the slot of a timer that is not armed.
const none = -1

type timer struct {
	at         mono.Time
	next, prev int32 // in its slot; prev of the first is none
	slot       int32 // level*slots + index, or none
}

// Wheel holds one timer per id. Ids are small numbers that the owner hands
// out, so that a timer is 24 bytes without a pointer.
type Wheel struct {
	cur    int64 // tick up to which everything has fired
	heads  [levels * slots]int32
	used   [levels]uint64 // which slots have a timer
	timers []timer
}

// Init makes w ready; time begins at now.
func (w *Wheel) Init(now mono.Time) {
	*w = Wheel{cur: int64(now) >> tickShift, timers: w.timers[:0]}
	for i := range w.heads {
		w.heads[i] = none
	}
}

// Grow makes room for the ids below n.
func (w *Wheel) Grow(n int) {
	for len(w.timers) < n {
		w.timers = append(w.timers, timer{at: mono.Never, slot: none})
	}
}

// Arm makes a timer fire at the given time, or up to a tick later. It replaces
// the time that it was armed for.
func (w *Wheel) Arm(id int32, at mono.Time) {
	w.Cancel(id)
	if at == mono.Never {
		return
	}
	w.timers[id].at = at
	w.insert(id)
}

// Sooner makes a timer fire no later than at. It is what the owner of timers
// that mostly move away calls: a timer that fires too early is armed anew.
func (w *Wheel) Sooner(id int32, at mono.Time) {
	if at < w.timers[id].at {
		w.Arm(id, at)
	}
}

// Cancel disarms a timer.
func (w *Wheel) Cancel(id int32) {
	t := &w.timers[id]
	if t.slot == none {
		return
	}
	if t.next != none {
		w.timers[t.next].prev = t.prev
	}
	if t.prev != none {
		w.timers[t.prev].next = t.next
	} else if w.heads[t.slot] = t.next; t.next == none {
		w.used[t.slot>>slotBits] &^= 1 << (t.slot & (slots - 1))
	}
	t.slot, t.at = none, mono.Never
}

// insert puts a timer into the slot of its time as seen from now.
func (w *Wheel) insert(id int32) {
	t := &w.timers[id]
	tick := max((int64(t.at)+1<<tickShift-1)>>tickShift, w.cur) // rounded up: never early
	delta := tick - w.cur
	level := 0
	for level < levels-1 && delta >= 1<<(slotBits*(level+1)) {
		level++
	}
	if last := int64(1)<<(slotBits*levels) - 1; delta > last {
		tick = w.cur + last
	}
	t.slot = int32(level*slots) + int32(tick>>(slotBits*level)&(slots-1))
	t.prev, t.next = none, w.heads[t.slot]
	if t.next != none {
		w.timers[t.next].prev = id
	}
	w.heads[t.slot] = id
	w.used[level] |= 1 << (t.slot & (slots - 1))
}

// Expire returns a timer that is due at now, which is not armed any more. Call
// it until there is none.
func (w *Wheel) Expire(now mono.Time) (id int32, ok bool) {
	target := int64(now) >> tickShift
	for {
		if id := w.heads[w.cur&(slots-1)]; id != none {
			w.Cancel(id)
			return id, true
		}
		if w.cur >= target {
			return 0, false
		}
		next := w.nextTick()
		if next > target {
			w.cur = target
			return 0, false
		}
		w.cur = next
		w.cascade()
	}
}

// Deadline returns when Expire must be called: not later than the first timer
// is due. It may be earlier, when timers far away move to a finer level.
func (w *Wheel) Deadline() mono.Time {
	next := w.nextTick()
	if next == never {
		return mono.Never
	}
	return mono.Time(next << tickShift)
}

const never = 1<<63 - 1

// nextTick returns the first tick at which a slot begins that is not empty.
func (w *Wheel) nextTick() int64 {
	next := int64(never)
	for level, used := range w.used {
		if used == 0 {
			continue
		}
		at := w.cur >> (slotBits * level)
		first := 1 // the present slot of a coarse level has been emptied: what is there is a turn away
		if level == 0 {
			first = 0
		}
		ahead := bits.RotateLeft64(used, -(int(at) + first))
		next = min(next, (at+int64(first+bits.TrailingZeros64(ahead)))<<(slotBits*level))
	}
	return next
}

// cascade moves the timers of the coarse slots that begin now to finer ones.
func (w *Wheel) cascade() {
	for level := levels - 1; level > 0; level-- {
		if w.cur&(1<<(slotBits*level)-1) != 0 {
			continue
		}
		i := level*slots + int(w.cur>>(slotBits*level)&(slots-1))
		id := w.heads[i]
		w.heads[i] = none
		w.used[level] &^= 1 << (i & (slots - 1))
		for id != none {
			next := w.timers[id].next
			w.insert(id)
			id = next
		}
	}
}
