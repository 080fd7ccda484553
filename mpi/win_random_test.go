package mpi_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi"
)

// Random one-sided traffic: operations of every kind, in epochs of every kind, against a
// model. The memory of each rank has a block for each origin, which that one alone writes,
// so that it knows at any time what must be there; and cells that all use: sums, tickets
// that FetchAndOp and CompareAndSwap draw, and a cell that is read and written under an
// exclusive lock, where an update that is lost shows.

// winTraffic is one run.
type winTraffic struct {
	seed   uint64
	rounds int
	ops    int           // of a rank in a round
	block  int           // elements of a block
	long   bool          // many operations are on hundreds of them
	flavor mpi.WinFlavor // 0: by chance
	served bool          // there are ghosts, for those that they can serve
	adapts bool          // and who serves changes
	follow bool          // and Puts and Gets follow at once, for no rank says itself who is to

	compute func() // or nil: what a rank does that calls nothing, while ghosts serve it, or who does changes
}

// Cells in front of the blocks.
const (
	cellSum = iota
	cellXor
	cellTicket  // drawn by FetchAndOp
	cellSwapped // drawn by CompareAndSwap
	cellLocked  // under an exclusive lock
	cellBegun   // operations on a rank that computes
	cellDone
	cells
)

// winRank is one rank of it.
type winRank struct {
	winTraffic
	c       *mpi.Comm
	w       *mpi.Win
	rnd     *rand.Rand
	me, n   int
	mine    [][]int64 // model of the blocks, by target
	sums    []int64   // what this rank has added, by target
	xors    []int64
	tickets [2][][]int64 // that were drawn, by target
	locked  []int64      // how often, by target
	keep    [][]int64    // what operations under way use
	start   []int64      // displacement of each rank's memory
	unit    int          // of an element
	passive bool         // the epoch is one of locks: there may be requests
	hints   *mpi.Info
	kinds   []int // of rounds: see round
	started int   // epochs of Start
	alone   int   // in which a rank has computed
	checks  []func() error
}

func (x winTraffic) run(p *mpi.Proc) error {
	c, err := p.World().Split(0, -p.World().Rank()) // ranks that are not those of World
	if err != nil {
		return err
	}
	r := &winRank{winTraffic: x, c: c, me: c.Rank(), n: c.Size(), rnd: rand.New(rand.NewPCG(x.seed, uint64(c.Rank())))}
	common := rand.New(rand.NewPCG(x.seed, 1<<40)) // what all ranks do the same
	size := cells + r.n*x.block
	for range r.n {
		r.mine = append(r.mine, make([]int64, x.block))
		r.tickets[0], r.tickets[1] = append(r.tickets[0], nil), append(r.tickets[1], nil)
	}
	r.sums, r.xors, r.locked = make([]int64, r.n), make([]int64, r.n), make([]int64, r.n)
	flavors := []mpi.WinFlavor{mpi.FlavorAllocate, mpi.FlavorCreate, mpi.FlavorDynamic}
	if err := r.promise(common); err != nil {
		return err
	}
	memory, err := r.make(c, cmp.Or(x.flavor, flavors[common.IntN(len(flavors))]), size)
	if err != nil {
		return err
	}
	if slices.Contains(r.kinds, 1) && x.compute != nil && x.served && !x.adapts && r.w.Flavor() == mpi.FlavorAllocate {
		r.kinds = append(r.kinds, 5)
	}
	for round := range x.rounds {
		if err := errors.Join(r.adapt(common), r.round(r.kinds[common.IntN(len(r.kinds))])); err != nil {
			return fmt.Errorf("seed %d, round %d: %w", x.seed, round, err)
		}
	}
	if err := errors.Join(c.Barrier(), r.final(c, memory)); err != nil {
		return fmt.Errorf("seed %d: %w", x.seed, err)
	}
	if r.w.Flavor() == mpi.FlavorDynamic {
		err = mpi.Detach(r.w, memory)
	}
	return errors.Join(err, r.w.Free(), c.Free())
}

