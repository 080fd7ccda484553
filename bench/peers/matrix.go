package peers

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/bench/plot"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// What the matrix asks for: no cell takes more than so much of the time of the better one
// of the other libraries, and the geometric mean of all cells no more than that.
const (
	NeverSlower = 1.05
	MeanShare   = 0.6
)

// Quick makes a measurement of the matrix one of less than two minutes: its budget leaves
// time for a row that has begun, and for the end of the ranks.
func (m Measurement) Quick() Measurement {
	m.Rounds, m.Burst, m.Budget = 3, 10*mono.Millisecond, 100*mono.Second
	return m
}

// Matrix returns the tables of the matrix: sizes of 8 bytes and the powers of four up to
// 4 MiB, between two hosts by MTU and on one, and all collectives by number of ranks. A
// quick one has some of each.
func (c Choice) Matrix(cores []int, quick bool) (tables []Table) {
	sizes, ranks, colls := []int{8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}, someRanks, collectives()
	if quick {
		sizes, ranks = []int{8, 4 << 10, 64 << 10, 1 << 20}, []int{2, 4}
	}
	if quick && c.Tests == nil {
		colls = []string{"mpi_allreduce", "mpi_bcast", "mpi_allgather", "mpi_alltoall", "mpi_barrier"}
	}
	c.Sizes = or(c.Sizes, sizes)
	places := []Where{{Hosts: 1, MTU: collectiveMTU}}
	for _, mtu := range or(c.MTUs, []int{collectiveMTU, 1500, 32000}) {
		places = append(places, Where{Hosts: 2, MTU: mtu})
	}
	for _, n := range or(c.Ranks, ranks) {
		for _, p := range places {
			w := on(p.Hosts, n, p.MTU, cores)
			if n == 2 {
				tables = c.addPairs(tables, w)
			}
			for _, name := range colls {
				tables = c.add(tables, w, name)
			}
		}
	}
	return slices.DeleteFunc(tables, func(t Table) bool { return len(t.Sizes) == 0 })
}

// addPairs adds the tests of two ranks. Streams of less than 1 KiB are judged by their
// messages, others by their bytes: what is done is the same.
func (c Choice) addPairs(tables []Table, w Where) []Table {
	all := c
	c.Sizes = slices.DeleteFunc(slices.Clone(all.Sizes), func(n int) bool { return n >= 1<<10 })
	tables = c.add(all.add(tables, w, "mpi_lat"), w, "mpi_rate")
	c.Sizes = slices.DeleteFunc(slices.Clone(all.Sizes), func(n int) bool { return n < 1<<10 })
	return all.add(c.add(tables, w, "mpi_bw"), w, "mpi_bibw")
}

// Matrix is what tests came to, a cell for each size: the latest row of each. Its zero
// value is ready.
type Matrix struct {
	cells map[cell][]bench.Result
}

// cell is a test of one size somewhere. MTU is that between hosts, else 0.
type cell struct {
	test                    string
	hosts, ranks, mtu, size int
}

func newCell(test string, hosts, ranks, mtu, size int) cell {
	if hosts == 1 {
		mtu = 0
	}
	return cell{test, hosts, ranks, mtu, size}
}

func (k cell) before(l cell) int {
	return cmp.Or(cmp.Compare(k.hosts, l.hosts), cmp.Compare(k.ranks, l.ranks), cmp.Compare(k.mtu, l.mtu), cmp.Compare(k.test, l.test), cmp.Compare(k.size, l.size))
}

func (k cell) kind() bench.Kind {
	c, _ := bench.Find(k.test)
	return c.Kind
}

// Read adds the lines that Keep has written. An incomplete last one, of a run that was
// killed, is left out; complete is how many bytes are before it.
func (m *Matrix) Read(lines []byte) (complete int, err error) {
	complete = bytes.LastIndexByte(lines, '\n') + 1
	results, err := bench.ReadResults(bytes.NewReader(lines[:complete]))
	for _, x := range results {
		if x.Ranks == 0 || x.Hosts == 0 || x.Library == "" {
			return 0, fmt.Errorf("not of a matrix: a result of %s without a library, ranks or hosts", x.Test)
		}
		m.add(x)
	}
	return complete, err
}

