package rma

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

func newSharedLock(members int) *sharedLock {
	words := mem.Words32(mem.BytesOf(make([]uint64, ControlSize(members, false, true)/8)))
	return &sharedLock{owner: &words[0], far: &words[1], readers: words[lockWords : lockWords+members+1], stride: 1, mark: 1}
}

// Members of a host, and the target for ranks of other hosts, never have a lock together that
// excludes the other one's, and all get it that ask.
func TestSharedLock_excludes(t *testing.T) {
	const members, rounds, ranks = 3, 3000, 5
	l := newSharedLock(members)
	var readers, writers atomic.Int32
	enter := func(m Mode) {
		if m == Shared {
			readers.Add(1)
		} else if writers.Add(1) != 1 || readers.Load() != 0 {
			t.Errorf("%d have it for themselves, and %d share it", writers.Load(), readers.Load())
		}
		if m == Shared && writers.Load() != 0 {
			t.Error("who shares it has it beside one who does not")
		}
		if m == Shared {
			readers.Add(-1)
		} else {
			writers.Add(-1)
		}
	}
	var group sync.WaitGroup
	var retries atomic.Int32 // what members would tell the target
	for member := range members {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(member)))
			for range rounds {
				m := Shared + Mode(rnd.IntN(2))
				for !l.try(member, m) {
					if l.far.Load() != 0 {
						retries.Add(1)
					}
					runtime.Gosched()
				}
				enter(m)
				l.release(member)
				if l.far.Load() != 0 {
					retries.Add(1)
				}
			}
		})
	}
	group.Go(func() { // the target: it tries again only when it is told
		far, rnd := locks{shared: l, member: members}, rand.New(rand.NewPCG(2, 2))
		have := map[int32]Mode{}
		got := func(ranks []int32) {
			for _, rank := range ranks {
				have[rank] = far.held[rank]
				if far.held[rank] == Exclusive && writers.Load() != 0 {
					t.Error("a rank of another host has it beside one of this host")
				}
			}
		}
		for range rounds {
			rank := int32(rnd.IntN(ranks))
			m := Shared + Mode(rnd.IntN(2))
			if rnd.IntN(4) == 0 {
				if ok, _ := far.try(ranks, rank, m); ok {
					enter(m)
					got(mustRelease(t, &far, rank))
				}
				continue
			}
			granted, ok := far.claim(ranks, rank, m)
			if !ok {
				t.Error("a claim was refused")
			}
			got(granted)
			for len(have) == 0 {
				if n := retries.Load(); n > 0 {
					retries.Add(-n)
					got(far.serve())
				}
				runtime.Gosched()
			}
			for len(have) > 0 {
				for rank, m := range have {
					delete(have, rank)
					enter(m)
					got(mustRelease(t, &far, rank))
				}
			}
		}
	})
	group.Wait()
	if l.owner.Load() != 0 || l.far.Load() != 0 {
		t.Errorf("in the end the owner is %d, and the target waits: %d", l.owner.Load(), l.far.Load())
	}
	for i := range l.readers {
		if l.readers[i].Load() != 0 {
			t.Errorf("in the end member %d shares it", i)
		}
	}
}

func mustRelease(t *testing.T, l *locks, rank int32) []int32 {
	granted, ok := l.release(rank)
	if !ok {
		t.Errorf("rank %d had none", rank)
	}
	return granted
}

