package launch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// rankTable is what the controller knows about the ranks: which are there, what they
// have put, and which wait in a fence. It is plain data, without processes.
type rankTable struct {
	ranks  []rankState
	staged []boot.Value
	ghosts int  // of these, the last ones
	fenced int  // ranks in the present fence, without ghosts
	inside int  // ghosts in it
	alive  int  // ranks that have not ended, without ghosts
	begun  bool // a fence was completed
	put    boot.Quota
}

type rankState struct {
	pid       int
	host      string
	joined    bool
	pmi       bool // it speaks PMI
	fenced    bool
	finalized bool
	exited    bool
	put       boot.Quota
	end       error // why it has, if that is a failure
}

func newRankTable(ranks, ghosts int) *rankTable {
	return &rankTable{ranks: make([]rankState, ranks+ghosts), ghosts: ghosts, alive: ranks}
}

// ghost reports whether a rank is a ghost.
func (l *rankTable) ghost(rank int) bool { return rank >= len(l.ranks)-l.ghosts }

// stranger returns a rank that has joined in another language than this one does.
func (l *rankTable) stranger(rank int, pmi bool) (other int, found bool) {
	l.ranks[rank].pmi = pmi
	other = slices.IndexFunc(l.ranks, func(s rankState) bool { return s.joined && s.pmi != pmi })
	return other, other >= 0
}

// request notes what a rank asks. When that completes a fence it returns the
// values to spread. Abort is not for the rankTable.
func (l *rankTable) request(rank int, r boot.Request) (values []boot.Value, complete bool, err error) {
	s := &l.ranks[rank]
	if r.Op != boot.OpHello && !s.joined || r.Op == boot.OpHello && s.joined || s.fenced {
		return nil, false, fmt.Errorf("rank %d: %q is out of place", rank, r.Op)
	}
	switch r.Op {
	case boot.OpHello:
		s.joined = true
	case boot.OpPut:
		if err := errors.Join(s.put.Take(r.Key, r.Value), l.put.TakeTotal(r.Key, r.Value)); err != nil {
			return nil, false, fmt.Errorf("rank %d: %w", rank, err)
		}
		l.staged = append(l.staged, boot.Value{Rank: rank, Key: r.Key, Value: r.Value})
	case boot.OpFinalize:
		s.finalized = true
	case boot.OpFence:
		s.fenced = true
		if l.ghost(rank) {
			l.inside++
		} else {
			l.fenced++
		}
		if l.fenced+l.inside == len(l.ranks) {
			return l.complete(), true, nil
		}
	}
	return nil, false, nil
}

func (l *rankTable) complete() []boot.Value {
	values := l.staged
	l.staged, l.fenced, l.inside, l.begun = nil, 0, 0, true
	for i := range l.ranks {
		l.ranks[i].fenced = false
	}
	return values
}

// exit notes the end of a rank. It reports whether that is news.
func (l *rankTable) exit(rank int) bool {
	if l.ranks[rank].exited {
		return false
	}
	l.ranks[rank].exited = true
	if !l.ghost(rank) {
		l.alive--
	}
	return true
}

// deserter returns a rank that has ended while others wait for it in a fence.
func (l *rankTable) deserter() (rank int, ok bool) {
	if l.fenced == 0 {
		return 0, false
	}
	rank = slices.IndexFunc(l.ranks, func(s rankState) bool { return s.exited })
	return rank, rank >= 0
}

// missing returns the ranks that those in the present fence wait for.
func (l *rankTable) missing() []int {
	var ranks []int
	for i, s := range l.ranks {
		if !s.fenced {
			ranks = append(ranks, i)
		}
	}
	return ranks
}
