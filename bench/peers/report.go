package peers

import (
	"fmt"
	"io"
	"slices"

	"github.com/xwarp/xwarp/bench"
)

// Report writes tables as their rows come, sizes down and libraries across, and
// behind them what xwarp is of each of the others.
type Report struct {
	W        io.Writer
	Markdown bool

	current *Table
}

// title says what a table is.
func (t Table) title() string {
	on := place(t.Where.Hosts, t.Where.Ranks, t.Where.MTU)
	if t.Where.Crowded {
		on += ", more ranks than processors"
	}
	name := t.Case.Name
	switch {
	case t.Case.Kind == bench.Trials:
		name += " " + t.Op
	case t.Op != "":
		name += fmt.Sprintf(" %s of %d bytes", t.Op, t.Bytes)
	}
	return fmt.Sprintf("%s, %s: %s", name, on, t.Case.Kind.Unit())
}

// place says where so many ranks are.
func place(hosts, ranks, mtu int) string {
	if hosts == 1 {
		return fmt.Sprintf("%d ranks on one host", ranks)
	}
	return fmt.Sprintf("%d ranks on %d hosts, MTU %d", ranks, hosts, mtu)
}

// Row writes the line of one size.
func (r *Report) Row(t Table, size int, results []bench.Result) error {
	if r.current == nil || r.current.Case != t.Case || r.current.Op != t.Op || !same(r.current.Where, t.Where) {
		r.current = &t
		if err := r.head(t, results); err != nil {
			return err
		}
	}
	cells := []string{fmt.Sprint(size)}
	for _, x := range results {
		cells = append(cells, number(x, t.Case.Kind))
	}
	for _, x := range others(results) {
		cells = append(cells, share(ratio(results, x.Library, t.Case.Kind)))
	}
	return r.lines().Line(cells)
}

// head begins a table.
func (r *Report) head(t Table, results []bench.Result) error {
	cells := []string{"bytes"}
	switch {
	case t.Case.Kind == bench.Trials:
		cells[0] = "n"
	case t.Op != "":
		cells[0] = "computes"
	}
	for _, x := range results {
		cells = append(cells, x.Library)
	}
	for _, x := range others(results) {
		cells = append(cells, "/"+x.Library)
	}
	return r.lines().Begin(t.title(), cells)
}

func (r *Report) lines() bench.Lines { return bench.Lines{W: r.W, Markdown: r.Markdown, Width: 11} }

// number writes what a library came to.
func number(x bench.Result, k bench.Kind) string {
	switch v := x.Value(k); {
	case x.Rounds == 0:
		return "-"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func share(r float64) string {
	if r == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r)
}

// find returns the result of a library, or nil.
func find(results []bench.Result, library string) *bench.Result {
	for i := range results {
		if results[i].Library == library && results[i].Rounds > 0 {
			return &results[i]
		}
	}
	return nil
}

// others returns the results of what is not ours, if ours is there.
func others(results []bench.Result) (list []bench.Result) {
	if !slices.ContainsFunc(results, func(x bench.Result) bool { return x.Library == oursLibrary }) {
		return nil
	}
	for _, x := range results {
		if x.Library != oursLibrary {
			list = append(list, x)
		}
	}
	return list
}

// ratio returns what xwarp is of a library, or 0.
func ratio(results []bench.Result, library string, k bench.Kind) float64 {
	mine, theirs := find(results, oursLibrary), find(results, library)
	if mine == nil || theirs == nil || theirs.Value(k) == 0 {
		return 0
	}
	return mine.Value(k) / theirs.Value(k)
}
