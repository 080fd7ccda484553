package rma

// Mode is how a target is locked.
type Mode uint8

// The modes.
const (
	Unlocked  Mode = iota
	Shared         // MPI_LOCK_SHARED
	Exclusive      // MPI_LOCK_EXCLUSIVE
)

// locks are the locks of one target: what its rank keeps for those who lock it. Who asks
// first is served first, so that neither kind starves the other one. It knows no messages:
// its methods return who is to be told that it has the lock.
type locks struct {
	held    []Mode  // by rank
	holders int     // how many are not Unlocked
	only    bool    // the one holder has it Exclusive
	queue   []claim // who waits, in order
	granted []int32 // memory of results
}

type claim struct {
	rank int32
	mode Mode
}

// fits reports whether a lock can be given now.
func (l *locks) fits(m Mode) bool { return l.holders == 0 || m == Shared && !l.only }

// claim asks for a lock, of n ranks' worth. It returns false for what nobody asks for who
// keeps to the protocol.
func (l *locks) claim(n int, rank int32, m Mode) (granted []int32, ok bool) {
	if l.held == nil {
		l.held = make([]Mode, n)
	}
	if m != Shared && m != Exclusive || l.held[rank] != Unlocked || l.waits(rank) {
		return nil, false
	}
	l.queue = append(l.queue, claim{rank, m})
	return l.serve(), true
}

// try is claim that does not wait.
func (l *locks) try(n int, rank int32, m Mode) (granted, ok bool) {
	if len(l.queue) > 0 || !l.fits(m) {
		return false, m == Shared || m == Exclusive
	}
	_, ok = l.claim(n, rank, m)
	return ok, ok
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
	return l.serve()
}

// serve gives locks to those who wait, as far as that is possible.
func (l *locks) serve() []int32 {
	l.granted = l.granted[:0]
	n := 0
	for ; n < len(l.queue) && l.fits(l.queue[n].mode); n++ {
		c := l.queue[n]
		l.held[c.rank] = c.mode
		l.holders++
		l.only = c.mode == Exclusive
		l.granted = append(l.granted, c.rank)
	}
	l.queue = l.queue[:copy(l.queue, l.queue[n:])]
	return l.granted
}
