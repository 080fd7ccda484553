package mpi_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// Experiments of Casper (see bench/experiment.go) that take more processors than a small machine
// has, in the simulator: the protocol is ours, and everybody spends on each frame that arrives, and
// a ghost on each operation, what was measured (docs/PERFORMANCE.md: half a round trip of 8 bytes
// takes 2.2 us, of which half is the receiver's; 2.8 million gathered Puts take a second, and an
// accumulate of 1 MiB 0.45 ms). All messages are frames, those within a host as well. What ranks
// spend beyond the frame on an operation that they do themselves is not counted.
//
// The machine where that was measured has one NUMA node. That an operation on memory of another one takes a line of
// the cache more, and each byte twice as long, is taken.
const (
	costOfFrame     = 1100 * mono.Nanosecond
	costOfOperation = 360 * mono.Nanosecond
	costOf1000Bytes = 430 * mono.Nanosecond
	costOfFarLine   = 100 * mono.Nanosecond
)

func (c trialJob) cost(w work) mono.Duration {
	each, bytes := costOfOperation, mono.Duration(w.bytes)*costOf1000Bytes/1000
	if c.far(w.client, w.ghost) {
		each, bytes = each+costOfFarLine, 2*bytes
	}
	return mono.Duration(w.operations)*each + bytes
}

// Where the ghosts of a host with two NUMA nodes are, which its processes fill one after the other.
const (
	anywhere  = iota // all memory is as near
	behindOwn        // each ghost is behind its ranks, as xrun binds it
	behindAll        // all ghosts are behind all ranks
)

// far reports whether the memory of a rank of a host is on another node than a ghost.
func (c trialJob) far(rank, ghost int) bool {
	at := c.users + ghost
	if c.ghostsAt == behindOwn {
		at = ((ghost+1)*c.users+c.ghosts-1)/c.ghosts + ghost
		rank += rank * c.ghosts / c.users
	}
	half := (c.users + c.ghosts) / 2
	return c.ghostsAt != anywhere && (rank < half) != (at < half)
}

// costlyPort takes the task that polls it time for each frame.
type costlyPort struct {
	fabric.Port
	task *sim.Task
}

func (p costlyPort) Recv(dst []fabric.Desc) int {
	n, frames := p.Port.Recv(dst), 0
	for _, d := range dst[:n] {
		if d.Flags&fabric.More == 0 {
			frames++
		}
	}
	if frames > 0 {
		p.task.Sleep(mono.Duration(frames) * costOfFrame)
	}
	return n
}

// trialJob is a job in which some ranks of each host, and ghosts, do something.
type trialJob struct {
	hosts, users, ghosts int
	binding              mpi.GhostBinding
	async                mpi.Async
	memory, others       int           // words of the first rank of each host, and of the others; 0: all have words
	interval             time.Duration // of adaptation; 0: 500 us
	ghostsAt             int
	hints                []string // of a window that is made: keys and values
}

// trialRank is what a rank of it has.
type trialRank struct {
	*mpi.Win
	trialJob
	task *sim.Task
	proc *mpi.Proc
}

// words is the memory of a rank.
const words = 512