// Keep adds a row and writes it as lines of JSON, at once.
func (m *Matrix) Keep(w io.Writer, results []bench.Result) error {
	for _, x := range results {
		if x.Rounds > 0 {
			m.add(x)
		}
	}
	var b bytes.Buffer
	if err := (bench.Row{Results: results}).WriteJSON(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// add adds a result. One of a library that the row has already begins the row anew: only
// what was measured in turns is compared.
func (m *Matrix) add(x bench.Result) {
	if m.cells == nil {
		m.cells = map[cell][]bench.Result{}
	}
	k := newCell(x.Test, x.Hosts, x.Ranks, x.MTU, x.Size)
	row := m.cells[k]
	if find(row, x.Library) != nil {
		row = nil
	}
	m.cells[k] = append(row, x)
}

// Missing returns what is left of tables to be measured of our library and others.
func (m *Matrix) Missing(tables []Table, others []Peer) (left []Table, rows int) {
	for _, t := range tables {
		t.Sizes = slices.DeleteFunc(slices.Clone(t.Sizes), func(size int) bool {
			row := m.cells[newCell(t.Case.Name, t.Where.Hosts, t.Where.Ranks, t.Where.MTU, size)]
			lacks := func(p Peer) bool { return find(row, p.Name) == nil }
			return find(row, oursLibrary) != nil && !slices.ContainsFunc(others, lacks)
		})
		if len(t.Sizes) > 0 {
			left = append(left, t)
			rows += len(t.Sizes)
		}
	}
	return left, rows
}

// share returns what our time is of that of the better one of the other libraries, and
// which one that is; 0 if there is none.
func (m *Matrix) share(k cell) (worst float64, of string) {
	row := m.cells[k]
	for _, x := range others(row) {
		r := ratio(row, x.Library, k.kind())
		if r > 0 && !k.kind().Latency() {
			r = 1 / r
		}
		if r > worst {
			worst, of = r, x.Library
		}
	}
	return worst, of
}

// tally is what cells come to.
type tally struct {
	all, lost  int
	logs, most float64
}

func (a *tally) count(share float64) {
	a.all++
	a.logs += math.Log(share)
	a.most = max(a.most, share)
	if share > NeverSlower {
		a.lost++
	}
}

// mean returns the geometric mean.
func (a *tally) mean() float64 { return math.Exp(a.logs / float64(a.all)) }

// sorted returns all cells that are judged, in order.
func (m *Matrix) sorted() []cell {
	return slices.DeleteFunc(slices.SortedFunc(maps.Keys(m.cells), cell.before), func(k cell) bool {
		share, _ := m.share(k)
		return share == 0
	})
}

// Write writes what each test came to, the cells that lose, the worst first, and the
// verdict.
func (m *Matrix) Write(w io.Writer, markdown bool) error {
	keys := m.sorted()
	if len(keys) == 0 {
		_, err := fmt.Fprintf(w, "\nno cell has another library in it: install MPICH or Open MPI\n")
		return err
	}
	var sum tally
	lines := bench.Lines{W: w, Markdown: markdown, Width: 7}
	if err := lines.Begin("our time / that of the better of MPICH and Open MPI", []string{"mean", "worst", "lost", "cells", "of"}); err != nil {
		return err
	}
	for len(keys) > 0 {
		var t tally
		first := keys[0]
		for len(keys) > 0 && keys[0].before(cell{first.test, first.hosts, first.ranks, first.mtu, math.MaxInt}) <= 0 {
			share, _ := m.share(keys[0])
			t.count(share)
			sum.count(share)
			keys = keys[1:]
		}
		of := "  " + first.test + ", " + place(first.hosts, first.ranks, first.mtu)
		if err := lines.Line([]string{share(t.mean()), share(t.most), fmt.Sprint(t.lost), fmt.Sprint(t.all), of}); err != nil {
			return err
		}
	}
	if err := m.writeLost(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%-7s never slower: %d of %d cells above %g of the better of MPICH and Open MPI\n%-7s geometric mean %.2f, wanted at most %g\n",
		verdict(sum.lost == 0), sum.lost, sum.all, NeverSlower, verdict(sum.mean() <= MeanShare), sum.mean(), MeanShare)
	return err
}

// writeLost writes the cells that lose.
func (m *Matrix) writeLost(w io.Writer) error {
	lost := slices.DeleteFunc(m.sorted(), func(k cell) bool { r, _ := m.share(k); return r <= NeverSlower })
	slices.SortStableFunc(lost, func(a, b cell) int {
		x, _ := m.share(a)
		y, _ := m.share(b)
		return cmp.Compare(y, x)
	})
	if len(lost) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "\ncells that lose"); err != nil {
		return err
	}
	for _, k := range lost {
		r, of := m.share(k)
		mine, theirs := find(m.cells[k], oursLibrary), find(m.cells[k], of)
		if _, err := fmt.Fprintf(w, "%7.2f  %s %d bytes, %s: %s, %s %s %s\n", r, k.test, k.size, place(k.hosts, k.ranks, k.mtu),
			number(*mine, k.kind()), of, number(*theirs, k.kind()), k.kind().Unit()); err != nil {
			return err
		}
	}
	return nil
}

// Heat returns the matrix as a drawing: sizes across, tests and where they ran down.
func (m *Matrix) Heat() plot.Heat {
	h := plot.Heat{Title: "our time / that of the better of MPICH and Open MPI"}
	keys := m.sorted()
	sizes := map[int]int{}
	for _, k := range keys {
		sizes[k.size] = 0
	}
	for i, size := range slices.Sorted(maps.Keys(sizes)) {
		sizes[size] = i
		h.Columns = append(h.Columns, plot.Bytes(float64(size)))
	}
	for _, k := range keys {
		name := k.test + ", " + place(k.hosts, k.ranks, k.mtu)
		if n := len(h.Rows); n == 0 || h.Rows[n-1] != name {
			h.Rows = append(h.Rows, name)
			h.Values = append(h.Values, make([]float64, len(sizes)))
		}
		h.Values[len(h.Rows)-1][sizes[k.size]], _ = m.share(k)
	}
	return h
}
