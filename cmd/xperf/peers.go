package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/bench/peers"
	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// peersTable is the table of compare that has other MPI libraries in it.
const peersTable = "peers"

// peersSummary is for the help.
const peersSummary = "MPI over AF_XDP beside raw frames, MPICH and Open MPI over TCP"

// algorithmsTable is the table of compare that has the algorithms of collectives.
const (
	algorithmsTable   = "algorithms"
	algorithmsSummary = "algorithms of collectives, and what XWARP_COLL is to be for the best ones"
)

// abiTable is the table of compare that has programs in C over xwarp in it.
const (
	abiTable   = "abi"
	abiSummary = "MPI over AF_XDP in Go beside the same in C, over the libraries of make abi"
)

// ofRanks reports whether a table of compare has jobs of MPI ranks in its columns.
func ofRanks(table string) bool {
	return table == peersTable || table == algorithmsTable || table == abiTable
}

// rankCommand makes xperf a rank of a job; no user gives it.
const rankCommand = "rank"

// mpiFlags defines the flags of what starts all ranks itself.
func (o *options) mpiFlags(fs *flag.FlagSet) {
	parsed(fs, "eager", &o.spec.Eager, parseEager)
	parsed(fs, "eager-idle", &o.spec.EagerIdle, parseEager)
	parsed(fs, "eager-near", &o.spec.EagerNear, parseEager)
	fs.StringVar(&o.spec.Rendezvous, "rendezvous", o.spec.Rendezvous, "")
	fs.Func("n", "", func(s string) (err error) {
		if o.twoEnds {
			return fs.Set("iters", s)
		}
		o.ranks, err = parseRanks(s)
		return err
	})
	fs.BoolVar(&o.best, "best", o.best, "")
	fs.BoolVar(&o.matrix, "matrix", o.matrix, "")
	fs.BoolVar(&o.quick, "quick", o.quick, "")
	fs.StringVar(&o.out, "out", o.out, "")
	parsed(fs, "tests", &o.tests, parseTests)
	parsed(fs, "ghosts", &o.ghosts, parseGhosts)
	parsed(fs, "progress", &o.progress, parseProgress)
	parsed(fs, "compute", &o.compute, bench.ParseCompute)
}

// parseGhosts reads numbers of ghosts: "0,1".
func parseGhosts(list string) ([]int, error) {
	return bench.ParseInts(list, func(n int) bool { return n >= 0 && n <= launch.MaxGhosts },
		fmt.Sprintf("numbers of ghosts of each host up to %d, as in 0,1", launch.MaxGhosts))
}

// parseProgress reads names of threads that make progress: "thread,thread-core".
func parseProgress(list string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, name := range names {
		if config.Progresses.Index(name) < 1 {
			return nil, fmt.Errorf("%q is no list of threads that make progress: it may be thread, thread-core or both, and what is without them --ghosts 0 shows", list)
		}
	}
	return names, nil
}

// parseRanks reads numbers of ranks: "2,4,8".
func parseRanks(list string) ([]int, error) {
	return bench.ParseInts(list, func(n int) bool { return n >= 2 && n%2 == 0 && n <= 250 },
		"numbers of ranks: half of them go to each of two hosts, so write even ones up to 250, as in 2,4,8")
}

// parseTests reads names of tests of MPI.
func parseTests(list string) (tests []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		if c, ok := bench.Find(name); !ok || !c.OfMPI() || c.Kind == bench.Trials {
			return nil, fmt.Errorf("%q is no test of MPI: mpi_lat, mpi_put_lat, mpi_allreduce and the like are", name)
		}
		tests = append(tests, name)
	}
	return tests, nil
}

// comparePeers prints what xwarp, raw frames and other libraries came to, all
// measured in turns, and which targets that meets.
func (p *program) comparePeers(o *options) error {
	if !o.testbed {
		return p.matrix(o, peers.Measurement{}, nil)
	}
	m, err := p.measurement(o)
	if err != nil {
		return err
	}
	for _, peer := range peers.Peers() {
		if missing := peer.Missing(); missing != "" {
			p.notice("%s", missing)
			continue
		}
		m.Peers = append(m.Peers, peer)
	}
	if o.matrix {
		return p.matrix(o, m, o.choice().Matrix(m.Cores, o.quick))
	}
	m.Server = []string{m.Program[0], "serve"}
	return p.judge(o, m, o.choice())
}

// judge prints what tests of our choice came to, and which targets that meets.
func (p *program) judge(o *options, m peers.Measurement, choice peers.Choice) error {
	var verdict peers.Verdict
	if err := p.tables(o, m, choice.Plan(m.Cores), verdict.Row); err != nil || o.json {
		return err
	}
	return verdict.Write(p.out)
}

