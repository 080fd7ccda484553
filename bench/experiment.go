package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi"
)

// Way is how windows of ours are served: a column of a table.
type Way struct {
	Name     string   // of the column; default by what follows
	Ghosts   int      // of each host
	Progress string   // the thread that makes progress
	Env      []string // of all processes
	Variant  string   // of an experiment: what its ranks are told
}

// Experiment is one of those by which Casper was judged (Min Si: Scalable system software for
// efficient MPI communication, thesis, University of Tokyo, 2016), as far as two ranks can do it.
type Experiment struct {
	Name      string // as --op of mpi_ghosts has it
	Figure    string // of the thesis
	What      string
	Axis      string // what rows are
	Rows      []int
	Hosts     int
	Ways      []Way // the first one is what others are compared with
	Published string
	open      func(t *Trial) error
}

// The columns that several experiments have.
var (
	alone    = Way{Name: "no ghost"}
	oneGhost = Way{Name: "1 ghost", Ghosts: 1}
)

func hinted(name, variant string) Way { return Way{Name: name, Ghosts: 1, Variant: variant} }

func asynchronous(name, mode string) Way {
	return Way{Name: name, Ghosts: 1, Env: []string{mpi.EnvAsync + "=" + mode, mpi.EnvAsyncTime + "=20ms"}}
}

var phaseWays = []Way{asynchronous("off", "off"), asynchronous("on", "on"), {Name: "U-coll", Ghosts: 1, Variant: "told"}, asynchronous("P", "auto"), asynchronous("GP", "auto-ghosts")}

var experiments = []Experiment{
	{
		"alloc", "4.11a, 5.6", "a window is made and freed", "bytes", []int{4096}, 1,
		[]Way{alone, oneGhost, hinted("lock", "epochs_used=lock"), hinted("no lock", "epochs_used=fence,pscw,lockall"), hinted("overlapping", "window_layout=overlapping"), hinted("off", "async_config=off"), asynchronous("P", "auto"), asynchronous("GP", "auto-ghosts")},
		"all epochs are heavy, lock alone slightly less, no lock far less and still over 2 times native; off is about native, P as on, GP insignificantly more", (*Trial).alloc,
	},
	{
		"fence", "4.11b", "an epoch between fences", "accumulates", []int{1, 8, 64, 512}, 2,
		[]Way{alone, oneGhost}, "one or two times more for few operations, nothing for many", (*Trial).fence,
	},
	{
		"pscw", "4.11b", "Start, accumulates, Complete", "accumulates", []int{1, 8, 64, 512}, 2,
		[]Way{alone, oneGhost}, "one or two times more for few operations, nothing for many", (*Trial).pscw,
	},
	{
		"self", "4.11d", "lock of the rank itself, Put, unlock", "doubles", []int{1}, 1,
		[]Way{alone, oneGhost, hinted("no load", "no_local_load_store=true"), hinted("no check", "nocheck")}, "1.0 to 1.4 us more, least with no_local_load_store or NOCHECK", (*Trial).selfLock,
	},
	{
		"fence_busy", "4.13b", "an epoch between fences while the target computes for 100 us", "accumulates", []int{1, 8, 64, 128, 512}, 2,
		[]Way{alone, oneGhost, {Name: "thread O", Progress: "thread"}, {Name: "thread D", Progress: "thread-core"}}, "a gain until the operations take longer than the target computes (about 128); a thread on the cores of the ranks (O) or on its own (D) costs more than ghosts", (*Trial).fenceBusy,
	},
	{
		"pscw_busy", "4.13b", "Start, accumulates, Complete while the target computes for 100 us between Post and Wait", "accumulates", []int{1, 64, 512}, 2,
		[]Way{alone, oneGhost, {Name: "thread O", Progress: "thread"}, {Name: "thread D", Progress: "thread-core"}}, "as with fences", (*Trial).pscwBusy,
	},
	{
		"dgemm", "4.2b", "a rank multiplies matrices and waits for the other one, which adds to its memory under LockAll", "accumulates", []int{1, 64, 1024}, 2,
		[]Way{alone, oneGhost, {Name: "thread O", Progress: "thread"}, {Name: "thread D", Progress: "thread-core"}}, "interrupts take the more from computing the more operations there are; ghosts nothing", (*Trial).dgemm,
	},
	{
		"op_cost", "table 5.1", "an operation on x*2*2 of (x+8)*8*8 doubles, and its flush", "x", []int{2, 128, 4096}, 2,
		[]Way{{Name: "Put", Variant: "put"}, {Name: "Get", Variant: "get"}, {Name: "Accumulate", Variant: "acc"}}, "Get as Put; an accumulate 1.12, 1.71 and 2.60 times as long, for it unpacks into memory before it adds", (*Trial).opCost,
	},
	{
		"fence_mode", "5.6", "a fence without operations", "fences", []int{1}, 1,
		[]Way{alone, oneGhost, asynchronous("P", "auto"), asynchronous("GP", "auto-ghosts")}, "P pays an exchange among all ranks, GP about 1 us more", (*Trial).fenceMode,
	},
	{
		"info_mode", "5.6", "SetInfo with symmetric", "calls", []int{1}, 1,
		[]Way{oneGhost, asynchronous("P", "auto"), asynchronous("GP", "auto-ghosts")}, "P pays an exchange among all ranks, GP about 1 us more", (*Trial).infoMode,
	},
	{
		"get_many", "5.7a", "2x2x2 of 8x8x8 doubles, N Gets with their flush, 5 ms of computing, and one more", "Gets", []int{1, 4, 16, 64}, 2,
		[]Way{alone, oneGhost}, "up to 4.85 times faster with a ghost for 22 ranks below 16, slower above 32", (*Trial).getMany,
	},
	{
		"acc_many", "5.7a", "the same with accumulates", "accumulates", []int{1, 4, 16, 64}, 2,
		[]Way{alone, oneGhost}, "up to 3.9 times faster below 16, slower above 32", (*Trial).accMany,
	},
	{
		"get_size", "5.7c", "x*2*2 of (x+8)*8*8 doubles: one Get, 5 ms, and one more", "x", []int{2, 128, 1024}, 2,
		[]Way{alone, oneGhost}, "2.67 times faster at 128, slower from 1024 on", (*Trial).getSize,
	},
	{
		"acc_size", "5.7c", "the same with accumulates", "x", []int{2, 128, 1024}, 2,
		[]Way{alone, oneGhost}, "slower from 128 on", (*Trial).accSize,
	},
	{
		"phases", "5.10a", "two windows, in each a phase of 2 ms of computing for a Get, and one of Gets", "Gets", []int{2000}, 2,
		phaseWays, "each of on and off is bad in one phase; U-coll is best, GP nearly so, P between", (*Trial).getPhases,
	},
	{
		"phases_acc", "5.10b", "the same with accumulates", "accumulates", []int{2000}, 2,
		phaseWays, "P and GP alike, and GP longer in the phase of computing: what ghosts tell one another is of no use there", (*Trial).accPhases,
	},
}