// promise chooses which kinds of epochs there are, and says so if not all of them.
func (r *winRank) promise(common *rand.Rand) error {
	kinds := [][]int{{0}, {4}, {2, 3}, {1}} // of each of the names
	var used []string
	for i, name := range []string{"fence", "pscw", "lock", "lockall"} {
		if r.flavor != 0 || common.IntN(3) > 0 {
			used, r.kinds = append(used, name), append(r.kinds, kinds[i]...)
		}
	}
	if len(used) == 0 {
		used, r.kinds = []string{"lockall"}, []int{1}
	}
	var err error
	r.hints, err = mpi.NewInfo("epochs_used", strings.Join(used, ","), "no_local_load_store", fmt.Sprint(r.rnd.IntN(2) == 0),
		"window_layout", []string{"table", "overlapping"}[common.IntN(2)])
	return err
}

// make makes the window.
func (r *winRank) make(c *mpi.Comm, flavor mpi.WinFlavor, size int) (memory []int64, err error) {
	r.start, r.unit = make([]int64, r.n), 1
	switch flavor {
	case mpi.FlavorAllocate:
		if r.w, memory, err = mpi.WinAllocate[int64](c, size, r.hints); err == nil && r.served {
			err = wantAsync(r.w, "on")
		}
	case mpi.FlavorShared:
		r.w, memory, err = mpi.WinAllocateShared[int64](c, size, r.hints)
	case mpi.FlavorDynamic:
		memory, r.unit = make([]int64, size), 8
		if r.w, err = c.WinCreateDynamic(r.hints); err != nil {
			return nil, err
		}
		at, err := mpi.Attach(r.w, memory)
		return memory, errors.Join(err, mpi.Allgather(c, []int64{int64(at)}, r.start))
	default:
		memory = make([]int64, size)
		r.w, err = mpi.WinCreate(c, memory, r.hints)
	}
	return memory, err
}

// wantAsync fails unless ghosts serve this rank's memory of a window in a mode.
func wantAsync(w *mpi.Win, mode string) error {
	hints, err := w.Info()
	if err != nil {
		return err
	}
	if is, _ := hints.Get("async_config"); is != mode {
		return fmt.Errorf("async_config is %q, want %q: no ghost serves the window", is, mode)
	}
	return nil
}

// adapt changes who serves the window, at times: as each rank likes, or as predictors do.
func (r *winRank) adapt(common *rand.Rand) error {
	if !r.adapts || r.w.Flavor() != mpi.FlavorAllocate {
		return nil
	}
	if r.compute != nil && r.rnd.IntN(3) == 0 { // which ghosts see, and this rank does not say
		r.compute()
	}
	switch common.IntN(4) {
	case 0:
		return r.info(map[bool]string{false: "auto", true: "auto-ghosts"}[r.follow])
	case 1:
		return nil
	}
	return r.setAsync()
}

// setAsync has this rank say who is to serve its memory, and holds that against what comes of it.
func (r *winRank) setAsync() error {
	if r.follow {
		return r.info("auto-ghosts")
	}
	want := []string{"on", "off"}[r.rnd.IntN(2)]
	if err := r.info(want); err != nil {
		return err
	}
	hints, err := r.w.Info()
	if is, _ := hints.Get("async_now"); is != want {
		err = errors.Join(err, fmt.Errorf("async_now is %q, want %q", is, want))
	}
	return err
}

func (r *winRank) info(async string) error {
	info, err := mpi.NewInfo("async_config", async, "symmetric", "true")
	return errors.Join(err, r.w.SetInfo(info))
}

// disp returns where an element of a rank's memory is.
func (r *winRank) disp(t, i int) int { return int(r.start[t]) + i*r.unit }

