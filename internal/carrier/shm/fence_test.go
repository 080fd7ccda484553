package shm

import (
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

const raceRounds = 20_000

// raceWords are the rounds that rank 0 has begun and that rank 1 has done, in segment 1 of rank 0.
func raceWords(s *Segment) (begun, done *atomic.Uint64) {
	return word(s.Bytes(), 0), word(s.Bytes(), granule)
}

// awaitRound waits until a round is there, and then for some pauses.
func awaitRound(word *atomic.Uint64, i, pauses uint64) {
	for word.Load() < i {
		mem.Relax()
	}
	for ; pauses > 0; pauses-- {
		mem.Relax()
	}
}

// race is what the neighbour does: it puts a record in each round.
func race(l *Channels, n *Channel) {
	for !n.Put(nil, nil) {
		l.Next()
	}
	for mem.Unfenced && n.out.fences && !n.out.late {
		l.Next()
	}
	s, err := n.OpenSegment(1, 4096)
	if err != nil {
		panic(err)
	}
	begun, done := raceWords(s)
	data := make([]byte, 2<<10)
	for i := uint64(1); i <= raceRounds; i++ {
		awaitRound(begun, i, i%16)
		for !n.Put(nil, data) {
			l.Next()
		}
		done.Store(i)
	}
	for l.Lost() == nil {
		l.Next()
	}
}

// Of a sender that puts a record and a receiver that goes to sleep at the same moment one notices: a record is found,
// or the bell rung. Without the fence both may look before the other one's store has come.
func TestChannels_settle(t *testing.T) {
	l, n, _ := startNeighbour(t, "race")
	s, err := l.NewSegment(4096)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, s)
	next(l)
	l.Release()
	lost := 0
	begun, done := raceWords(s)
	for i := uint64(1); i <= raceRounds; i++ {
		begun.Store(i)
		awaitRound(begun, i, i/16%16)
		l.arm()
		there := !l.settle()
		awaitRound(done, i, 0)
		if !there && n.in.asleep.Load() == wantBell {
			lost++
		}
		_, b := next(l)
		for at := 0; at < len(b); at += granule {
			b[at] = 1 // so that the sender has to wait for the line
		}
		l.Release()
	}
	if lost > 0 {
		t.Errorf("%d of %d records were put without a ring, and not found", lost, raceRounds)
	}
}

// A sender goes without fences only where the receiver has them executed.
func TestChannels_fences(t *testing.T) {
	if !fencing() {
		t.Skip("no fence here, and none is needed")
	}
	for _, fences := range []bool{true, false} {
		ends := newChannels(t, 2, ChannelsConfig{})
		ends[1].fences = fences
		put(t, ends[0], ends[1], nil, nil)
		for !ends[0].registered.Load() {
			runtime.Gosched()
		}
		ends[0].Next()
		if out := ends[0].byRank[1].out; out.late != fences {
			t.Errorf("the receiver has fences executed: %v; the sender does without: %v", fences, out.late)
		}
		const getRegistrations = 1 << 9 // since Linux 6.3
		known, _, e := unix.Syscall(unix.SYS_MEMBARRIER, getRegistrations, 0, 0)
		if e == 0 && known&registerGlobalExpedited == 0 {
			t.Error("the kernel does not know this process")
		}
	}
}
