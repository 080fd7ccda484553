package rma

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

// TakeOver makes the ranks that ghosts have served which are lost serve themselves, and reports
// whether this one is among them. All ranks call it with the same, behind the end of an
// epoch: nobody has a lock, and nothing is under way, so the new servers begin without any
// knowledge of what the ghosts have had.
func (r Routes) TakeOver(lost []int64) (own bool) {
	w := r.w
	for i := range w.ranks {
		t := &w.targets[i]
		if t.Client == 0 || lost[int(w.ghosts.Of[t.home])-len(w.ghosts.Of)] == 0 {
			continue
		}
		if t.client != 0 {
			w.turn(int32(i))
		}
		t.Client, t.Own = 0, Access{}
		t.asked, t.refused, t.acks = false, false, 0
		own = own || i == int(w.me)
	}
	return own
}
