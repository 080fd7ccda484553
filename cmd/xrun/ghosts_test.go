package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// asServed makes the test binary a rank whose host may have ghosts.
const asServed = "as-served-rank"

// servedMain does what its argument says.
func servedMain(w *mpi.Comm) error {
	return map[string]func(*mpi.Comm) error{
		"busy": busyTargets, "epochs": servedEpochs, "apart": windowsApart, "odd": oddWindows, "who": whoIsThere,
		"flips": serversChange, "phases": phasesAdapt, "follow": putsFollow, "die": rankDies, "stay": stayForever, "go on": goOn, "outlive": outliveHolder,
	}[os.Args[2]](w)
}

// Cells of a window of busyTargets.
const (
	cellDone = iota
	cellSum
	cellFetched
	cellSwapped
	cellBegun
	cellShort // of each rank
)

// Parts of the memory that busyTargets has for each rank, each of so many words.
const (
	partWhole = iota // put in one piece
	partEven         // put and accumulated to every other word
	partSum          // accumulated in one piece
	parts
)

// busyTargets operates on ranks that call nothing: each in turn looks at its memory until
// the others have done all that they do, so nothing else than a ghost can do it.
func busyTargets(w *mpi.Comm) error {
	n := w.Size()
	const long, rounds = 3000, 20
	blockAt := func(rank int) int { return cellShort + n + rank*(parts*long) }
	win, mem, err := mpi.WinAllocate[int64](w, blockAt(n), nil)
	if err != nil {
		return err
	}
	for target := range n {
		if err := w.Barrier(); err != nil {
			return err
		}
		if w.Rank() == target {
			// Until all have come out of the barrier: what this rank has said in it may be lost, and
			// only a rank that calls something sends it again.
			for err == nil && atomic.LoadInt64(&mem[cellBegun]) < int64(n-1) {
				_, _, err = w.Iprobe(mpi.AnySource, mpi.AnyTag)
			}
			if err != nil {
				return err
			}
			for atomic.LoadInt64(&mem[cellDone]) < int64(n-1) {
				runtime.Gosched()
			}
			err = busyResult(mem, n, target, rounds, long, blockAt)
		} else {
			err = busyOrigin(win, target, rounds, long, blockAt(w.Rank()))
		}
		if err != nil {
			return err
		}
	}
	if err := win.Free(); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// busyOrigin does one of everything.
func busyOrigin(win *mpi.Win, target, rounds, long, block int) error {
	rank := int64(win.Rank())
	if err := win.LockAll(0); err != nil {
		return err
	}
	all := make([]int64, long)
	for i := range all {
		all[i] = rank<<32 + int64(i)
	}
	strided, err := mpi.TypeVector(long/2, 1, 2, mpi.TypeInt64)
	if err == nil {
		err = strided.Commit()
	}
	every := mpi.At{Rank: target, Disp: block + partEven*long, Count: 1, Type: strided}
	half, old, was := make([]int64, long/2), make([]int64, long/2), make([]int64, long)
	errs := []error{
		err,
		mpi.Accumulate(win, []int64{1}, target, cellBegun, mpi.OpSum), win.Flush(target),
		mpi.Put(win, []int64{rank + 1}, target, cellShort+int(rank)),
		mpi.Put(win, all, target, block),
		win.Put(mpi.Slice(all[:long/2]), every), win.Flush(target),
		win.Accumulate(mpi.Slice(all[:long/2]), every, mpi.OpSum),
		win.GetAccumulate(mpi.Slice(all[:long/2]), mpi.Slice(old), every, mpi.OpSum), win.Flush(target),
		win.Get(mpi.Slice(half), every),
		mpi.Accumulate(win, all, target, block+partSum*long, mpi.OpSum),
		mpi.GetAccumulate(win, all, was, target, block+partSum*long, mpi.OpSum),
	}
	last := int64(-1)
	for range rounds {
		var old, was int64
		errs = append(errs,
			mpi.Accumulate(win, []int64{1}, target, cellSum, mpi.OpSum),
			mpi.FetchAndOp(win, int64(1), &old, target, cellFetched, mpi.OpSum), win.Flush(target))
		if old <= last {
			return fmt.Errorf("FetchAndOp has brought %d after %d", old, last)
		}
		last = old
		for guess := int64(0); ; guess = was {
			errs = append(errs, mpi.CompareAndSwap(win, guess+1, guess, &was, target, cellSwapped), win.Flush(target))
			if was == guess || errors.Join(errs...) != nil {
				break
			}
		}
	}
	got := make([]int64, long)
	errs = append(errs, mpi.Get(win, got, target, block), win.Flush(target))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !slices.Equal(got, all) {
		return errors.New("Get has brought something else than Put has written")
	}
	if !slices.Equal(was, all) {
		return errors.New("GetAccumulate has brought something else than was accumulated")
	}
	for i := range half {
		if old[i] != 2*all[i] || half[i] != 3*all[i] {
			return fmt.Errorf("element %d of a vector: %x was there before, and then %x", i, old[i], half[i])
		}
	}
	return errors.Join(mpi.Accumulate(win, []int64{1}, target, cellDone, mpi.OpSum), win.UnlockAll())
}

// busyResult looks at what they have done.
func busyResult(mem []int64, n, me, rounds, long int, blockAt func(int) int) error {
	want := int64((n - 1) * rounds)
	if mem[cellSum] != want || mem[cellFetched] != want || mem[cellSwapped] != want {
		return fmt.Errorf("%d were accumulated, %d fetched and %d swapped, want %d each", mem[cellSum], mem[cellFetched], mem[cellSwapped], want)
	}
	for rank := range n {
		if rank == me {
			continue
		}
		b := mem[blockAt(rank):]
		for i := range long {
			stride := int64(0)
			if i%2 == 0 {
				stride = 3 * (int64(rank)<<32 + int64(i/2))
			}
			is, want := [parts]int64{b[partWhole*long+i], b[partEven*long+i], b[partSum*long+i]}, int64(rank)<<32+int64(i)
			if is != [parts]int64{want, stride, 2 * want} {
				return fmt.Errorf("element %d of rank %d is %x", i, rank, is)
			}
		}
		if mem[cellShort+rank] != int64(rank+1) {
			return fmt.Errorf("rank %d has put %d", rank, mem[cellShort+rank])
		}
	}
	return nil
}

// servedEpochs goes through epochs of all kinds on one window.
func servedEpochs(w *mpi.Comm) error {
	win, mem, err := mpi.WinAllocate[int64](w, 4+w.Size(), nil)
	if err != nil {
		return err
	}
	for round := range 20 {
		for _, epoch := range []func(*mpi.Comm, *mpi.Win, []int64, int64) error{fenceEpoch, groupEpoch, lockEpoch, allEpoch} {
			if err := epoch(w, win, mem, int64(round)); err != nil {
				return err
			}
		}
	}
	if err := win.Free(); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// fenceEpoch: what was put before a fence is there behind it.
func fenceEpoch(w *mpi.Comm, win *mpi.Win, mem []int64, round int64) error {
	n, me := w.Size(), w.Rank()
	errs := []error{win.Fence(mpi.ModeNoPrecede)}
	for to := range n {
		errs = append(errs, mpi.Put(win, []int64{round*100 + int64(me)}, to, 4+me))
	}
	errs = append(errs, win.Fence(mpi.ModeNoSucceed))
	for from := range n {
		if mem[4+from] != round*100+int64(from) {
			errs = append(errs, fmt.Errorf("round %d: behind the fence rank %d has put %d", round, from, mem[4+from]))
		}
	}
	return errors.Join(append(errs, w.Barrier())...)
}

// groupEpoch: what the left neighbour has put between Start and Complete is there behind
// Wait, or Test. The own rank is its neighbour where there is no other one.
func groupEpoch(w *mpi.Comm, win *mpi.Win, mem []int64, round int64) error {
	n, me := w.Size(), w.Rank()
	left, err1 := w.Group().Incl((me + n - 1) % n)
	right, err2 := w.Group().Incl((me + 1) % n)
	err := errors.Join(err1, err2, win.Post(left, 0), win.Start(right, 0),
		mpi.Put(win, []int64{round + 7}, (me+1)%n, 1), mpi.Accumulate(win, []int64{1}, (me+1)%n, 2, mpi.OpSum), win.Complete())
	if err != nil {
		return err
	}
	for done := round%2 == 0; !done; {
		if done, err = win.Test(); err != nil {
			return err
		}
	}
	if round%2 == 0 {
		err = win.Wait()
	}
	if mem[1] != round+7 || mem[2] != round+1 {
		err = errors.Join(err, fmt.Errorf("round %d: after Wait there are %v", round, mem[1:3]))
	}
	return errors.Join(err, w.Barrier())
}

// lockEpoch: an exclusive lock makes reading, adding and writing one thing, also where a
// rank does that by loads and stores.
func lockEpoch(w *mpi.Comm, win *mpi.Win, mem []int64, round int64) error {
	const times = 5
	for i := range times * w.Size() {
		to := (w.Rank() + i) % w.Size()
		var v [1]int64
		err := win.Lock(mpi.LockExclusive, to, 0)
		if err == nil && to == w.Rank() {
			mem[3]++
		} else if err == nil {
			err = errors.Join(mpi.Get(win, v[:], to, 3), win.Flush(to))
			v[0]++
			err = errors.Join(err, mpi.Put(win, v[:], to, 3))
		}
		if err := errors.Join(err, win.Unlock(to)); err != nil {
			return err
		}
	}
	err := errors.Join(w.Barrier(), win.Lock(mpi.LockShared, w.Rank(), 0))
	if want := (round + 1) * times * int64(w.Size()); mem[3] != want {
		err = errors.Join(err, fmt.Errorf("round %d: exclusive locks have let %d through, want %d", round, mem[3], want))
	}
	return errors.Join(err, win.Unlock(w.Rank()), w.Barrier())
}

// allEpoch: LockAll keeps those out who want an exclusive lock, and lets all else in.
func allEpoch(w *mpi.Comm, win *mpi.Win, mem []int64, round int64) error {
	if w.Rank() == 0 {
		var v [1]int64
		err := win.Lock(mpi.LockExclusive, w.Size()-1, 0)
		for range 10 {
			err = errors.Join(err, mpi.Get(win, v[:], w.Size()-1, 0), win.Flush(w.Size()-1))
			v[0]++
			err = errors.Join(err, mpi.Put(win, v[:], w.Size()-1, 0), win.Flush(w.Size()-1))
		}
		if err = errors.Join(err, win.Unlock(w.Size()-1)); err != nil {
			return err
		}
	}
	one := []int64{1}
	err := win.LockAll(0)
	for to := range w.Size() {
		err = errors.Join(err, mpi.Accumulate(win, one, to, 0, mpi.OpSum))
	}
	err = errors.Join(err, win.FlushAll(), win.UnlockAll(), w.Barrier(), win.Lock(mpi.LockShared, w.Rank(), 0))
	want := (round + 1) * int64(w.Size())
	if w.Rank() == w.Size()-1 {
		want += (round + 1) * 10
	}
	if mem[0] != want {
		err = errors.Join(err, fmt.Errorf("round %d: there are %d, want %d", round, mem[0], want))
	}
	return errors.Join(err, win.Unlock(w.Rank()), w.Barrier())
}

// windowsApart has windows of two communicators at a time, which may have the same context
// and the same ghosts, and makes and frees many.
func windowsApart(w *mpi.Comm) error {
	half, err := w.Split(w.Rank()%2, w.Rank())
	if err != nil {
		return err
	}
	for round := range 30 {
		win, mem, err := mpi.WinAllocate[int32](half, 100, nil)
		if err != nil {
			return err
		}
		err = win.Fence(0)
		for to := range half.Size() {
			err = errors.Join(err, mpi.Accumulate(win, []int32{int32(round + w.Rank()%2*1000)}, to, to, mpi.OpSum))
		}
		err = errors.Join(err, win.Fence(0))
		if want := int32(half.Size() * (round + w.Rank()%2*1000)); mem[half.Rank()] != want {
			err = errors.Join(err, fmt.Errorf("round %d: %d, want %d", round, mem[half.Rank()], want))
		}
		if err := errors.Join(err, win.Free()); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// oddWindows are some of which ranks have nothing, or units of their own, some that ghosts
// are not to serve, and some that they cannot.
func oddWindows(w *mpi.Comm) error {
	n, me := w.Size(), w.Rank()
	off, err := mpi.NewInfo("async_config", "off")
	if err != nil {
		return err
	}
	for i, info := range []*mpi.Info{nil, off} {
		unit, units := me+1, 100*(me%2)
		win, mem, err := w.WinAllocate(units*unit, unit, info)
		if err != nil {
			return err
		}
		hints, err := win.Info()
		if err != nil {
			return err
		}
		if got, known := hints.Get("async_config"); known && got != [2]string{"on", "off"}[i] {
			return fmt.Errorf("async_config is %q", got)
		}
		err = win.Fence(0)
		for to := 1; to < n; to += 2 {
			err = errors.Join(err, mpi.Put(win, []byte{byte(me + 1)}, to, 50+me))
		}
		if wrong := mpi.Put(win, []byte{1}, 0, 0); mpi.ClassOf(wrong) != mpi.ErrRMARange {
			err = errors.Join(err, fmt.Errorf("a Put where nothing is: %w", wrong))
		}
		err = errors.Join(err, win.Fence(0))
		for from := range n {
			if units > 0 && mem[(50+from)*unit] != byte(from+1) {
				err = errors.Join(err, fmt.Errorf("rank %d has put %d", from, mem[(50+from)*unit]))
			}
		}
		if err := errors.Join(err, win.Free()); err != nil {
			return err
		}
	}
	own := make([]int64, 10)
	win, err := mpi.WinCreate(w, own, nil)
	if err != nil {
		return err
	}
	err = errors.Join(win.Fence(0), mpi.Put(win, []int64{int64(me)}, (me+1)%n, 3), win.Fence(0))
	if own[3] != int64((me+n-1)%n) {
		err = errors.Join(err, fmt.Errorf("memory of the program: %v", own))
	}
	if err := errors.Join(err, win.Free()); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// whoIsThere tells what a rank sees of the job.
func whoIsThere(w *mpi.Comm) error {
	node, err := w.SplitType(mpi.TypeShared, 0)
	if err != nil {
		return err
	}
	fmt.Printf("%d/%d %d/%d %s/%s\n", w.Rank(), w.Size(), node.Rank(), node.Size(), os.Getenv("XWARP_RANK"), os.Getenv("XWARP_SIZE"))
	return nil
}

// ghostFabrics are what ranks of two hosts talk over.
var ghostFabrics = [][]string{
	{"--testbed", "2"}, {"--testbed", "2", "--queues", "steered", "--user", "nobody"},
	{"--testbed", "2", "--fabric", "udp"}, {"--testbed", "2", "--fabric", "udp", "--transport", "rc"},
	{"--testbed", "2", "--transport", "ud", "-x", "XWARP_FAULTS=loss=0.01"},
}

// One-sided communication is right with and without ghosts: each number of them with each program
// on every other network, on all of them with XWARP_LONG=1.
func TestXrun_ghosts(t *testing.T) {
	testenv.NeedRoot(t)
	for i, fabric := range ghostFabrics {
		for j, ghosts := range []string{"0", "1", "2"} {
			for k, what := range []string{"busy", "epochs", "apart", "odd"} {
				switch {
				case what == "busy" && ghosts == "0":
					continue // it would never end
				case (i+j+k)%2 != 0 && os.Getenv("XWARP_LONG") != "1":
					continue
				}
				t.Run(strings.Join(append(fabric, ghosts, what), "_"), func(t *testing.T) {
					args := append([]string{"-n", "4", "--ghosts", ghosts, "--wdir", "/"}, fabric...)
					out, errOut, status := xrun(t, append(args, self, asServed, what)...)
					if status != 0 || out != strings.Repeat("done\n", 4) {
						t.Errorf("status %d, %q, %s", status, out, errOut)
					}
				})
			}
		}
	}
}

// Ranks do not see ghosts, and a program that is none of MPI's does not either.
func TestXrun_ghostsAreNotSeen(t *testing.T) {
	testenv.NeedRoot(t)
	for _, ghosts := range []string{"0", "2"} {
		out, errOut, status := xrun(t, "-n", "3", "--ghosts", ghosts, "--queues", "shared", "--testbed", "2", "--tag-output", "--ordered-output", self, asServed, "who")
		want := "[0] 0/3 0/1 0/3\n[1] 1/3 0/2 1/3\n[2] 2/3 1/2 2/3\n"
		if status != 0 || out != want {
			t.Errorf("%s ghosts: status %d, %q, %s", ghosts, status, out, errOut)
		}
	}
	out, errOut, status := xrun(t, "-n", "2", "--ghosts", "1", "echo", "hello")
	if status != 0 || out != "hello\nhello\n" {
		t.Errorf("a program without MPI: status %d, %q, %s", status, out, errOut)
	}
	out, errOut, status = xrun(t, "-n", "2", "--ghosts", "1", "--ordered-output", "sh", "-c", "exit $XWARP_RANK")
	if status != 1 || !strings.Contains(errOut, "rank 1 ") {
		t.Errorf("a rank that fails: status %d, %q, %s", status, out, errOut)
	}
}

// A signal that xrun passes on is for the ranks: what they make of it is their affair, and
// ghosts go on.
func TestXrun_ghostsGetNoSignals(t *testing.T) {
	const script = `trap got=1 INT; sleep 0.2; kill -INT $XRUN_TEST_PID; while [ -z "$got" ]; do sleep 0.05; done; sleep 0.5; echo end`
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `export XRUN_TEST_PID=$$; exec "$0" -q -n 1 --ghosts 1 sh -c "$1"`, exe, script)
	cmd.Env = append(os.Environ(), xrunEnv+"=1")
	if out, errOut, status := finish(t, cmd); out != "end\n" || status != 0 {
		t.Errorf("status %d, %q, %s", status, out, errOut)
	}
}
