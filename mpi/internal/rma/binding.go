package rma

// Binding says which of several ghosts of a host serves which Put or Get on memory of its ranks.
// Locks are always for the one that Ghosts.Of tells. So are accumulates, in whose order they are, but where
// all ranks of a window bind by segment: there each element has one owner, the ghost whose part its first byte
// is in.
type Binding uint8

// The bindings.
const (
	ByRank       Binding = iota // the one of the rank
	BySegment                   // the one that has this part of the memory of the host
	ByTurn                      // one after the other
	ByOperations                // the one that this rank has asked for the fewest since the last flush
	ByBytes                     // the one that it has moved the fewest bytes with since then
)

// A window keeps what is under way to each of those ghosts as it does for a rank: as a target of
// its own, behind those of the ranks. So a flush of all covers them, and one of a rank goes over
// others, too. Locks are there when Lock returns, so Puts and Gets are bound to no ghost in any
// epoch; a lock is given back when all of them have answered.

// Other is one more ghost that serves the memory of a rank.
type Other struct {
	World int32 // its number there
	Key   uint32
	Addr  uint64
}

// others are the targets, beside the one of a rank, for its memory.
type others struct {
	first, n int32
	cuts     []cut // BySegment
}

// cut is where in the memory of a rank the part of a target ends.
type cut struct {
	end    uint64
	target int32
}

// alone reports whether one target is all that there is for the memory of a rank.
func (t *target) alone() bool { return t.others == nil && t.Own.twin == 0 }

// beside yields the targets beside the one of a rank.
func (t *target) beside() func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		if t.Own.twin != 0 && !yield(t.Own.twin) {
			return
		}
		for i := int32(0); t.others != nil && i < t.others.n; i++ {
			if !yield(t.others.first + i) {
				return
			}
		}
	}
}

// part returns the part of the memory of a rank that off is in: all that is behind the last one is its own.
func (o *others) part(rank int32, off uint64) cut {
	for _, c := range o.cuts {
		if off < c.end {
			return c
		}
	}
	return cut{off + partMost, rank}
}

// partMost is how long a part is that has no end, in bytes.
const partMost = 1 << 46

// piece returns how many of n bytes from off on are for one target.
func (o *others) piece(off uint64, n int) int {
	return int(min(uint64(n), o.part(0, off).end-off))
}

// share returns how many bytes of an accumulate on the memory of a rank, from the next one on, are elements that
// o.Target owns.
func (o *others) share(rank int32, a *Op, element int) int {
	off := a.first()
	c := o.part(rank, off)
	if c.target != a.Target {
		return 0
	}
	return (int(c.end-off) + element - 1) / element * element
}

// spread is what this rank has asked ghosts for since its last flush.
type spread struct {
	binding Binding
	owned   bool // parts are, by ghosts that do accumulates on them
	turn    int32
	loads   []load // by ghost of the job
	serving []service
	lent    lending
}

// load is what one was asked for.
type load struct{ operations, bytes int }

// less reports whether a is less than b, as a binding counts.
func (a load) less(b load, by Binding) bool {
	if by == ByBytes {
		return a.bytes < b.bytes
	}
	return a.operations < b.operations
}

// choose returns the target for a Put or Get of n bytes from off on of the memory of a rank that has
// others.
func (w *flow) choose(rank int32, off uint64, n int) (int32, *target) {
	s, t, best := &w.spread, &w.targets[rank], rank
	switch s.binding {
	case BySegment:
		best = t.others.part(rank, off).target
	case ByTurn:
		if s.turn = (s.turn + 1) % (t.others.n + 1); s.turn > 0 {
			best = t.others.first + s.turn - 1
		}
	case ByOperations, ByBytes:
		for i := t.others.first; i < t.others.first+t.others.n; i++ {
			if loadOf(w, i).less(*loadOf(w, best), s.binding) && !w.in.Lost(w.targets[i].world) {
				best = i
			}
		}
	}
	if best != rank && w.in.Lost(w.targets[best].world) {
		best = rank
	}
	w.note(best, n)
	return best, &w.targets[best]
}

// bind makes a Put or Get one on the target that does it, and returns that.
func bind(w *flow, o *Op) *target {
	rank, t := o.Target, w.target(o.Target)
	if t.Own.twin != 0 && t.Follows {
		rank, t = follow(w, rank, t)
	}
	if t.others != nil {
		rank, t = w.choose(rank, uint64(o.At), o.Layout.Rest())
	}
	o.Target = rank
	return t
}

// ownerOf returns the target for an accumulate on the element at off of the memory of a rank.
func ownerOf(w *flow, rank int32, off uint64) int32 {
	if t := &w.targets[rank]; w.spread.owned && t.others != nil {
		return t.others.part(rank, off).target
	}
	return rank
}

