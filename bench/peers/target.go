package peers

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
)

// target is a ratio that xwarp is to reach.
type target struct {
	test   string
	hosts  int
	mtu    int // 0: any
	size   int
	of     string  // the library that the ratio is to
	bound  float64 // that it shall be at most, in tests of latency, or at least
	strict bool    // it shall not even be equal
}

// targets are what docs/PERFORMANCE.md asks for.
var targets = []target{
	{test: "mpi_lat", hosts: 2, size: 8, of: RawLibrary, bound: 1.2},
	{test: "mpi_lat", hosts: 2, size: 8, of: "MPICH", bound: 0.45},
	{test: "mpi_rate", hosts: 2, size: 8, of: "MPICH", bound: 20},
	{test: "mpi_bw", hosts: 2, size: 1 << 20, of: RawLibrary, bound: 0.9},
	{test: "mpi_bw", hosts: 2, mtu: 9000, size: 1 << 20, of: "MPICH", bound: 1, strict: true},
	{test: "mpi_bw", hosts: 2, mtu: 9000, size: 1 << 20, of: "Open MPI", bound: 1, strict: true},
	{test: "mpi_bw", hosts: 2, mtu: 32000, size: 1 << 20, of: "MPICH", bound: 1.8},
	{test: "mpi_bw", hosts: 2, mtu: 32000, size: 1 << 20, of: "Open MPI", bound: 1.8},
	{test: "mpi_put_lat", hosts: 2, size: 8, of: "MPICH", bound: 0.3},
	{test: "mpi_put_lat", hosts: 2, size: 8, of: "Open MPI", bound: 0.5},
	{test: "mpi_acc_lat", hosts: 2, size: 8, of: "MPICH", bound: 0.5},
	{test: "mpi_fop_lat", hosts: 2, size: 8, of: "MPICH", bound: 0.5},
	{test: "mpi_put_rate", hosts: 2, size: 8, of: "MPICH", bound: 20},
	{test: "mpi_put_bw", hosts: 2, size: 1 << 20, of: "MPICH", bound: 1},
	{test: "mpi_put_bw", hosts: 2, size: 1 << 20, of: "Open MPI", bound: 1},
	{test: "mpi_put_lat", hosts: 1, size: 8, of: "MPICH", bound: 1.2},
	{test: "mpi_lat", hosts: 1, size: 8, of: "MPICH", bound: 2},
	{test: "mpi_bw", hosts: 1, size: 1 << 20, of: "MPICH", bound: 1},
}

// collectiveShare is the share of cells in which a collective shall be faster
// than MPICH's.
const collectiveShare = 0.9

func (g target) concerns(t Table, size int) bool {
	return g.test == t.Case.Name && g.hosts == t.Where.Hosts && g.size == size && (g.mtu == 0 || g.mtu == t.Where.MTU)
}

// taxBound is what a half round trip of 8 bytes in C may take more than in Go, in us.
const taxBound = 0.2

// tax takes into account what the libraries for C take more than the Go API.
func (v *Verdict) tax(t Table, size int, results []bench.Result) {
	base := find(results, oursLibrary)
	if base == nil || t.Case.Name != "mpi_lat" || size != 8 {
		return
	}
	for _, abi := range ABIs() {
		if c := find(results, inCName(abi)); c != nil {
			more := c.Value(t.Case.Kind) - base.Value(t.Case.Kind)
			v.lines = append(v.lines, fmt.Sprintf("%-7s %s 8 bytes, %s: %s takes %+.2f us, wanted at most %g more", verdict(more <= taxBound), t.Case.Name, place(t.Where.Hosts, t.Where.Ranks, t.Where.MTU), c.Library, more, taxBound))
		}
	}
}

// Verdict says which targets are met.
type Verdict struct {
	lines []string
	cells map[string]*cells // by library
}

// cells counts in how many cells of tables xwarp is faster than a library.
type cells struct {
	all, won int
	lost     []string
}

// Row takes a row of a table into account.
func (v *Verdict) Row(t Table, size int, results []bench.Result) {
	for _, g := range targets {
		r := ratio(results, g.of, t.Case.Kind)
		if r == 0 || !g.concerns(t, size) {
			continue
		}
		met, word := r >= g.bound, "at least"
		if t.Case.Kind.Latency() {
			met, word = r <= g.bound, "at most"
		}
		if g.strict {
			met, word = r > g.bound, "above"
		}
		where := fmt.Sprintf("MTU %d", t.Where.MTU)
		if g.hosts == 1 {
			where = "one host"
		}
		v.lines = append(v.lines, fmt.Sprintf("%-7s %s %d bytes, %s: %.2f of %s, wanted %s %g", verdict(met), g.test, size, where, r, g.of, word, g.bound))
	}
	v.tax(t, size, results)
	if t.Case.Kind == bench.Collective {
		v.count(t, size, results)
	}
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

func (v *Verdict) count(t Table, size int, results []bench.Result) {
	for _, x := range others(results) {
		r := ratio(results, x.Library, t.Case.Kind)
		if r == 0 {
			continue
		}
		if v.cells == nil {
			v.cells = map[string]*cells{}
		}
		if v.cells[x.Library] == nil {
			v.cells[x.Library] = &cells{}
		}
		c := v.cells[x.Library]
		c.all++
		if r < 1 {
			c.won++
			continue
		}
		c.lost = append(c.lost, fmt.Sprintf("%s %d on %d (%.2f)", strings.TrimPrefix(t.Case.Name, bench.MPIPrefix), size, t.Where.Ranks, r))
	}
}

// Write writes all verdicts, a line each.
func (v *Verdict) Write(w io.Writer) error {
	lines := slices.Clone(v.lines)
	for _, p := range Peers() {
		c := v.cells[p.Name]
		if c == nil {
			continue
		}
		met := float64(c.won) > collectiveShare*float64(c.all)
		line := fmt.Sprintf("%-7s collectives: faster than %s in %d of %d cells, wanted more than %g of them", verdict(met), p.Name, c.won, c.all, collectiveShare)
		if len(c.lost) > 0 {
			line += "; not: " + strings.Join(c.lost, ", ")
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	return err
}