// round does operations in one kind of epochs.
func (r *winRank) round(kind int) error {
	w := r.w
	r.passive = kind == 1 || kind == 2
	switch kind {
	case 0:
		noStore := mpi.ModeNoStore * mpi.WinMode(r.rnd.IntN(2)) // of each rank by itself
		if err := w.Fence(mpi.ModeNoPrecede | noStore); err != nil {
			return err
		}
		return errors.Join(r.many(r.anyone), w.Fence(mpi.ModeNoSucceed|noStore), r.check())
	case 1:
		if r.adapts && w.Flavor() == mpi.FlavorAllocate { // nobody has a lock that is in the way of who meets the others
			if err := r.setAsync(); err != nil {
				return err
			}
		}
		if err := w.LockAll(0); err != nil {
			return err
		}
		err := r.many(r.anyone)
		if r.adapts && r.w.Flavor() == mpi.FlavorAllocate { // all ranks are in such an epoch
			err = errors.Join(err, r.setAsync(), r.check(), r.many(r.anyone))
		}
		switch r.rnd.IntN(3) {
		case 0:
			err = errors.Join(err, w.FlushAll(), r.check(), r.many(r.anyone))
		case 1: // what was fetched is here, and what was written may be overwritten
			err = errors.Join(err, w.FlushLocalAll(), r.check())
		}
		return errors.Join(err, w.UnlockAll(), r.check())
	case 2:
		for range 3 {
			target := r.anyone()
			kind := mpi.LockShared
			if r.rnd.IntN(2) == 0 {
				kind = mpi.LockExclusive
			}
			if err := w.Lock(kind, target, 0); err != nil {
				return err
			}
			err := r.many(func() int { return target })
			if r.rnd.IntN(2) == 0 {
				err = errors.Join(err, w.Flush(target), r.check(), r.many(func() int { return target }))
			}
			if err := errors.Join(err, w.Unlock(target), r.check()); err != nil {
				return err
			}
		}
		return nil
	case 3:
		return r.increment()
	case 5:
		return r.busy()
	}
	return r.active()
}

func (r *winRank) anyone() int { return r.rnd.IntN(r.n) }

// busy has all others do operations on a rank that computes until they have ended.
func (r *winRank) busy() error {
	target := r.alone % r.n
	r.alone++
	err := r.c.Barrier()
	if r.me != target {
		one := []int64{1}
		err = errors.Join(err, r.w.LockAll(0), mpi.Accumulate(r.w, one, target, r.disp(target, cellBegun), mpi.OpSum), r.w.Flush(target))
		err = errors.Join(err, r.many(func() int { return target }), r.w.Flush(target), r.check())
		return errors.Join(err, mpi.Accumulate(r.w, one, target, r.disp(target, cellDone), mpi.OpSum), r.w.UnlockAll())
	}
	cells, want := mem.ScalarsOf[int64](r.w.Memory()), int64((r.alone+r.n-1)/r.n*(r.n-1))
	for err == nil && atomic.LoadInt64(&cells[cellBegun]) < want { // what this rank has said in the barrier may be lost
		_, _, err = r.c.Iprobe(mpi.AnySource, mpi.AnyTag)
	}
	for err == nil && atomic.LoadInt64(&cells[cellDone]) < want {
		r.compute()
	}
	return err
}

// active does operations on the next ranks, with Post and Start, every other time with MPI_MODE_NOCHECK.
func (r *winRank) active() error {
	all := r.w.Group()
	origins, err := all.Incl((r.me+r.n-1)%r.n, r.me)
	if r.n == 1 {
		origins, err = all, nil
	}
	if err != nil {
		return err
	}
	targets, err := all.Incl((r.me+1)%r.n, r.me)
	if r.n == 1 {
		targets, err = all, nil
	}
	if err != nil {
		return err
	}
	r.started++
	checks := mpi.ModeNoCheck * mpi.WinMode(r.started%2)
	if err = r.w.Post(origins, checks); checks != 0 { // nobody asks, so it takes something else to know
		err = errors.Join(err, r.c.Barrier())
	}
	if err = errors.Join(err, r.w.Start(targets, checks)); err != nil {
		return err
	}
	err = r.many(func() int { return (r.me + r.rnd.IntN(2)) % r.n })
	if err = errors.Join(err, r.w.Complete(), r.check()); err != nil {
		return err
	}
	if r.rnd.IntN(2) == 0 {
		return r.w.Wait()
	}
	for done := false; !done && err == nil; {
		done, err = r.w.Test()
	}
	return err
}

// increment reads a cell and writes it back, one more, under an exclusive lock.
func (r *winRank) increment() error {
	target := r.anyone()
	if err := r.w.Lock(mpi.LockExclusive, target, 0); err != nil {
		return err
	}
	v := []int64{-1}
	err := errors.Join(mpi.Get(r.w, v, target, r.disp(target, cellLocked)), r.w.Flush(target))
	v[0]++
	r.locked[target]++
	return errors.Join(err, mpi.Put(r.w, v, target, r.disp(target, cellLocked)), r.w.Unlock(target))
}