// note counts an operation on so many bytes.
func (w *flow) note(i int32, n int) {
	l := loadOf(w, i)
	l.operations++
	l.bytes += n
}

// loadOf returns what the server of a target was asked for.
func loadOf(w *flow, i int32) *load {
	return &w.spread.loads[int(w.targets[i].world)-len(w.ghosts.Of)]
}

// serverOf returns the target of those for the memory of a rank whose server a process is.
func serverOf(w *flow, rank, world int32) int32 {
	if t := &w.targets[rank]; t.world != world {
		for i := range t.beside() {
			if w.targets[i].world == world {
				return i
			}
		}
	}
	return rank
}

// meetOthers makes the targets for the ghosts that serve memory of ranks beside theirs.
func meetOthers(w *flow) {
	if w.spread.binding == ByRank {
		return
	}
	w.spread.owned = w.spread.binding == BySegment
	for i := range w.ranks {
		w.spread.owned = w.spread.owned && w.targets[i].Segments
		from := &w.targets[i]
		if from.client == 0 || len(from.Others) == 0 {
			continue
		}
		if w.spread.loads == nil {
			w.spread.loads = make([]load, len(w.ghosts.ranks))
		}
		more := &others{first: int32(len(w.targets)), n: int32(len(from.Others))}
		from.others = more
		for _, other := range w.targets[i].Others {
			t := target{Remote: w.targets[i].Remote, home: w.targets[i].home, world: other.World, client: w.targets[i].client}
			t.Key, t.Addr = other.Key, other.Addr
			t.by = w.counts.by(ByGhost + int(t.world) - len(w.ghosts.Of))
			t.chunk = int32(w.in.ActiveMax(t.world))
			t.plain = t.Key != 0 && !w.in.Near(t.world)
			t.reached = t.plain && w.in.CanRead(t.world)
			w.targets = append(w.targets, t)
		}
	}
	if w.spread.binding == BySegment {
		cutAll(w)
	}
}

// segmentAlign is what segments begin at multiples of, so that no aligned element is divided.
const segmentAlign = 16

// cutAll divides the memory that the ranks of each host have in the window among its ghosts, in
// the order of ranks: each has as many bytes of it, or fewer.
func cutAll(w *flow) {
	total, before := map[int32]uint64{}, map[int32]uint64{} // by the first ghost of the host
	for i := range w.ranks {
		if t := &w.targets[i]; t.others != nil {
			total[w.ghosts.on[t.home][0]] += aligned(t.Size)
		}
	}
	for i := range w.ranks {
		t := &w.targets[i]
		if t.others == nil {
			continue
		}
		on := w.ghosts.on[t.home]
		share := max(aligned((total[on[0]]+uint64(len(on))-1)/uint64(len(on))), segmentAlign)
		at := before[on[0]]
		before[on[0]] = at + aligned(t.Size)
		for k := at / share; k < uint64(len(on)) && k*share < at+t.Size; k++ {
			t.others.cuts = append(t.others.cuts, cut{min((k+1)*share-at, t.Size), serverOf(w, int32(i), on[k])})
		}
	}
}

func aligned(n uint64) uint64 { return (n + segmentAlign - 1) / segmentAlign * segmentAlign }

// flushOthers is Flush of a rank whose memory several serve.
func flushOthers(w *flow, rank int32) error {
	clear(w.spread.loads)
	t := w.target(rank)
	all := w.ping(rank, t)
	for i := range t.beside() {
		all = join(all, w.ping(i, w.target(i)))
	}
	all = join(all, w.settle(rank))
	for i := range t.beside() {
		all = join(all, w.settle(i))
	}
	return join(all, w.gone(rank))
}

// quiet completes all that others than the one that keeps its lock do for this rank with the
// memory of a rank: the rank that gets the lock next sees it.
func quiet(w *flow, rank int32) (all error) {
	t := w.target(rank)
	if t.alone() {
		return nil
	}
	clear(w.spread.loads)
	for i := range t.beside() {
		all = join(all, w.ping(i, w.target(i)))
	}
	for i := range t.beside() {
		all = join(all, w.settle(i))
	}
	return all
}

// quietAll is quiet for all ranks.
func quietAll(w *flow) (all error) {
	if len(w.targets) == w.ranks {
		return nil
	}
	clear(w.spread.loads)
	for i := w.ranks; i < len(w.targets); i++ {
		all = join(all, w.ping(int32(i), &w.targets[i]))
	}
	for i := w.ranks; i < len(w.targets); i++ {
		all = join(all, w.settle(int32(i)))
	}
	return all
}
