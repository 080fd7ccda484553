package bench

import (
	"fmt"
	"io"
	"strings"
)

// Comparison is two tables, of latency and of bandwidth: message sizes down,
// contenders across, all measured in turns in one run.
type Comparison struct {
	Name       string // as `xperf compare NAME` has it
	Summary    string // for the help
	Sizes      []int
	Contenders []Contender
}

// Contender is a column of a comparison: one way to move messages.
type Contender struct {
	Name      string
	Latency   Spec
	Bandwidth Spec
}

// comparisons is the registry, with the sizes from the smallest message to the
// largest that people send in one piece. A column is its name, the family of
// its tests, the transport and the fabric.
var comparisons = []struct {
	name, summary, sizes string
	columns              [][4]string
}{
	{
		"mpi", "MPI over AF_XDP beside MPI over UDP and plain TCP", "8,64,512,4K,32K,256K,1M,4M",
		[][4]string{
			{"MPI/AF_XDP", "mpi", "", "xdp"}, {"MPI/UDP", "mpi", "", "udp"}, {"plain TCP", "raw", "", "tcp"},
		},
	},
	{
		"verbs", "UD, RD and RC, each over AF_XDP and over kernel sockets, and those plain", "1:1M",
		[][4]string{
			{"UD/AF_XDP", "send", "ud", "xdp"}, {"RD/AF_XDP", "send", "rd", "xdp"},
			{"RC/AF_XDP", "send", "rc", "xdp"},
			{"UD/UDP", "send", "ud", "udp"}, {"RD/UDP", "send", "rd", "udp"}, {"RC/TCP", "send", "rc", "tcp"},
			{"plain UDP", "raw", "", "udp"}, {"plain TCP", "raw", "", "tcp"},
		},
	},
}

// Comparisons returns all comparisons, with the columns over AF_XDP when
// withXDP is set.
func Comparisons(withXDP bool) ([]Comparison, error) {
	var all []Comparison
	for _, c := range comparisons {
		sizes, err := ParseSizes(c.sizes)
		if err != nil {
			return nil, err
		}
		x := Comparison{Name: c.name, Summary: c.summary, Sizes: sizes}
		for _, column := range c.columns {
			lat := Spec{Test: column[1] + "_lat", Transport: column[2], Fabric: column[3], Sizes: sizes, Clip: true, Warmup: -1}
			bw := lat
			bw.Test = column[1] + "_bw"
			if withXDP || !lat.onXDP() {
				x.Contenders = append(x.Contenders, Contender{column[0], lat, bw})
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// Only makes c compare these sizes.
func (c *Comparison) Only(sizes []int) {
	c.Sizes = sizes
	for i := range c.Contenders {
		x := &c.Contenders[i]
		x.Latency.Sizes, x.Bandwidth.Sizes = sizes, sizes
	}
}

// FindComparison returns the comparison with that name.
func FindComparison(name string, withXDP bool) (Comparison, error) {
	all, err := Comparisons(withXDP)
	if err != nil {
		return Comparison{}, err
	}
	var names []string
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Comparison{}, usagef("there is no comparison %q; the comparisons are %s", name, strings.Join(names, ", "))
}

// Table writes what a comparison has measured with tests of one kind, row by
// row as it comes: in columns of fixed width, or as Markdown.
type Table struct {
	W          io.Writer
	Kind       Kind
	Contenders []Contender
	Markdown   bool

	sizes []int
	rows  []Row
}

// Head begins the table.
func (t *Table) Head() error { return t.head(kinds[t.Kind].title) }

func (t *Table) head(title string) error {
	cells := []string{"bytes"}
	for _, c := range t.Contenders {
		cells = append(cells, c.Name)
	}
	return t.lines().Begin(title, cells)
}

func (t *Table) lines() Lines { return Lines{t.W, t.Markdown, 14} }

// Row writes the line of one size. What cannot send messages of that size has
// no number.
func (t *Table) Row(size int, r Row) error {
	t.sizes, t.rows = append(t.sizes, size), append(t.rows, r)
	return t.numbers(fmt.Sprint(size), r, func(x Result) float64 { return x.Value(t.Kind) })
}

func (t *Table) numbers(label string, r Row, value func(Result) float64) error {
	cells := []string{label}
	for _, x := range r.Results {
		cell := "-"
		if x.Rounds > 0 {
			cell = fmt.Sprintf("%.2f", value(x))
		}
		cells = append(cells, cell)
	}
	return t.lines().Line(cells)
}

// Foot ends the table with what its rows leave out: the tail of latencies, or
// the share of messages that got lost in streams.
func (t *Table) Foot() error {
	if !t.Kind.Latency() {
		return t.numbers("lost %", t.sum(), func(x Result) float64 { return 100 * float64(x.Lost) / float64(x.Iters) })
	}
	if err := t.head("The same, 99th percentile"); err != nil {
		return err
	}
	for i, r := range t.rows {
		err := t.numbers(fmt.Sprint(t.sizes[i]), r, func(x Result) float64 { return x.Lat.P99 })
		if err != nil {
			return err
		}
	}
	return nil
}

// sum adds up the messages of each column.
func (t *Table) sum() Row {
	sum := Row{Results: make([]Result, len(t.Contenders))}
	for _, r := range t.rows {
		for k, x := range r.Results {
			sum.Results[k].Lost += x.Lost
			sum.Results[k].Iters += x.Iters * x.Rounds
			sum.Results[k].Rounds += x.Rounds
		}
	}
	return sum
}
