package rma

// Mode is how a target is locked.
type Mode uint8

// The modes.
const (
	Unlocked  Mode = iota
	Shared         // MPI_LOCK_SHARED
	Exclusive      // MPI_LOCK_EXCLUSIVE
)

// locks are the locks of one target: what its rank keeps for the ranks that lock it. The
// one that asks first is served first, so that neither kind starves the other one. It knows no
// messages: its methods return the ranks that are to be told that they have the lock.
//
// Ranks of this host have their lock of the target in memory, if it has some in common with
// them, and are not here. Then a rank that is here has its lock only while the target has that one
// for it.
type locks struct {
	held    []Mode      // by rank
	holders int         // how many are not Unlocked
	only    bool        // the one holder has it Exclusive
	queue   []claim     // of the ranks that wait, in order
	granted []int32     // memory of results
	shared  *sharedLock // or nil
	member  int         // whose lock there is that of all ranks here
}

type claim struct {
	rank int32
	mode Mode
}

// fits reports whether a lock can be given now. Then it is given.
func (l *locks) fits(m Mode) bool {
	if l.holders > 0 {
		return m == Shared && !l.only
	}
	if l.shared == nil || l.shared.try(l.member, m) {
		return true
	}
	l.shared.far.Store(1) // a rank that gives something back from now on tells
	return l.shared.try(l.member, m)
}

// give notes that a rank has a lock that fits.
func (l *locks) give(c claim) {
	l.held[c.rank] = c.mode
	l.holders++
	l.only = c.mode == Exclusive
}

// idle gives back what the target has for no rank.
func (l *locks) idle() {
	if l.shared != nil && l.holders == 0 {
		l.shared.release(l.member)
	}
}

// claim asks for a lock, of n ranks' worth. It returns false for what no rank asks for that
// keeps to the protocol.
func (l *locks) claim(n int, rank int32, m Mode) (granted []int32, ok bool) {
	if !l.may(n, rank, m) {
		return nil, false
	}
	l.queue = append(l.queue, claim{rank, m})
	return l.serve(), true
}

// may reports whether a rank may ask for a lock.
func (l *locks) may(n int, rank int32, m Mode) bool {
	if l.held == nil {
		l.held = make([]Mode, n)
	}
	return (m == Shared || m == Exclusive) && l.held[rank] == Unlocked && !l.waits(rank)
}

// try is claim that does not wait.
func (l *locks) try(n int, rank int32, m Mode) (granted, ok bool) {
	if !l.may(n, rank, m) {
		return false, false
	}
	if len(l.queue) > 0 || !l.fits(m) {
		if len(l.queue) == 0 {
			l.idle()
			l.stopWaiting()
		}
		return false, true
	}
	l.give(claim{rank, m})
	return true, true
}

func (l *locks) waits(rank int32) bool {
	for _, c := range l.queue {
		if c.rank == rank {
			return true
		}
	}
	return false
}

// release gives a lock back.
func (l *locks) release(rank int32) (granted []int32, ok bool) {
	if l.held == nil || l.held[rank] == Unlocked {
		return nil, false
	}
	l.held[rank] = Unlocked
	l.holders--
	l.only = false
	l.idle()
	return l.serve(), true
}

// lost takes back what a lost rank has, and what it has asked for.
func (l *locks) lost(rank int32) (granted []int32) {
	kept := l.queue[:0]
	for _, c := range l.queue {
		if c.rank != rank {
			kept = append(kept, c)
		}
	}
	l.queue = kept
	if granted, ok := l.release(rank); ok {
		return granted
	}
	l.idle() // it may have been the one for which the target waits
	return l.serve()
}

// serve gives locks to the ranks that wait, as far as that is possible.
func (l *locks) serve() []int32 {
	l.granted = l.granted[:0]
	n := 0
	for ; n < len(l.queue) && l.fits(l.queue[n].mode); n++ {
		l.give(l.queue[n])
		l.granted = append(l.granted, l.queue[n].rank)
	}
	l.queue = l.queue[:copy(l.queue, l.queue[n:])]
	if len(l.queue) == 0 {
		l.stopWaiting()
	}
	return l.granted
}

// stopWaiting notes that the target need not be told when something is given back.
func (l *locks) stopWaiting() {
	if l.shared != nil {
		l.shared.far.Store(0)
	}
}