// What a rank has or waits for that is lost is taken from it, on whichever side it is.
func TestSharedLock_lost(t *testing.T) {
	l := newSharedLock(2)
	far := locks{shared: l, member: 2}
	if !l.try(0, Shared) || l.try(1, Exclusive) || l.try(0, Shared) {
		t.Fatal("the second one waits, and nobody passes it")
	}
	if granted, ok := far.claim(4, 3, Exclusive); !ok || len(granted) != 0 || l.far.Load() == 0 {
		t.Fatal("a rank of another host does not wait, or nobody would tell the target")
	}
	l.release(1) // lost while it waited
	if granted := far.serve(); len(granted) != 0 || l.owner.Load() != 3 {
		t.Fatal("the target is not next")
	}
	if l.try(1, Shared) {
		t.Fatal("somebody passes the rank that waits")
	}
	l.release(0) // lost with the lock
	if granted := far.serve(); len(granted) != 1 || granted[0] != 3 {
		t.Fatalf("the lock went to %v", granted)
	}
	if _, ok := far.claim(4, 1, Exclusive); !ok || l.try(0, Exclusive) {
		t.Fatal("it is given twice")
	}
	far.lost(1) // while it waited
	far.lost(3) // with the lock
	if !l.try(0, Exclusive) {
		t.Error("what a lost rank of another host had is not free")
	}
	if ok, may := far.try(4, 2, Shared); ok || !may {
		t.Error("a try succeeds beside an exclusive lock")
	}
	if granted, _ := far.claim(4, 2, Exclusive); len(granted) != 0 {
		t.Error("it is given twice")
	}
	far.lost(2)
	l.release(0)
	if !l.try(1, Exclusive) {
		t.Error("a lost rank that waited is in the way")
	}
}

// Turns of different targets have nothing to do with each other, nor with locks; who is lost has none any more.
func TestNeighbours_turns(t *testing.T) {
	const n = 3
	c := Common{Members: []int32{0, 1, 2}, Memory: make([][]byte, n), Locks: true, Control: mem.BytesOf(make([]uint64, ControlSize(n, true, true)/8))}
	var of [n]Window
	for i := range of {
		of[i].targets, of[i].ranks, of[i].me = make([]target, n), n, int32(i)
		of[i].near.take(&of[i], &c)
	}
	turn := func(member, at int) *sharedLock { return of[member].targets[at].near.turn }
	for at := range n {
		if !turn(at, at).try(at, Exclusive) || !of[at].targets[at].near.lock.try(at, Exclusive) {
			t.Fatalf("target %d is not free", at)
		}
	}
	if turn(0, 1).try(0, Shared) || turn(0, 2).try(0, Exclusive) {
		t.Error("two have turns at one target")
	}
	of[0].near.bury(1)
	if !turn(2, 1).try(2, Shared) || turn(0, 1).try(0, Exclusive) {
		t.Error("what a lost member had is not free, or was given twice")
	}
	of[2].near.leave(&of[2].targets[1])
	if !turn(0, 1).try(0, Exclusive) {
		t.Error("what was left is not free")
	}
	part := Window{flow: flow{ranks: n + 1, targets: make([]target, n+1)}}
	part.near.take(&part, &c)
	if part.targets[0].near.turn != nil {
		t.Error("there are turns in a window that has ranks on other hosts")
	}
}

// Elements of each size change as a whole, whoever changes their neighbours.
func TestCombination_atomic(t *testing.T) {
	const each, workers = 4000, 4
	for _, c := range []struct {
		kind *dtype.Type
		size int
	}{{dtype.Int8, 1}, {dtype.Int16, 2}, {dtype.Int32, 4}, {dtype.Int64, 8}} {
		memory := mem.BytesOf(make([]uint64, 2))
		one := make([]byte, c.size)
		one[0] = 1 // as amd64 and arm64 have it
		sum, _ := number(dtype.Sum)
		var group sync.WaitGroup
		for k := range workers {
			group.Go(func() {
				x := combination{s: &server{}, what: sayAccumulate}
				if !x.of(&front{kind: c.kind.Kind(), op: sum}) {
					t.Error("no sums")
				}
				at := (k * c.size) % 8 // the same ones for some sizes, neighbours for others
				for range each {
					if !x.atomic(memory[at : at+c.size]) {
						t.Error("not by an instruction")
					}
					x.applyAll(memory[at:at+c.size], one, nil)
				}
			})
		}
		group.Wait()
		want := make([]byte, 16)
		for k := range workers {
			at := (k * c.size) % 8
			for range each {
				for i := at; i < at+c.size; i++ {
					if want[i]++; want[i] != 0 {
						break
					}
				}
			}
		}
		if string(want) != string(memory) {
			t.Errorf("elements of %d bytes: %x, want %x", c.size, memory, want)
		}
	}
	x := combination{s: &server{}, what: sayAccumulate}
	maxloc, _ := number(dtype.Maxloc)
	if !x.of(&front{kind: dtype.ShortInt.Kind(), op: maxloc}) || x.atomic(make([]byte, 8)) || atomicKind(dtype.ShortInt.Kind()) {
		t.Error("elements with gaps are for no instruction")
	}
	sum, _ := number(dtype.Sum)
	x.of(&front{kind: dtype.Int64.Kind(), op: sum})
	if b := mem.BytesOf(make([]uint64, 2)); x.atomic(b[4:12]) || !x.atomic(b[8:16]) {
		t.Error("elements that are not aligned are for no instruction, those that are are")
	}
}

