package peers

import (
	"cmp"
	"slices"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// Table is a test over sizes, on some hosts: a table of results, with a column
// for each library.
type Table struct {
	Case  bench.Case
	Where Where
	Sizes []int  // bytes, one of them for a barrier, which counts for nothing; of mpi_overlap microseconds that the target computes, of mpi_ghosts the rows
	Op    string // mpi_overlap; mpi_ghosts: the experiment
	Bytes int    // mpi_overlap: of an operation
}

// order returns the test as ranks know it.
func (t Table) order() string {
	switch {
	case t.Case.Kind == bench.Computing:
		return overlapOrder + t.Op
	case t.Case.Kind == bench.Trials:
		return trialOrder + t.Op
	case t.Case.Family != bench.MPI:
	case t.Case.Kind == bench.PingPong:
		return "lat"
	case t.Case.Kind == bench.Duplex:
		return "duplex"
	default:
		return "stream"
	}
	return t.Case.Name[len(bench.MPIPrefix):]
}

// window is how many messages of a stream are under way.
const window = 64

// The sizes in bytes of the tables.
var (
	latencySizes    = []int{8, 64, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
	bandwidthSizes  = []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}
	collectiveSizes = []int{8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
)

// someRanks are the numbers of ranks of collectives.
var someRanks = []int{2, 4, 8}

// Choice narrows down what is measured. Its zero value is all of it.
type Choice struct {
	Tests []string // by name; default all of MPI
	MTUs  []int    // of messages between hosts; default 1500, 9000 and 32000
	Ranks []int    // of collectives; default 2, 4 and 8
	Sizes []int    // in bytes; default by test

	Ops     []string // mpi_overlap; default all
	Compute []int    // mpi_overlap: microseconds that the target computes; default 0 to 1000
	Bytes   int      // mpi_overlap: of an operation; default 64
}

// collectiveMTU is the MTU that collectives are measured with, unless one was
// asked for.
const collectiveMTU = 9000

// or returns what was asked for, or else the default.
func or[T any](asked, otherwise []T) []T {
	if asked == nil {
		return otherwise
	}
	return asked
}

// mtu returns that of tables that are measured with one only.
func (c Choice) mtu() int { return or(c.MTUs, []int{collectiveMTU})[0] }

// Plan returns the tables, those on the same hosts and ranks together. cores
// are the processors that may be used.
func (c Choice) Plan(cores []int) []Table {
	mtus := or(c.MTUs, []int{1500, collectiveMTU, 32000})
	pairTests := []string{
		"mpi_lat", "mpi_rate", "mpi_bw", "mpi_bibw",
		"mpi_put_lat", "mpi_get_lat", "mpi_acc_lat", "mpi_fop_lat", "mpi_cas_lat", "mpi_put_bw", "mpi_get_bw", "mpi_put_rate",
	}
	var tables []Table
	pair := func(w Where, names ...string) {
		for _, name := range names {
			tables = c.add(tables, w, name)
		}
	}
	for _, mtu := range mtus {
		pair(on(2, 2, mtu, cores), pairTests...)
	}
	mtu := collectiveMTU
	if !slices.Contains(mtus, mtu) {
		mtu = mtus[0]
	}
	c.Ops = or(c.Ops, bench.OverlapPeers())
	tables = append(tables, c.Overlap(2, cores)...)
	pair(on(1, 2, mtu, cores), pairTests...)
	for _, n := range or(c.Ranks, someRanks) {
		pair(on(2, n, mtu, cores), collectives()...)
	}
	return tables
}

// collectives returns the names of the tests of collectives.
func collectives() (names []string) {
	for _, c := range bench.Cases() {
		if c.Family == bench.Coll {
			names = append(names, c.Name)
		}
	}
	return names
}

// overlapBytes is the size of an operation of mpi_overlap: 8 words.
const overlapBytes = 64

// Overlap returns the tables of mpi_overlap, on so many hosts.
func (c Choice) Overlap(hosts int, cores []int) (tables []Table) {
	const name = "mpi_overlap"
	if c.Tests != nil && !slices.Contains(c.Tests, name) {
		return nil
	}
	t := Table{Where: on(hosts, 2, c.mtu(), cores), Sizes: or(c.Compute, []int{0, 10, 30, 100, 300, 1000}), Bytes: cmp.Or(c.Bytes, overlapBytes)}
	t.Case, _ = bench.Find(name)
	for _, t.Op = range or(c.Ops, bench.OverlapOps()) {
		tables = append(tables, t)
	}
	return tables
}

// Experiment returns the table of an experiment of mpi_ghosts.
func (c Choice) Experiment(e bench.Experiment, cores []int) Table {
	t := Table{Where: on(e.Hosts, 2, c.mtu(), cores), Sizes: e.Rows, Op: e.Name}
	t.Case, _ = bench.Find("mpi_ghosts")
	return t
}

func (c Choice) add(tables []Table, w Where, name string) []Table {
	if c.Tests != nil && !slices.Contains(c.Tests, name) {
		return tables
	}
	t := Table{Where: w, Sizes: c.Sizes}
	t.Case, _ = bench.Find(name)
	switch {
	case name == "mpi_barrier":
		t.Sizes = []int{0}
	case t.Case.OneWord():
		t.Sizes = []int{8}
	case t.Sizes != nil:
	case t.Case.Family == bench.Coll:
		t.Sizes = collectiveSizes
	case t.Case.Kind == bench.Rate:
		t.Sizes = []int{8}
	case t.Case.Kind == bench.Bandwidth || t.Case.Kind == bench.Duplex:
		t.Sizes = bandwidthSizes
	default:
		t.Sizes = latencySizes
	}
	return append(tables, t)
}

// on returns where n ranks run. They are pinned as xrun does it: one to each of the first cores
// while there are enough, else to those that their host has for itself.
func on(hosts, n, mtu int, cores []int) Where {
	w := Where{Hosts: hosts, Ranks: n, MTU: mtu, Crowded: n > len(cores)}
	switch {
	case !w.Crowded:
		w.Cores = cores[:n]
	case hosts <= len(cores):
		for i := range n {
			w.Cores = append(w.Cores, cores[testbed.Processor(len(cores), hosts, i*hosts/n, i%(n/hosts))])
		}
	}
	return w
}

// same reports whether tables a and b run on the same ranks.
func same(a, b Where) bool {
	return a.Hosts == b.Hosts && a.Ranks == b.Ranks && a.MTU == b.MTU
}
