package rma

// LostGhosts returns, for each ghost of the job, 1 if it is lost to this rank, and else 0.
func (w *flow) LostGhosts() []int64 {
	lost := make([]int64, len(w.ghosts.ranks))
	for i := range lost {
		if w.in.Lost(int32(len(w.ghosts.Of) + i)) {
			lost[i] = 1
		}
	}
	return lost
}

// TakeOver makes the ranks that ghosts have served which are lost serve themselves, and reports
// whether this one is among them. All ranks call it with the same, behind the end of an
// epoch: nobody has a lock, and nothing is under way, so the new servers begin without any
// knowledge of what the ghosts have had. Their memory is not registered; all operations are messages.
func (w *flow) TakeOver(lost []int64) (own bool) {
	for i := range w.ranks {
		t := &w.targets[i]
		if t.client == 0 || lost[int(t.world)-len(w.ghosts.Of)] == 0 {
			continue
		}
		t.world, t.client, t.Client, t.Key, t.plain, t.reached = t.home, 0, 0, 0, false, false
		t.others = nil
		t.asked, t.refused, t.acks = false, false, 0
		t.by, t.chunk = ByTarget, selfChunk
		if own = own || i == int(w.me); i == int(w.me) {
			t.by = ByOwn
		} else {
			t.chunk = int32(w.in.ActiveMax(t.home))
		}
	}
	return own
}
