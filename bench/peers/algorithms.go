package peers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/mpi"
)

// algorithms are those of the collectives that are measured, as mpi.EnvColl knows
// them: of all, further ones where hosts have several ranks, and on one host.
var algorithms = map[string]struct{ all, hosts, near []string }{
	"allgather": {[]string{"doubling", "bruck", "ring", "linear"}, []string{"hosts", "multileader"}, []string{"slots"}},
	"allreduce": {[]string{"doubling", "rabenseifner", "ring", "linear"}, []string{"hosts", "multileader"}, []string{"slots"}},
	"alltoall":  {all: []string{"bruck", "linear", "pairwise"}, hosts: []string{"hosts"}},
	"bcast":     {[]string{"binomial", "scatter", "chain"}, []string{"hosts", "multileader"}, []string{"slots"}},
	"reduce":    {[]string{"binomial", "rabenseifner"}, []string{"hosts"}, []string{"slots"}},
}

// Algorithms returns the tables of the algorithms of collectives: those of several
// hosts, and those of all ranks on one.
func (c Choice) Algorithms(cores []int) (tables []Table) {
	for _, n := range or(c.Ranks, someRanks) {
		for hosts := 2; hosts > 0; hosts-- {
			for _, name := range []string{"mpi_allreduce", "mpi_bcast", "mpi_alltoall", "mpi_allgather", "mpi_reduce"} {
				tables = c.add(tables, on(hosts, n, c.mtu(), cores), name)
			}
		}
	}
	return tables
}

// Algorithms measures tables with a column for each algorithm of the collective,
// and returns the rows that make mpi.EnvColl choose the best of each size. A number
// is that of the best burst: what else the machine does only adds to it.
func (m Measurement) Algorithms(tables []Table, emit func(Table, int, []bench.Result) error) (rows []string, err error) {
	m.Best = true
	for _, t := range tables {
		found, err := m.algorithms(t, emit)
		if err != nil {
			return nil, err
		}
		rows = append(found, rows...) // those of more ranks come first
	}
	return rows, nil
}

// key returns what the rows of a table are called.
func (t Table) key() string {
	if t.shared() && algorithms[t.order()].hosts != nil {
		return t.order() + ".hosts"
	}
	return t.order()
}

// shared reports whether ranks share one of several hosts.
func (t Table) shared() bool { return t.Where.Hosts > 1 && t.Where.Ranks > t.Where.Hosts }

func (m Measurement) algorithms(t Table, emit func(Table, int, []bench.Result) error) (rows []string, err error) {
	names := algorithms[t.order()].all
	if t.shared() {
		names = slices.Concat(names, algorithms[t.order()].hosts)
	} else if t.Where.Hosts == 1 && t.Where.Ranks > 2 {
		names = slices.Concat(names, algorithms[t.order()].near)
	}
	var columns []column
	defer func() {
		for _, c := range columns {
			err = errors.Join(err, c.close())
		}
	}()
	for _, name := range names {
		m.tell("starting "+name, t.Where)
		j, err := Ours(m.Program, t.Where, m.Fabric, slices.Max(t.Sizes), mpi.EnvColl+"="+t.key()+"="+name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column{name, j.Carrier, bench.Way{}, true, func(_ Table, o Order) (bench.Point, error) { return j.Run(o) }, j.Close})
	}
	var winners []string
	for _, size := range t.Sizes {
		results, err := m.row(t, size, columns)
		if err != nil {
			return nil, err
		}
		if err := emit(t, size, results); err != nil {
			return nil, err
		}
		winners = append(winners, winner(results, t.Case.Kind, winners))
	}
	return t.rows(winners), nil
}

// clearly is how much better an algorithm has to be than the one of the size
// before, which else is kept: less is chance.
const clearly = 0.97

// winner returns the algorithm for a size.
func winner(results []bench.Result, kind bench.Kind, before []string) string {
	best := slices.MinFunc(results, func(a, b bench.Result) int { return cmp.Compare(a.Value(kind), b.Value(kind)) })
	if len(before) > 0 {
		last := before[len(before)-1]
		if r := find(results, last); r != nil && best.Value(kind) > clearly*r.Value(kind) {
			return last
		}
	}
	return best.Library
}

// rows returns the rows of a table of which algorithm was best for each size, up to
// the longest one of it.
func (t Table) rows(winners []string) (rows []string) {
	for i, name := range winners {
		bytes := t.Sizes[i]
		if t.order() == "allgather" {
			bytes *= t.Where.Ranks // in all
		}
		switch {
		case i+1 < len(winners) && winners[i+1] == name:
		case i+1 == len(winners):
			rows = append(rows, fmt.Sprintf("%s:0:%d=%s", t.key(), t.Where.Ranks, name))
		default:
			rows = append(rows, fmt.Sprintf("%s:%d:%d=%s", t.key(), bytes, t.Where.Ranks, name))
		}
	}
	return rows
}

// Setting is the rows as the environment of ranks has them.
func Setting(rows []string) string { return mpi.EnvColl + "=\"" + strings.Join(rows, " ") + "\"" }

// lowest returns the best of the points of a latency.
func lowest(points []bench.Point) []bench.Point {
	if len(points) == 0 || points[0].Lat == nil {
		return points
	}
	return []bench.Point{slices.MinFunc(points, func(a, b bench.Point) int { return cmp.Compare(a.Lat.P50, b.Lat.P50) })}
}