// many does operations on targets. Within an epoch no element is touched twice by what has
// no order.
func (r *winRank) many(target func() int) error {
	used := map[[2]int]bool{}
	for range r.ops {
		t := target()
		if err := r.one(t, used); err != nil {
			return err
		}
	}
	return nil
}

// free returns n elements of the block at a target that nothing under way uses.
func (r *winRank) free(t, n, stride int, used map[[2]int]bool) (at int, ok bool) {
	reach := (n-1)*stride + 1
	if reach > r.block {
		return 0, false
	}
	at = r.rnd.IntN(r.block - reach + 1)
	for i := range n {
		if used[[2]int{t, at + i*stride}] {
			return 0, false
		}
	}
	for i := range n {
		used[[2]int{t, at + i*stride}] = true
	}
	return at, true
}

func (r *winRank) values(n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = r.rnd.Int64()
	}
	r.keep = append(r.keep, v)
	return v
}

// one starts one operation, and notes what it must have done.
func (r *winRank) one(t int, used map[[2]int]bool) error {
	n, stride := 1+r.rnd.IntN(6), 1
	switch r.rnd.IntN(8) {
	case 0:
		n = 1 + r.rnd.IntN(r.block)
	case 1, 2:
		stride = 2 + r.rnd.IntN(3)
	case 3, 4, 5:
		if r.long {
			n = 150 + r.rnd.IntN(4000)
		}
	}
	base := cells + r.me*r.block
	switch kind := r.rnd.IntN(9); kind {
	case 0, 1, 2, 3:
		at, ok := r.free(t, n, stride, used)
		if !ok {
			return nil
		}
		return r.block1(kind, t, at, n, stride, base)
	case 4:
		v := r.values(1)
		r.sums[t] += v[0]
		return mpi.Accumulate(r.w, v, t, r.disp(t, cellSum), mpi.OpSum)
	case 5:
		v := r.values(1)
		r.xors[t] ^= v[0]
		return mpi.Accumulate(r.w, v, t, r.disp(t, cellXor), mpi.OpBXor)
	case 6:
		got := new(int64)
		r.checks = append(r.checks, func() error {
			r.tickets[0][t] = append(r.tickets[0][t], *got)
			return nil
		})
		return mpi.FetchAndOp(r.w, 1, got, t, r.disp(t, cellTicket), mpi.OpSum)
	case 7: // a guess, and whether it was right
		got, guess := new(int64), int64(r.rnd.IntN(30))
		r.checks = append(r.checks, func() error {
			if *got == guess {
				r.tickets[1][t] = append(r.tickets[1][t], guess)
			}
			return nil
		})
		return mpi.CompareAndSwap(r.w, guess+1, guess, got, t, r.disp(t, cellSwapped))
	}
	return r.inOrder(t, base, used)
}

// block1 writes or reads elements of the own block.
func (r *winRank) block1(kind, t, at, n, stride, base int) error {
	layout := mpi.At{Rank: t, Disp: r.disp(t, base+at)}
	if stride > 1 {
		v, err := mpi.TypeVector(n, 1, stride, mpi.TypeInt64)
		if err == nil {
			err = v.Commit()
		}
		if err != nil {
			return err
		}
		layout.Type, layout.Count = v, 1
	}
	model := func(i int) *int64 { return &r.mine[t][at+i*stride] }
	v := r.values(n)
	switch kind {
	case 0, 1:
		for i := range v {
			*model(i) = v[i]
		}
		switch {
		case r.passive && kind == 1:
			return r.wait(r.w.RPut(mpi.Slice(v), layout))
		case stride > 1 || kind == 1:
			return r.w.Put(mpi.Slice(v), layout)
		}
		return mpi.Put(r.w, v, t, layout.Disp)
	case 2:
		want := make([]int64, n)
		for i := range want {
			want[i] = *model(i)
		}
		r.checks = append(r.checks, func() error { return r.same("Get", v, want) })
		if r.passive && r.rnd.IntN(2) == 0 {
			return errors.Join(r.wait(r.w.RGet(mpi.Slice(v), layout)), r.same("RGet", v, want))
		}
		if stride > 1 {
			return r.w.Get(mpi.Slice(v), layout)
		}
		return mpi.Get(r.w, v, t, layout.Disp)
	}
	old, want := r.values(n), make([]int64, n)
	for i := range want {
		want[i] = *model(i)
		*model(i) += v[i]
	}
	r.checks = append(r.checks, func() error { return r.same("GetAccumulate", old, want) })
	if r.passive && r.rnd.IntN(2) == 0 {
		return errors.Join(r.wait(r.w.RGetAccumulate(mpi.Slice(v), mpi.Slice(old), layout, mpi.OpSum)), r.same("RGetAccumulate", old, want))
	}
	return r.w.GetAccumulate(mpi.Slice(v), mpi.Slice(old), layout, mpi.OpSum)
}