// compareABI prints what the way through the libraries for C takes more than the Go API.
func (p *program) compareABI(o *options) error {
	m, err := p.measurement(o)
	if err != nil {
		return err
	}
	m.Best = true // the tax is less than what others on the machine add
	if m.Xmpicc, err = peers.Xmpicc(m.Program[0]); err != nil {
		return err
	}
	choice := o.choice()
	if choice.Tests == nil {
		choice.Tests = []string{"mpi_lat", "mpi_rate"}
	}
	return p.judge(o, m, choice)
}

// job measures a test whose ranks start together, of ours.
func (p *program) job(o *options) error {
	m, err := p.measurement(o)
	if err != nil {
		return err
	}
	choice := o.choice()
	choice.Tests = []string{o.command}
	if o.command == "mpi_ghosts" {
		return p.experiments(o, m, choice)
	}
	tables := choice.Plan(m.Cores)
	if o.command == "mpi_overlap" {
		hosts := 2
		if m.Fabric == "shm" {
			hosts = 1
		}
		if len(choice.Sizes) > 0 {
			choice.Bytes = choice.Sizes[0]
		}
		for _, n := range o.ghosts {
			m.Ways = append(m.Ways, bench.Way{Ghosts: n})
		}
		for _, who := range o.progress {
			m.Ways = append(m.Ways, bench.Way{Progress: who})
		}
		tables = choice.Overlap(hosts, m.Cores)
	}
	return p.tables(o, m, tables, func(peers.Table, int, []bench.Result) {})
}

// experiments measures those of mpi_ghosts, and prints behind each what was published of it.
func (p *program) experiments(o *options, m peers.Measurement, choice peers.Choice) error {
	for _, e := range bench.Experiments(choice.Ops) {
		m.Ways = e.Ways
		var rows [][]bench.Result
		err := m.Measure([]peers.Table{choice.Experiment(e, m.Cores)}, p.emit(o, func(_ peers.Table, _ int, row []bench.Result) { rows = append(rows, row) }))
		if err != nil {
			return err
		}
		f := e.Finding(rows, len(m.Cores))
		if o.json {
			err = json.NewEncoder(p.out).Encode(f)
		} else {
			_, err = fmt.Fprintf(p.out, "%s (n: %s)\npublished, figure %s: %s\nhere: %s\n", e.What, e.Axis, f.Figure, f.Published, f.Here)
		}
		if err != nil {
			return err
		}
	}
	return p.draw(o)
}

// choice is what the flags narrow down.
func (o *options) choice() peers.Choice {
	c := peers.Choice{Tests: o.tests, Ranks: o.ranks, Sizes: o.spec.Sizes, Compute: o.compute}
	if o.spec.Op != "" {
		c.Ops = strings.Split(o.spec.Op, ",")
	}
	if o.spec.MTU != 0 {
		c.MTUs = []int{o.spec.MTU}
	}
	return c
}

// measurement is how it is measured, by root only.
func (p *program) measurement(o *options) (peers.Measurement, error) {
	if !bench.Root() {
		return peers.Measurement{}, testbed.ErrPermission
	}
	self, err := os.Executable()
	if err != nil {
		return peers.Measurement{}, err
	}
	cores := o.cores
	if !o.given["cores"] {
		if cores, err = launch.AllowedCPUs(); err != nil {
			return peers.Measurement{}, err
		}
	}
	return peers.Measurement{
		Program: []string{self, rankCommand}, Fabric: cmp.Or(o.spec.Fabric, "xdp"), Cores: cores,
		Rounds: o.rounds, Burst: o.duration, Best: o.best, Progress: p.progress, Abort: abort,
	}, nil
}

// compareAlgorithms prints what the algorithms of collectives came to, and how to
// choose the best.
func (p *program) compareAlgorithms(o *options) error {
	m, err := p.measurement(o)
	if err != nil {
		return err
	}
	rows, err := m.Algorithms(o.choice().Algorithms(m.Cores), p.emit(o, func(peers.Table, int, []bench.Result) {}))
	if err = errors.Join(err, p.draw(o)); err != nil || o.json {
		return err
	}
	_, err = fmt.Fprintf(p.out, "\n%s\n", peers.Setting(rows))
	return err
}

// tables measures tables, and prints and keeps them.
func (p *program) tables(o *options, m peers.Measurement, tables []peers.Table, also func(peers.Table, int, []bench.Result)) error {
	return errors.Join(m.Measure(tables, p.emit(o, also)), p.draw(o))
}

// emit prints and keeps the rows of tables as they come.
func (p *program) emit(o *options, also func(peers.Table, int, []bench.Result)) func(peers.Table, int, []bench.Result) error {
	report := peers.Report{W: p.out, Markdown: o.markdown}
	return func(t peers.Table, size int, results []bench.Result) error {
		p.clear()
		row := bench.Row{Results: results}
		p.keep(row)
		also(t, size, results)
		if o.json {
			return row.WriteJSON(p.out)
		}
		return report.Row(t, size, results)
	}
}
