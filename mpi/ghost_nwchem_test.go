package mpi_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi"
)

// What NWChem's CCSD(T) does with the memory of other ranks, phase by phase, as the thesis tells it (4.8, 5.6), on ranks that
// the simulator has. A task is a number from a common counter (nxtask), blocks that are got, some
// computing, and blocks that are accumulated. The phases differ in how much there is of each, and in how often all
// ranks meet:
//
//   - 4-index: many Puts, Gets and accumulates, hardly any computing, one window that was there before
//   - CCSD: in each iteration a window, many Gets, little computing, some accumulates, and calls of all ranks
//   - (T): one window at the beginning, Gets with their flush, much computing, no call of all ranks until the end
//
// What ranks compute is shared by all cores of a host: ghosts take some of them.

// chemistry is such a program.
type chemistry struct {
	trialRank
	told    [3]string // async_config by phase, where the program says it when windows are made; or ""
	meets   bool      // and says it again in each call of all ranks
	old     *mpi.Win  // that of the beginning
	block   []int64   // what is got and accumulated
	counter int       // number of the counter in use
	turn    int       // of the rank whose memory is next
}

// The phases, as rows.
const (
	fourIndex = iota
	iteration
	triples
)

// chemTasks is how many tasks a phase has for each core, so that those of hosts with ghosts are as many.
const chemTasks = 8

// run goes through all phases, and returns how long each took.
func (c *chemistry) run() (took []mono.Duration, err error) {
	c.start()
	if c.old, err = c.made(""); err != nil { // GA's arrays, from before it was known what for
		return nil, err
	}
	phase := func(do func() error) {
		start := c.task.Now()
		err = errors.Join(err, do(), c.proc.World().Barrier())
		took = append(took, c.task.Now().Sub(start))
	}
	phase(func() error {
		return errors.Join(c.tasks(c.old, fourIndex, c.transform), c.tasks(c.old, fourIndex, c.transform))
	})
	phase(func() error {
		for range 3 {
			if err := c.within(iteration, c.amplitudes); err != nil {
				return err
			}
		}
		return nil
	})
	phase(func() error { return c.within(triples, c.triple) })
	return took, errors.Join(err, c.end(c.old))
}

func (c *chemistry) start() { c.block, c.turn = make([]int64, 8), c.Rank() }

// made makes a window that a program says something of.
func (c *chemistry) made(hint string) (*mpi.Win, error) {
	info := &mpi.Info{}
	if hint != "" {
		_ = info.Set("async_config", hint) // which is a key
	}
	win, _, err := mpi.WinAllocate[int64](c.proc.World(), words, info)
	if err == nil {
		err = win.LockAll(mpi.ModeNoCheck)
	}
	return win, err
}

func (c *chemistry) end(w *mpi.Win) error { return errors.Join(w.UnlockAll(), w.Free()) }

// within has the tasks of a phase work on a window of its own.
func (c *chemistry) within(phase int, do func(w *mpi.Win) error) error {
	w, err := c.made(c.told[phase])
	if err != nil {
		return err
	}
	return errors.Join(c.tasks(w, phase, do), c.end(w))
}

// sync is GA_Sync: all is done, and all are there.
func (c *chemistry) sync(w *mpi.Win, phase int) error {
	hint, err := mpi.NewInfo("symmetric", "true")
	if c.meets {
		err = errors.Join(err, hint.Set("async_config", c.told[phase]))
	}
	return errors.Join(err, w.FlushAll(), w.SetInfo(hint))
}

// tasks has each rank take tasks until none is left. The counter of the window is in the memory of the first rank: another
// one each time.
func (c *chemistry) tasks(w *mpi.Win, phase int, do func(w *mpi.Win) error) error {
	last := int64(chemTasks * c.hosts * (c.users + c.ghosts))
	if err := c.sync(w, phase); err != nil {
		return err
	}
	for c.counter++; ; {
		next := int64(0)
		err := errors.Join(mpi.FetchAndOp(w, 1, &next, 0, words-c.counter, mpi.OpSum), w.Flush(0))
		if err != nil || next >= last {
			return errors.Join(err, c.sync(w, phase))
		}
		if err := do(w); err != nil {
			return err
		}
	}
}

// blocks does operations on blocks of so many ranks, and flushes each.
func (c *chemistry) blocks(w *mpi.Win, times int, do winDo) error {
	for range times {
		c.turn = (c.turn + 1) % c.Size()
		if err := errors.Join(do(w, c.block, c.turn, 0), w.Flush(c.turn)); err != nil {
			return err
		}
	}
	return nil
}

func (c *chemistry) transform(w *mpi.Win) error {
	err := errors.Join(c.blocks(w, 10, mpi.Get), c.blocks(w, 20, add), c.blocks(w, 10, mpi.Put))
	c.task.Sleep(20 * mono.Microsecond)
	return err
}

func (c *chemistry) amplitudes(w *mpi.Win) error {
	err := c.blocks(w, 10, mpi.Get)
	c.task.Sleep(20 * mono.Microsecond)
	return errors.Join(err, c.blocks(w, 2, add))
}

func (c *chemistry) triple(w *mpi.Win) error {
	err := c.blocks(w, 2, mpi.Get)
	c.task.Sleep(mono.Millisecond)
	return err
}

// chemCores is how many cores a host has.
const chemCores = 12

// chemWay is who serves windows, in one column.
type chemWay struct {
	ghosts   int // out of the cores of a host
	async    mpi.Async
	told     [3]string
	meets    bool
	interval time.Duration // of adaptation
}

