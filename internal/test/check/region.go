package check

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// Region is memory that peers write to and read from, as the model follows it.
type Region struct {
	Life  *Life
	Name  string
	Words bool // holds words for atomics, and nothing else

	base   []byte      // what it held when it was last looked at
	since  []uint32    // for each byte: in looks, since when it was that, as far as is known
	looks  []mono.Time // when it was looked at
	writes []*Op       // that may have changed it since, in posting order
	views  []*view     // Reads under way
	cells  []cell      // with Words
}

func (r *Region) String() string { return fmt.Sprintf("region %q of %v", r.Name, r.Life) }

// Grant is a key and what it permits.
type Grant struct {
	Region *Region
	Key    uint32
	Off    int // first byte in Region
	Len    int
	Access verbs.Access

	from   mono.Time // it surely works from here on; Never until it is known to
	mayEnd mono.Time // it may have ended from here on
	end    mono.Time // it surely works no more
	enders []*Op     // requests that are to end it; nil for a call of the owner
}

// ends notes that o, or with nil a call, may end g from now on.
func (g *Grant) ends(o *Op, now mono.Time) {
	g.mayEnd = min(g.mayEnd, now)
	g.enders = append(g.enders, o)
}

// verdict is what the target has to say to a request.
type verdict uint8

const (
	must    verdict = iota // grant it
	may                    // do either: the key comes or goes meanwhile
	mustNot                // refuse it
)

// verdict returns what had to become of an operation that was posted and has
// ended by now.
func (o *Op) verdict(now mono.Time) verdict {
	v := must
	switch {
	case o.Wrong != "":
		return mustNot
	case o.Grant == nil:
	case o.Grant.end <= o.posted:
		return mustNot
	case min(o.Grant.mayEnd, o.Grant.Region.Life.ended) <= now || o.Grant.from > o.posted:
		v = may // it ended meanwhile, or will not be known to the next life
	}
	if o.Inv != nil && o.Code != verbs.OpBindMW {
		switch only := len(o.Inv.enders) == 1 && o.Inv.enders[0] == o; {
		case o.Inv.end <= o.posted && !only:
			return mustNot
		case !only || o.Inv.from > o.posted || o.Inv.Region.Life.ended <= now:
			v = may
		}
	}
	return v
}

// view is what a Read may return: what the region held when it was posted, and
// what was written until it was done.
type view struct {
	op    *Op
	base  []byte
	since []mono.Time // for each byte of base
	may   []*Op
}

// offset returns where in the region the bytes of o begin.
func (o *Op) offset() int { return o.Grant.Off + o.Off }

// covers reports whether o writes byte i of its region.
func (o *Op) covers(i int) bool { return i >= o.offset() && i < o.offset()+o.Len }

// write notes that o may change the region from now on.
func (r *Region) write(o *Op) {
	r.writes = append(r.writes, o)
	for _, v := range r.views {
		v.may = append(v.may, o)
	}
}

// withdraw takes back what write noted.
func (r *Region) withdraw(o *Op) {
	same := func(x *Op) bool { return x == o }
	r.writes = slices.DeleteFunc(r.writes, same)
	for _, v := range r.views {
		v.may = slices.DeleteFunc(v.may, same)
	}
}

// read notes that o reads the region from now on.
func (r *Region) read(o *Op) {
	at := o.offset()
	o.view = &view{op: o, base: bytes.Clone(r.base[at : at+o.Len]), may: append([]*Op(nil), r.writes...)}
	for _, look := range r.since[at : at+o.Len] {
		o.view.since = append(o.view.since, r.looks[look])
	}
	r.views = append(r.views, o.view)
}

// forget ends the view of a Read that is done.
func (r *Region) forget(v *view) {
	for i := range r.views {
		if r.views[i] == v {
			r.views = append(r.views[:i], r.views[i+1:]...)
			return
		}
	}
}

// over is the time after which o cannot change memory any more.
func (o *Op) over(linger mono.Duration) mono.Time {
	if o.done && o.placed == mono.Never {
		return o.ended.Add(linger) // its last datagrams may still be on the way
	}
	return o.placed
}

// explain reports whether the byte value may be at offset i of the region, where
// base was since the time given and until writes came that may have happened.
// visible tells which of them surely had, before the moment of looking; hidden
// which surely had not.
func explain(value, base byte, since mono.Time, i int, may []*Op, linger mono.Duration, visible, hidden func(*Op) bool) bool {
	newest := mono.Time(-1) // posting time of the newest write that must be visible
	for _, w := range may {
		if w.covers(i) && visible(w) {
			newest = max(newest, w.posted)
		}
	}
	for _, w := range may {
		if !w.covers(i) || hidden(w) || w.over(linger) <= newest { // overwritten since
			continue
		}
		if byteOf(w.ID, i-w.offset()) == value {
			return true
		}
	}
	return newest < since && value == base
}

// look compares what the region holds now with what it may hold, and makes it
// the base of what comes. It returns the offset of the first wrong byte, or -1.
func (r *Region) look(mem []byte, now mono.Time, linger mono.Duration) int {
	visible := func(w *Op) bool { return w.placed <= now }
	hidden := func(*Op) bool { return false }
	for lo := 0; lo < len(mem); {
		hi := r.quiet(lo)
		if !bytes.Equal(mem[lo:hi], r.base[lo:hi]) {
			for mem[lo] == r.base[lo] {
				lo++
			}
			return lo
		}
		if lo = hi; lo < len(mem) {
			if !explain(mem[lo], r.base[lo], r.looks[r.since[lo]], lo, r.writes, linger, visible, hidden) {
				return lo
			}
			lo++
		}
	}
	r.settle(mem, now, linger)
	return -1
}

// settle makes mem the base of what comes, and forgets the writes that are over.
// A byte that is what it was is so since then, unless one of these put it there.
func (r *Region) settle(mem []byte, now mono.Time, linger mono.Duration) {
	look := uint32(len(r.looks))
	r.looks = append(r.looks, now)
	open := r.writes[:0]
	for _, w := range r.writes {
		over := w.over(linger) <= now
		for i := max(0, w.offset()); i < min(w.offset()+w.Len, len(mem)); i++ {
			if mem[i] != r.base[i] || over && mem[i] == byteOf(w.ID, i-w.offset()) {
				r.since[i] = look
			}
		}
		if !over {
			open = append(open, w)
		}
	}
	clear(r.writes[len(open):])
	r.writes = open
	copy(r.base, mem)
}

// quiet returns the end of the bytes from lo on that nothing may have written.
func (r *Region) quiet(lo int) int {
	end := len(r.base)
	for _, w := range r.writes {
		switch at := w.offset(); {
		case w.covers(lo):
			return lo
		case at > lo && w.Len > 0:
			end = min(end, at)
		}
	}
	return end
}

// returned compares what a Read returned with what it may. It returns the
// offset of the first wrong byte, or -1.
func (v *view) returned(data []byte, linger mono.Duration) int {
	o := v.op
	fence := len(o.Stream.ops)
	for _, later := range o.Stream.ops[o.pos+1:] {
		if later.Fence {
			fence = later.pos
			break
		}
	}
	visible := func(w *Op) bool {
		// RFC 5040, section 5.5: the response follows the Writes before it.
		return w.placed <= o.posted || w.Stream == o.Stream && w.pos < o.pos && w.Wrong == ""
	}
	hidden := func(w *Op) bool { return w.Stream == o.Stream && w.pos >= fence }
	for i := range data {
		if !explain(data[i], v.base[i], v.since[i], o.offset()+i, v.may, linger, visible, hidden) {
			return i
		}
	}
	return -1
}