// inOrder does accumulates on one element, which have an order.
func (r *winRank) inOrder(t, base int, used map[[2]int]bool) error {
	at, ok := r.free(t, 1, 1, used)
	if !ok {
		return nil
	}
	disp := r.disp(t, base+at)
	for range 3 {
		v := r.values(1)
		if err := mpi.Accumulate(r.w, v, t, disp, mpi.OpReplace); err != nil {
			return err
		}
		got, want := new(int64), v[0]
		r.checks = append(r.checks, func() error { return r.same("FetchAndOp", []int64{*got}, []int64{want}) })
		if err := mpi.FetchAndOp(r.w, 3, got, t, disp, mpi.OpSum); err != nil {
			return err
		}
		r.mine[t][at] = v[0] + 3
	}
	return nil
}

// wait waits for a request: what it has brought is there then.
func (r *winRank) wait(started mpi.Request, err error) error {
	if err == nil {
		_, err = started.Wait()
	}
	return err
}

func (r *winRank) same(what string, got, want []int64) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("rank %d: %s has brought %x, want %x", r.me, what, got, want)
	}
	return nil
}

// check holds what has come against the model.
func (r *winRank) check() error {
	var errs []error
	for _, f := range r.checks {
		errs = append(errs, f())
	}
	for _, v := range r.keep {
		clear(v)
	}
	r.checks, r.keep = nil, nil
	return errors.Join(errs...)
}

// final holds the memory of all ranks against what all have done.
func (r *winRank) final(c *mpi.Comm, memory []int64) error {
	total := func(mine []int64, op mpi.Op[int64]) ([]int64, error) {
		all := slices.Clone(mine)
		return all, mpi.Allreduce(c, nil, all, op)
	}
	sums, err1 := total(r.sums, mpi.Sum)
	xors, err2 := total(r.xors, mpi.BXor)
	locked, err3 := total(r.locked, mpi.Sum)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	want := []int64{sums[r.me], xors[r.me], memory[cellTicket], memory[cellSwapped], locked[r.me], memory[cellBegun], memory[cellBegun]}
	if err := r.same("all of the others", memory[:cells], want); err != nil {
		return err
	}
	blocks := make([]int64, r.n*r.block)
	if err := mpi.Alltoall(c, slices.Concat(r.mine...), blocks); err != nil {
		return err
	}
	if err := r.same("all of the others", memory[cells:], blocks); err != nil {
		return err
	}
	return r.linear(c, memory)
}

// linear checks that the histories of the tickets have an order that all ranks agree upon:
// each number up to the last one was drawn once, and each rank has drawn its own in the
// order in which it asked.
func (r *winRank) linear(c *mpi.Comm, memory []int64) error {
	for which, cell := range []int{cellTicket, cellSwapped} {
		for t := range r.n {
			drawn := r.tickets[which][t]
			if !slices.IsSorted(drawn) {
				return fmt.Errorf("rank %d drew the tickets %v of rank %d, which do not grow", r.me, drawn, t)
			}
			last := []int64{memory[cell]}
			if err := mpi.Bcast(c, last, t); err != nil {
				return err
			}
			times := make([]int64, last[0]+1)
			for _, d := range drawn {
				if d < 0 || d >= last[0] {
					return fmt.Errorf("rank %d drew ticket %d of rank %d, which has given %d", r.me, d, t, last[0])
				}
				times[d]++
			}
			if err := mpi.Allreduce(c, nil, times, mpi.Sum); err != nil {
				return err
			}
			for d, n := range times[:last[0]] {
				if n != 1 {
					return fmt.Errorf("ticket %d of rank %d was drawn %d times", d, t, n)
				}
			}
		}
	}
	return nil
}