// took returns how long the slowest rank takes for what do does in several parts, and for all.
func (way chemWay) took(t *testing.T, hosts int, do func(c *chemistry) ([]mono.Duration, error)) (parts []mono.Duration) {
	c := trialJob{hosts: hosts, users: chemCores - way.ghosts, ghosts: way.ghosts, async: way.async, interval: way.interval}
	all := c.took(t, func(r trialRank) error {
		return r.outside(func() error {
			took, err := do(&chemistry{trialRank: r, told: way.told, meets: way.meets})
			for i, d := range took {
				if i == len(parts) {
					parts = append(parts, 0)
				}
				parts[i] = max(parts[i], d)
			}
			return err
		})
	})
	return append(parts, all)
}

var (
	chemPhases = [3]string{"off", "off", "on"} // what is best in each
	chemWays   = map[string]chemWay{
		"none":     {},
		"1 ghost":  {ghosts: 1},
		"2 ghosts": {ghosts: 2},
		"6 ghosts": {ghosts: 6},
		"U":        {ghosts: 1, told: chemPhases},
		"U-coll":   {ghosts: 1, told: chemPhases, meets: true},
		"P":        {ghosts: 1, async: mpi.AsyncAuto},
		"GP":       {ghosts: 1, async: mpi.AsyncAutoGhosts},
		"20 us":    {ghosts: 1, async: mpi.AsyncAutoGhosts, interval: 20 * time.Microsecond},
		"100 us":   {ghosts: 1, async: mpi.AsyncAutoGhosts, interval: 100 * time.Microsecond},
		"500 us":   {ghosts: 1, async: mpi.AsyncAutoGhosts, interval: 500 * time.Microsecond},
		"5 ms":     {ghosts: 1, async: mpi.AsyncAutoGhosts, interval: 5 * time.Millisecond},
	}
)

// wholeChemistry is all phases, on two hosts.
func wholeChemistry(t *testing.T, way string) []mono.Duration {
	return chemWays[way].took(t, 2, (*chemistry).run)
}

// onlyTriples is (T) alone, on more hosts.
func onlyTriples(t *testing.T, way string) (took []mono.Duration) {
	for hosts := 2; hosts <= 4; hosts *= 2 {
		took = append(took, chemWays[way].took(t, hosts, func(c *chemistry) ([]mono.Duration, error) {
			c.start()
			return nil, c.within(triples, c.triple)
		})...)
	}
	return took
}

var (
	chemParts   = []string{"4-index", "CCSD", "(T)", "all"}
	chemistries = []struct {
		published
		parts []string
		whole func(t *testing.T, way string) []mono.Duration // how long each part takes
	}{
		{published: published{
			figure: "4.20/4.21, (T) of NWChem, of as much work for each core, on more hosts of 12 cores, of which ghosts take some: 6 are one for each rank, as threads on cores of their own are", found: "about half of the time with a ghost, and with threads no gain, for ranks have half of the cores",
			ways: []string{"none", "1 ghost", "6 ghosts"},
			holds: func(times [][]mono.Duration) bool {
				return !slices.ContainsFunc(times, func(row []mono.Duration) bool { return row[1] > row[0]*3/4 || row[2] < row[0]*9/10 })
			}, must: true,
		}, parts: []string{"2 hosts", "4 hosts"}, whole: onlyTriples},
		{published: published{
			figure: "5.12 to 5.18, phases of NWChem's CCSD(T) on two hosts of 12 cores", found: "ghosts make (T) 40 % shorter, 4-index 160 % longer, and all of it longer; U mends CCSD, U-coll all, P not (T), GP nearly all without hints; all is then 30 % shorter",
			ways:  []string{"none", "1 ghost", "2 ghosts", "U", "U-coll", "P", "GP"},
			holds: chemistryHolds, must: true,
		}, parts: chemParts, whole: wholeChemistry},
		{published: published{
			figure: "5.19, the same with GP, by how often ghosts tell one another", found: "often is bad for 4-index and good for (T)",
			ways: []string{"20 us", "100 us", "500 us", "5 ms"},
			holds: func(times [][]mono.Duration) bool {
				return times[0][0] > times[0][2] && times[2][0] < times[2][3]
			},
		}, parts: chemParts, whole: wholeChemistry},
	}
)

func chemistryHolds(times [][]mono.Duration) bool {
	const none, one, u, collective, p, gp = 0, 1, 3, 4, 5, 6
	four, ccsd, t, all := times[0], times[1], times[2], times[3]
	return four[one] > 2*four[none] && ccsd[one] > ccsd[none]*3/2 && t[one] < t[none]*3/4 && all[one] > all[none] &&
		four[u] > four[collective]*3/2 && ccsd[u] < ccsd[one]*3/4 &&
		all[collective] == slices.Min(all) && all[collective] < all[none] &&
		t[p] > t[collective]*5/4 && t[gp] < t[p] && all[gp] < all[p] && all[gp] < all[one]
}

// Phases that were published of a program that takes thousands of cores.
func TestWin_publishedChemistry(t *testing.T) {
	if oneGoroutine(t); os.Getenv("XWARP_LONG") != "1" {
		t.Skip("phases of a program on up to 48 ranks: XWARP_LONG=1")
	}
	for _, x := range chemistries {
		name, _, _ := strings.Cut(x.figure, ",")
		t.Run(name, func(t *testing.T) {
			times := make([][]mono.Duration, len(x.parts))
			for _, way := range x.ways {
				for i, d := range x.whole(t, way) {
					times[i] = append(times[i], d)
				}
			}
			x.show(t, x.parts, times)
		})
	}
}