// Many elements at a time, from any of them on, are changed as each by itself would be, whoever
// changes others of the same words.
func TestCombination_atomicOnMany(t *testing.T) {
	const elements, each, workers = 40, 300, 4
	sum, _ := number(dtype.Sum)
	for kind, size := range map[*dtype.Type]int{dtype.Uint8: 1, dtype.Uint16: 2, dtype.Uint32: 4, dtype.Uint64: 8} {
		memory := mem.BytesOf(make([]uint64, elements*size/8))
		ones := make([]byte, len(memory))
		for i := 0; i < len(ones); i += size {
			ones[i] = 1 // as amd64 and arm64 have it
		}
		var group sync.WaitGroup
		for k := range workers {
			group.Go(func() {
				x := combination{s: &server{}, what: sayFetch}
				if !x.of(&front{kind: kind.Kind(), op: sum}) {
					t.Error("no sums")
				}
				old := make([]byte, len(memory))
				from, to := k*size, len(memory)-k*size
				last := -1 // of the first element
				for range each {
					x.applyAll(memory[from:to], ones[:to-from], old[:to-from])
					if now := int(old[0]) | int(old[1])<<8; size > 1 && now <= last {
						t.Errorf("elements of %d bytes: %d was there after %d", size, now, last)
					} else {
						last = now
					}
				}
			})
		}
		group.Wait()
		for i := range elements {
			n := 0
			for k := range workers {
				if i >= k && i < elements-k {
					n += each
				}
			}
			if at := i * size; memory[at] != byte(n) || size > 1 && memory[at+1] != byte(n>>8) {
				t.Errorf("elements of %d bytes: element %d is %x, want %x", size, i, memory[at:at+size], n)
			}
		}
	}
}

// What messages bring is done with the same instructions as what neighbours do at the same
// time.
func TestWindow_servesBesideNeighbours(t *testing.T) {
	each := 3_000_000
	if slow {
		each = 50_000
	}
	words := make([]uint64, 1)
	w := ownWindow(mem.BytesOf(words), 0)
	w.here.atomic = true
	sum, _ := number(dtype.Sum)
	message := body(dtype.Int64.Kind(), sum, []block{{0, 8}}, mem.BytesOf([]int64{1})...)
	var group sync.WaitGroup
	var there atomic.Int32
	both := func() {
		for there.Add(1); there.Load() < 2; {
			runtime.Gosched()
		}
	}
	group.Go(func() {
		both()
		for range each {
			if !w.Active(0, sayAccumulate, 0, message) {
				t.Error("it is refused")
			}
		}
	})
	group.Go(func() {
		x := combination{s: &server{}, what: sayAccumulate}
		if err := x.reduces(dtype.Int64.Kind(), sum); err != nil {
			t.Error(err)
		}
		both()
		for range each {
			x.applyAll(mem.BytesOf(words), mem.BytesOf([]int64{1}), nil)
		}
	})
	group.Wait()
	if words[0] != uint64(2*each) {
		t.Errorf("the sum is %d, want %d", words[0], 2*each)
	}
}