// Experiments returns those of names, or all.
func Experiments(names []string) []Experiment {
	return slices.DeleteFunc(slices.Clone(experiments), func(e Experiment) bool { return names != nil && !slices.Contains(names, e.Name) })
}

// ParseExperiments reads names of experiments: "fence,self".
func ParseExperiments(list string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, name := range names {
		if len(Experiments([]string{name})) == 0 {
			var all []string
			for _, e := range experiments {
				all = append(all, e.Name)
			}
			return nil, usagef("there is no experiment %q; those of mpi_ghosts are %s", name, strings.Join(all, ", "))
		}
	}
	return names, nil
}

// Finding is what was found in an experiment, there and here. It is one line of JSON.
type Finding struct {
	Experiment string `json:"experiment"`
	Figure     string `json:"figure"` // of the thesis
	Published  string `json:"published"`
	Here       string `json:"here"`
}

// Finding says what rows of results on so many cores come to: what each way takes of the first
// one, in the first row and in the last.
func (e Experiment) Finding(rows [][]Result, cores int) Finding {
	f := Finding{Experiment: e.Name, Figure: e.Figure, Published: e.Published}
	if len(rows) == 0 {
		return f
	}
	var parts []string
	for i := range e.Ways[1:] {
		part := ""
		for k, row := range rows {
			if k > 0 && k < len(rows)-1 || row[0].Lat == nil || row[i+1].Lat == nil {
				continue
			}
			if part != "" {
				part += ","
			}
			part += fmt.Sprintf(" %.2f at %d", row[i+1].Lat.P50/row[0].Lat.P50, row[0].N)
		}
		parts = append(parts, fmt.Sprintf("%s%s", e.Ways[i+1].Name, part))
	}
	turns := ""
	for _, way := range e.Ways {
		if n := 2 + e.Hosts*way.Ghosts; n > cores {
			turns = fmt.Sprintf("; up to %d processes took turns on %d processors", n, cores)
		}
	}
	f.Here = fmt.Sprintf("of the time of %s: %s (%s)%s", e.Ways[0].Name, strings.Join(parts, "; "), e.Axis, turns)
	return f
}

// Trial is an experiment under way on one of two ranks: rank 0 is timed.
type Trial struct {
	*Messages
	n       int // the row
	variant string
	clock   mono.Real
	wins    []*mpi.Win
	mine    func() error // rank 0: what is timed
	theirs  func() error // rank 1: the same times; nil: it waits for a message meanwhile
	last    func() error // both: behind all of it; or nil
}

// Trial opens an experiment. All ranks of the world call it.
func (m *Messages) Trial(name, variant string, n int) (*Trial, error) {
	found := Experiments([]string{name})
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no experiment %q", name)
	}
	t := &Trial{Messages: m, n: n, variant: variant}
	return t, found[0].open(t)
}

// Origin returns how long n times took.
func (t *Trial) Origin(warmup, n int, samples []mono.Duration) ([]mono.Duration, error) {
	for i := -warmup; i < n; i++ {
		start := t.clock.Now()
		if err := t.mine(); err != nil {
			return nil, err
		}
		if i >= 0 {
			samples = append(samples, t.clock.Now().Sub(start))
		}
	}
	return samples, errors.Join(t.Done(), t.end())
}

// Target is the other end of Origin.
func (t *Trial) Target(n int) error {
	for i := 0; t.theirs != nil && i < n; i++ {
		if err := t.theirs(); err != nil {
			return err
		}
	}
	return errors.Join(t.Serve(), t.end())
}

func (t *Trial) end() (err error) {
	if t.last != nil {
		err = t.last()
	}
	for _, w := range t.wins {
		err = errors.Join(err, w.Free())
	}
	return err
}

// window makes one of so many doubles, with the hint that the variant is.
func (t *Trial) window(doubles int) (*mpi.Win, error) {
	info := &mpi.Info{}
	if key, value, is := strings.Cut(t.variant, "="); is {
		if err := info.Set(key, value); err != nil {
			return nil, err
		}
	}
	w, _, err := mpi.WinAllocate[float64](t.World, doubles, info)
	return w, err
}

// keep makes a window that lasts as long as the experiment.
func (t *Trial) keep(doubles int) (*mpi.Win, error) {
	w, err := t.window(doubles)
	if err == nil {
		t.wins = append(t.wins, w)
	}
	return w, err
}
