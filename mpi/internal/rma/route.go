package rma

import "github.com/xwarp/xwarp/mpi/internal/p2p"

// What does the operations on memory that a ghost serves: that ghost, or the rank itself. Which
// it is changes where all ranks of the window are in one call and nothing is under way, so that
// accumulates are always done by one process, in their order. Locks stay with the ghost: a
// rank that has one keeps it.

// Routes are the routes of a window.
type Routes struct{ w *flow }

// RoutesOf returns those of a window. It is for code that is inside.
func RoutesOf(w *Window) Routes { return Routes{&w.flow} }

// Serves reports whether ghosts serve memory of any rank, so that routes may change.
func (r Routes) Serves() bool {
	for i := range r.w.targets {
		if r.w.targets[i].Client != 0 {
			return true
		}
	}
	return false
}

// Differ reports whether Change would change anything.
func (r Routes) Differ(lost []int64, ghosts []bool) bool {
	for i := range r.w.ranks {
		t := &r.w.targets[i]
		if t.Client != 0 && (misses(r.w, t, lost) || ghosts != nil && (t.client != 0) != ghosts[i]) {
			return true
		}
	}
	return false
}

// Change lets ranks serve themselves whose ghosts are lost, and of all others that have one the
// ghost do the operations on their memory, or not, as ghosts says of each rank: nil, of none. It
// reports whether this rank's ghost is lost. All ranks of the window have flushed before, and
// say the same. Where ghosts are lost they are behind the end of an epoch, too: no rank has
// a lock, so the new servers begin without any knowledge of what the ghosts have had.
func (r Routes) Change(lost []int64, ghosts []bool) (own bool) {
	w := r.w
	for i := range w.ranks {
		t := &w.targets[i]
		if t.Client == 0 {
			continue
		}
		on := t.client != 0
		if ghosts != nil {
			on = ghosts[i]
		}
		missed := misses(w, t, lost)
		if on = on && !missed; on != (t.client != 0) {
			w.turn(int32(i))
		}
		if missed {
			t.Client, t.Own = 0, Access{}
			t.asked, t.refused, t.acks = false, false, 0
			own = own || i == int(w.me)
		}
	}
	return own
}

// misses reports whether a ghost is among the lost ones that does accumulates on the memory of a rank.
func misses(w *flow, t *target, lost []int64) bool {
	missed := w.ghosts.misses(lost, w.ghosts.Of[t.home])
	for i := 0; w.spread.owned && i < len(t.Others); i++ {
		missed = missed || w.ghosts.misses(lost, t.Others[i].World)
	}
	return missed
}

// Lost returns, for each ghost of the job, 1 if it is lost to this rank, and else 0.
func (r Routes) Lost() []int64 {
	w := r.w
	lost := make([]int64, len(w.ghosts.ranks))
	for i := range lost {
		if w.in.Lost(int32(len(w.ghosts.Of) + i)) {
			lost[i] = 1
		}
	}
	return lost
}

// turn changes which process does the operations on the memory of a rank.
func (w *flow) turn(rank int32) {
	t := w.target(rank)
	t.Key, t.Own.Key = t.Own.Key, t.Key
	t.Addr, t.Own.Addr = t.Own.Addr, t.Addr
	t.others, t.Own.others = t.Own.others, t.others
	assign(w, t, t.client == 0)
	if rank == w.me {
		w.spread.lent.set(w.in, t.client != 0)
	}
	w.reach(rank, t)
	mirror(w, t)
}

// assign makes a target the ghost of a rank, or the rank.
func assign(w *flow, t *target, ghost bool) {
	if !ghost {
		t.client, t.world, t.by = 0, t.home, ByTarget
		return
	}
	t.client, t.world = t.Client, w.ghosts.Of[t.home]
	t.by = w.counts.by(ByGhost + int(t.world) - len(w.ghosts.Of))
}

// Follow says of each rank whether Puts and Gets are to follow at once which process it wants to do them. It
// is called where Change may be.
func (r Routes) Follow(follows []bool) {
	for i := range r.w.ranks {
		r.w.targets[i].Follows = follows[i]
	}
	pair(r.w)
}

// reach finds out how the process that does the operations on the memory of a rank can be reached.
func (w *flow) reach(rank int32, t *target) {
	if w.own(rank) {
		t.by, t.chunk, t.plain, t.reached = ByOwn, selfChunk, false, false
		return
	}
	t.chunk = int32(w.in.ActiveMax(t.world))
	t.plain = t.Key != 0 && !w.in.Near(t.world)
	t.reached = t.plain && w.in.CanRead(t.world)
}

// keeper returns the process that keeps the locks of a rank, and the number that it knows the rank by.
func (w *flow) keeper(t *target) (world, client int32) {
	if t.Client == t.client {
		return t.world, t.client
	}
	return w.ghosts.Of[t.home], t.Client
}

// guard sends a word about the lock of a rank.
func (w *flow) guard(rank, what int32, id uint32) error {
	t := w.target(rank)
	world, client := w.keeper(t)
	if world == t.world {
		return w.word(rank, what, id)
	}
	a := p2p.Active{Context: w.layers.of(client, w.context), What: what | client<<clientShift, ID: id}
	return w.deliver(world, &a)
}

// deliver sends a message to a process. It waits for room.
func (w *flow) deliver(world int32, a *p2p.Active) error {
	for !w.in.TryActive(world, a) {
		if err := w.in.Trouble(w.context, world); err != nil {
			return err
		}
		w.in.Progress()
	}
	return nil
}

// Own reports whether a ghost can serve the memory of this rank.
func (r Routes) Own() bool { return r.w.targets[r.w.me].Client != 0 }

// Now reports whether a ghost does the operations on the memory of this rank.
func (r Routes) Now() bool { return r.w.targets[r.w.me].client != 0 }