// took returns how long the slowest rank took.
func (c trialJob) took(t *testing.T, do func(r trialRank) error) (longest mono.Duration) {
	t.Helper()
	w := newHostedWorld(sim.Config{Seed: 1}, c.hosts*c.users, c.hosts, c.ghosts)
	if w.costs = c.cost; c.ghosts == 0 { // each rank is a host of its own to the protocol
		w.hosts = nil
	}
	w.mpi.Transport, w.mpi.Ghosts.Binding = mpi.RD, c.binding
	w.mpi.Async, w.mpi.AsyncInterval = c.async, cmp.Or(c.interval, 500*time.Microsecond)
	w.launch(func(task *sim.Task, p *mpi.Proc) error {
		memory := words
		if c.memory > 0 {
			memory = c.others
			if p.World().Rank() < c.hosts { // ranks are dealt to hosts in turn
				memory = c.memory
			}
		}
		win, _, err := mpi.WinAllocate[int64](p.World(), memory, nil)
		if err != nil {
			return err
		}
		r := trialRank{win, c, task, p}
		if err = win.LockAll(mpi.ModeNoCheck); err == nil { // that all are there, and messages have a way
			err = errors.Join(r.all(1, 1, mpi.Put), win.FlushAll(), p.World().Barrier())
		}
		start := task.Now()
		err = errors.Join(err, do(r), win.UnlockAll())
		longest = max(longest, task.Now().Sub(start))
		return errors.Join(err, win.Free())
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return longest
}

type winDo = func(w *mpi.Win, data []int64, target, at int) error

func add(w *mpi.Win, data []int64, target, at int) error {
	return mpi.Accumulate(w, data, target, at, mpi.OpSum)
}

// all does operations on n words of all ranks: so many on the first one of each host, and one on
// each other one.
func (r trialRank) all(first, n int, do winDo) error {
	data := make([]int64, n)
	for target := range r.Size() {
		times := 1
		if target < r.hosts {
			times = first
		}
		for i := range times {
			if err := do(r.Win, data, target, i*n%words); err != nil {
				return err
			}
		}
	}
	return nil
}

// every does the same on each rank so many times.
func (r trialRank) every(times int, do winDo) (err error) {
	for range times {
		err = errors.Join(err, r.all(1, 1, do))
	}
	return err
}

// published is such an experiment.
type published struct {
	figure, found string
	rows          []int
	ways          []string
	job           func(row, way int) trialJob
	do            func(r trialRank, row int) error
	holds         func(times [][]mono.Duration) bool // whether it is so, by row and way
	must          bool                               // else the test fails; if not, it only says which it is
}

// faster holds where the last way takes less than the first one in the last row.
func faster(times [][]mono.Duration) bool {
	last := times[len(times)-1]
	return last[len(last)-1] < last[0]
}

var bindings = []mpi.GhostBinding{mpi.GhostByRank, mpi.GhostByTurn, mpi.GhostByOperations, mpi.GhostByBytes}

func several(ghosts ...int) func(row, way int) trialJob {
	return func(_, way int) trialJob { return trialJob{hosts: 2, users: 16, ghosts: ghosts[way]} }
}

func bound(users int, way ...int) func(row, of int) trialJob {
	return func(_, of int) trialJob {
		return trialJob{hosts: 2, users: users, ghosts: 4, binding: bindings[way[of]]}
	}
}

// bySegment binds by segment: only the first rank of each host has so many words.
func bySegment(users, memory int, ghosts ...int) func(row, way int) trialJob {
	return func(_, way int) trialJob {
		return trialJob{hosts: 2, users: users, ghosts: ghosts[way], binding: mpi.GhostBySegment, memory: memory, others: 2}
	}
}

// outside does something without the locks that a trial has.
func (r trialRank) outside(do func() error) error {
	return errors.Join(r.UnlockAll(), do(), r.LockAll(mpi.ModeNoCheck))
}

// hinted is a way for each list of hints, without ghosts for the first one.
func hinted(hints ...[]string) func(row, way int) trialJob {
	return func(row, way int) trialJob {
		return trialJob{hosts: 1, users: row, ghosts: min(way, 1), hints: hints[way]}
	}
}

// make makes a window, as hints say, and frees it.
func (r trialRank) make() error {
	info, err := mpi.NewInfo(r.hints...)
	win, _, bad := mpi.WinAllocate[int64](r.proc.World(), words, info)
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	return win.Free()
}

func scaling(row, way int) trialJob { return trialJob{hosts: row, users: 1, ghosts: way} }

// scale is an operation on all and its flush, 100 us of computing, and ten operations on all.
func scale(do winDo) func(r trialRank, _ int) error {
	return func(r trialRank, _ int) error {
		err := errors.Join(r.every(1, do), r.FlushAll())
		r.task.Sleep(100 * mono.Microsecond)
		return errors.Join(err, r.every(10, do))
	}
}

// adaptive is a way for each mode, in the order of config.Asyncs.
func adaptive(_, way int) trialJob {
	return trialJob{hosts: 2, users: 8, ghosts: 1, async: mpi.Async(way)}
}

// phases is twice 30 operations to all, each with its flush and with 1 ms of computing before it, and so many without.
func (r trialRank) phases(alone int, do winDo) (err error) {
	for range 2 {
		for i := range 30 + alone {
			computes := mono.Millisecond
			if i >= 30 {
				computes = 0
			}
			r.task.Sleep(computes)
			err = errors.Join(err, r.every(1, do), r.FlushAll())
		}
	}
	return err
}

// cores is hosts of so many cores, of which a way takes so many for ghosts; users have the others.
func cores(of int, ghosts ...int) func(row, way int) trialJob {
	return func(_, way int) trialJob {
		return trialJob{hosts: 2, users: of - ghosts[way], ghosts: ghosts[way]}
	}
}

// ring is so many accumulates to each other rank, each with its flush, from the next rank on.
func (r trialRank) ring(times int) error {
	one := make([]int64, 1)
	for i := 1; i < r.Size(); i++ {
		target := (r.Rank() + i) % r.Size()
		for range times {
			if err := errors.Join(add(r.Win, one, target, r.Rank()), r.Flush(target)); err != nil {
				return err
			}
		}
	}
	return nil
}

// share is so many iterations of accumulates, computing, and an accumulate to each. Users divide
// the work of a host: each computes for so long where they have all cores.
func (r trialRank) share(iterations, times int, computes mono.Duration) (err error) {
	for range iterations {
		err = errors.Join(err, r.ring(times))
		r.task.Sleep(computes * mono.Duration(r.users+r.ghosts) / mono.Duration(r.users))
		err = errors.Join(err, r.ring(1))
	}
	return err
}

var publications = []published{
	{
		"4.11a, a window is made and freed, for more ranks of a host", "all epochs are heavy and grow with the ranks, lock alone slightly less, no lock far less and still over 2 times native", []int{2, 8, 16}, []string{"none", "1 ghost", "overlapping", "overlapping, lock", "overlapping, no lock"},
		hinted(nil, nil, []string{"window_layout", "overlapping"}, []string{"window_layout", "overlapping", "epochs_used", "lock"}, []string{"window_layout", "overlapping", "epochs_used", "fence,pscw,lockall"}),
		func(r trialRank, _ int) error { return r.outside(r.make) }, func(times [][]mono.Duration) bool {
			last := times[len(times)-1]
			return last[2] > 4*last[0] && last[4] < last[2]/2
		}, true,
	},
	{
		"4.14, accumulates to all ranks while they compute", "best with ghosts, for any number of ranks", []int{2, 8, 16, 32}, []string{"none", "1 ghost"},
		scaling, scale(add), faster, true,
	},
	{
		"4.15a, an accumulate to all, for more hosts of 16 ranks", "two ghosts are enough up to 32 processes, more of them win beyond", []int{1, 2, 4}, []string{"1 ghost", "2 ghosts", "4 ghosts"},
		func(row, way int) trialJob { return trialJob{hosts: row, users: 16, ghosts: 1 << way} },
		func(r trialRank, _ int) error { return r.every(1, add) }, faster, true,
	},
	{
		"4.15b, more accumulates to all", "more ghosts win above 8 operations for each process", []int{1, 8, 32}, []string{"1 ghost", "2 ghosts", "4 ghosts"},
		several(1, 2, 4), func(r trialRank, row int) error { return r.every(row, add) }, faster, true,
	},
	{
		"4.11c, 16 accumulates of more words on 1024, by segment", "as long for 128 words, and longer with more ghosts for 256 and 512", []int{128, 256, 512}, []string{"2 ghosts", "4 ghosts", "8 ghosts"},
		bySegment(1, 1024, 2, 4, 8), func(r trialRank, row int) (err error) {
			for i := 0; i < 16 && r.Rank() == 0; i++ {
				err = errors.Join(err, add(r.Win, make([]int64, row), 1, i*row%1024), r.Flush(1))
			}
			return err
		}, func(times [][]mono.Duration) bool { return times[2][0] < times[2][2] }, false,
	},
	{
		"4.15c, more accumulates to one rank of each host, by segment", "the more ghosts, the better", []int{1, 16, 64}, []string{"1 ghost", "2 ghosts", "4 ghosts"},
		bySegment(16, words, 1, 2, 4), func(r trialRank, row int) (err error) {
			for i := range row {
				for target := range r.hosts {
					err = errors.Join(err, add(r.Win, make([]int64, 8), target, (i+r.Rank())*8%words))
				}
			}
			for target := r.hosts; target < r.Size(); target++ {
				err = errors.Join(err, add(r.Win, make([]int64, 1), target, 0))
			}
			return err
		}, faster, true,
	},
	{
		"4.16a, more Puts to one rank of each host", "random is far better than rank", []int{1, 16, 64}, []string{"rank", "random"},
		bound(20, 0, 1), func(r trialRank, row int) error { return r.all(row, 32, mpi.Put) }, faster, true,
	},
	{
		"4.16b, and more accumulates", "operations is better than random, for accumulates stay with one ghost", []int{1, 16, 64}, []string{"random", "operations"},
		bound(20, 1, 2), func(r trialRank, row int) error {
			return errors.Join(r.all(row, 32, add), r.all(row, 32, mpi.Put))
		}, faster, true,
	},
	{
		"4.16c, Puts of more words to one rank of each host", "bytes is better than both", []int{1, 64, 512}, []string{"random", "operations", "bytes"},
		bound(8, 1, 2, 3), func(r trialRank, row int) error {
			n := max(1, min(row, words))
			for i := range r.Size() * 4 {
				size := 1
				if i%r.Size() < r.hosts {
					size = n
				}
				if err := mpi.Put(r.Win, make([]int64, size), i%r.Size(), 0); err != nil {
					return err
				}
			}
			return nil
		}, func(times [][]mono.Duration) bool { return slices.Min(times[2]) == times[2][2] }, true,
	},
	{
		"4.17, lock, 100 accumulates of more words, unlock", "up to 120 % more at 512 words where the ghost is on another NUMA node than the memory", []int{1, 8, 64, 512}, []string{"near", "far for half of the ranks"},
		func(_, way int) trialJob { return trialJob{hosts: 2, users: 6, ghosts: 2, ghostsAt: behindOwn + way} },
		func(r trialRank, row int) error {
			target := (r.Rank() + 1) % r.Size() // on the other host
			return r.outside(func() error {
				if err := r.Lock(mpi.LockExclusive, target, 0); err != nil {
					return err
				}
				for range 100 {
					if err := add(r.Win, make([]int64, row), target, 0); err != nil {
						return err
					}
				}
				return r.Unlock(target)
			})
		}, func(times [][]mono.Duration) bool {
			more := func(row []mono.Duration) float64 { return float64(row[1]) / float64(row[0]) }
			return more(times[0]) > 1 && more(times[3]) > more(times[0])
		}, true,
	},
	{
		"5.6, 20 fences without operations, for more ranks of a host", "P pays an exchange among all, which grows with the ranks, GP about as much", []int{2, 8, 16, 32}, []string{"none", "1 ghost", "P", "GP"},
		func(row, way int) trialJob {
			return trialJob{hosts: 1, users: row, ghosts: min(way, 1), async: []mpi.Async{mpi.AsyncOn, mpi.AsyncOn, mpi.AsyncAuto, mpi.AsyncAutoGhosts}[way]}
		},
		func(r trialRank, _ int) error {
			return r.outside(func() (err error) {
				for range 20 {
					err = errors.Join(err, r.Fence(0))
				}
				return err
			})
		}, func(times [][]mono.Duration) bool {
			last := times[len(times)-1]
			return last[2]-last[1] > times[0][2]-times[0][1] && last[3] < last[2]*11/10
		}, true,
	},
	{
		"5.7b, 100 Gets to all with their flush, and computing, for more ranks of a host", "a ghost is slower from 14 ranks of a host on", []int{2, 8, 14, 22}, []string{"none", "1 ghost"},
		func(row, way int) trialJob { return trialJob{hosts: 2, users: row, ghosts: way} },
		func(r trialRank, _ int) error {
			for i := range 101 {
				if i == 100 {
					r.task.Sleep(5 * mono.Millisecond)
				}
				if err := errors.Join(r.every(1, mpi.Get), r.FlushAll()); err != nil {
					return err
				}
			}
			return nil
		}, func(times [][]mono.Duration) bool { return times[0][1] < times[0][0] && times[3][1] > times[3][0] }, false,
	},
	{
		"5.8/5.9a, an accumulate to each, with its flush, before and after more ms of computing, ghosts out of 24 cores", "far better with a ghost, and slowly worse with more of them", []int{40, 400}, []string{"none", "1 ghost", "2 ghosts", "4 ghosts", "6 ghosts", "8 ghosts"},
		cores(24, 0, 1, 2, 4, 6, 8), func(r trialRank, row int) error {
			return r.share(2, 1, mono.Duration(row)*mono.Millisecond)
		}, func(times [][]mono.Duration) bool {
			far := !slices.ContainsFunc(times, func(row []mono.Duration) bool { return row[1] > row[0]/2 })
			return far && slices.IsSorted(times[1][1:])
		}, true,
	},
	{
		"5.8/5.9b, more accumulates to each, with their flush, and hardly any computing, ghosts out of 24 cores", "four times as long with a ghost, and less from 6 on", []int{1, 20}, []string{"none", "1 ghost", "2 ghosts", "4 ghosts", "6 ghosts", "8 ghosts"},
		cores(24, 0, 1, 2, 4, 6, 8), func(r trialRank, row int) error { return r.share(1, row, mono.Microsecond) }, func(times [][]mono.Duration) bool {
			last := times[len(times)-1]
			return last[1] > 3*last[0] && last[3] > last[0] && max(last[4], last[5]) < last[0]
		}, true,
	},
	{
		"5.10a, phases of computing for Gets and of Gets alone, without a call of all ranks", "GP is nearly as good as the better one of on and off in each phase, and P is not, which needs such calls", []int{800}, []string{"on", "off", "P", "GP"},
		adaptive, func(r trialRank, row int) error { return r.phases(row, mpi.Get) }, func(times [][]mono.Duration) bool {
			last := times[len(times)-1]
			return last[3] == slices.Min(last)
		}, true,
	},
	{
		"5.10b, the same with accumulates", "P and GP cannot follow without such calls: both take as long as on, and GP somewhat more", []int{200}, []string{"on", "off", "P", "GP"},
		adaptive, func(r trialRank, row int) error { return r.phases(row, add) }, func(times [][]mono.Duration) bool {
			last := times[0]
			return last[2] > last[0]*9/10 && last[3] > last[0]*9/10
		}, true,
	},
	{
		"5.11, phases as in 5.10a of 200 Gets, more us between what ghosts tell one another", "twice as long where they do so too often, best at half of a phase, and somewhat longer where they do it rarely", []int{20, 500, 12500}, []string{"GP"},
		func(row, _ int) trialJob {
			return trialJob{hosts: 2, users: 8, ghosts: 1, async: mpi.AsyncAutoGhosts, interval: time.Duration(row) * time.Microsecond}
		}, func(r trialRank, _ int) error { return r.phases(200, mpi.Get) }, func(times [][]mono.Duration) bool {
			best := times[1][0]
			return times[0][0] > best && times[2][0] > best
		}, false,
	},
}

// times returns how long everything takes, by row and way.
func (x published) times(t *testing.T) (names []string, times [][]mono.Duration) {
	for _, row := range x.rows {
		var line []mono.Duration
		for way := range x.ways {
			line = append(line, x.job(row, way).took(t, func(r trialRank) error { return x.do(r, row) }))
		}
		names, times = append(names, strconv.Itoa(row)), append(times, line)
	}
	return names, times
}

// show prints the times of an experiment, and whether they are as was published.
func (x published) show(t *testing.T, names []string, times [][]mono.Duration) {
	text := fmt.Sprintf("figure %s\n%8s %s\n", x.figure, "", strings.Join(x.ways, ", "))
	for i, line := range times {
		text += fmt.Sprintf("%8s %v\n", names[i], line)
	}
	here := "so"
	if !x.holds(times) {
		here = "not so"
	}
	if t.Logf("%spublished: %s; here: %s", text, x.found, here); x.must && here != "so" {
		t.Errorf("figure %s: %v", x.figure, times)
	}
}

// Trends that were published for many processors, and whether they are those of our protocol, too:
// -v shows the times.
func TestWin_published(t *testing.T) {
	oneGoroutine(t)
	for _, x := range publications {
		name, _, _ := strings.Cut(x.figure, ",")
		if name != "4.17" && os.Getenv("XWARP_LONG") != "1" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			names, times := x.times(t)
			x.show(t, names, times)
		})
	}
}
