package peers

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// The matrix has every test, size, MTU and number of ranks, on one host and on two; a quick
// one has some of each.
func TestChoice_matrix(t *testing.T) {
	for _, quick := range []bool{false, true} {
		seen := map[string]map[int]bool{"sizes": {}, "ranks": {}, "mtus": {}, "hosts": {}}
		tests, keys := map[string]bool{}, map[cell]bool{}
		for _, x := range (Choice{}).Matrix([]int{0, 1}, quick) {
			tests[x.Case.Name] = true
			for _, size := range x.Sizes {
				k := newCell(x.Case.Name, x.Where.Hosts, x.Where.Ranks, x.Where.MTU, size)
				if keys[k] {
					t.Errorf("%+v is there twice", k)
				}
				keys[k] = true
				seen["sizes"][size] = true
			}
			seen["ranks"][x.Where.Ranks], seen["mtus"][x.Where.MTU], seen["hosts"][x.Where.Hosts] = true, true, true
		}
		for what, values := range map[string][]int{"sizes": {8, 64 << 10, 1 << 20}, "ranks": {2, 4}, "mtus": {1500, 9000, 32000}, "hosts": {1, 2}} {
			for _, v := range values {
				if !seen[what][v] {
					t.Errorf("quick %v: %s without %d", quick, what, v)
				}
			}
		}
		if !quick && (!seen["sizes"][4<<20] || !seen["ranks"][8]) {
			t.Error("neither 4 MiB nor 8 ranks")
		}
		for _, c := range bench.Cases() {
			if wanted := c.Family == bench.MPI || c.Family == bench.Coll && !quick; wanted && !tests[c.Name] {
				t.Errorf("quick %v: no %s", quick, c.Name)
			}
		}
	}
	piece := Choice{Tests: []string{"mpi_scan"}, Ranks: []int{4}, MTUs: []int{1500}, Sizes: []int{8}}.Matrix([]int{0, 1}, false)
	if len(piece) != 2 || piece[0].Where.Hosts != 1 || piece[1].Where.MTU != 1500 {
		t.Errorf("a piece of one size: %+v", piece)
	}
}

func matrixRow(test string, hosts, mtu, size int, values map[string]float64) []bench.Result {
	list := results(values)
	for i := range list {
		list[i].Test, list[i].Hosts, list[i].Ranks, list[i].MTU, list[i].Size = test, hosts, 2, mtu, size
	}
	return list
}

// A cell loses if the better of the others is clearly ahead, in time or in bandwidth.
func TestMatrix_write(t *testing.T) {
	var m Matrix
	var file bytes.Buffer
	for _, row := range [][]bench.Result{
		matrixRow("mpi_lat", 2, 1500, 8, map[string]float64{oursLibrary: 2, "MPICH": 4, "Open MPI": 8}),
		matrixRow("mpi_lat", 2, 1500, 64, map[string]float64{oursLibrary: 1.05, "MPICH": 1}),
		matrixRow("mpi_lat", 1, 9000, 64, map[string]float64{oursLibrary: 7}), // nobody to compare with
		matrixRow("mpi_bw", 2, 1500, 1024, map[string]float64{oursLibrary: 10, "MPICH": 5, "Open MPI": 20}),
		matrixRow("mpi_bw", 2, 1500, 4096, map[string]float64{oursLibrary: 10, "MPICH": 30, "Open MPI": 5}),
	} {
		if err := m.Keep(&file, row); err != nil {
			t.Fatal(err)
		}
	}
	lines := file.Bytes()
	for _, from := range []string{"measured", "read"} {
		var b bytes.Buffer
		if err := m.Write(&b, false); err != nil {
			t.Fatal(err)
		}
		want := `
our time / that of the better of MPICH and Open MPI
      mean  worst   lost  cells     of
      2.45   3.00      2      2  mpi_bw, 2 ranks on 2 hosts, MTU 1500
      0.72   1.05      0      2  mpi_lat, 2 ranks on 2 hosts, MTU 1500

cells that lose
   3.00  mpi_bw 4096 bytes, 2 ranks on 2 hosts, MTU 1500: 10.00, MPICH 30.00 Gbit/s
   2.00  mpi_bw 1024 bytes, 2 ranks on 2 hosts, MTU 1500: 10.00, Open MPI 20.00 Gbit/s

MISSED  never slower: 2 of 4 cells above 1.05 of the better of MPICH and Open MPI
MISSED  geometric mean 1.33, wanted at most 0.6
`
		if b.String() != want {
			t.Errorf("%s: got %s\nwant %s", from, b.String(), want)
		}
		m = Matrix{}
		if n, err := m.Read(lines); n != len(lines) || err != nil {
			t.Fatalf("%d of %d bytes, %v", n, len(lines), err)
		}
	}
	h := m.Heat()
	if !slices.Equal(h.Columns, []string{"8", "64", "1K", "4K"}) || len(h.Rows) != 2 || !slices.Equal(h.Values[0], []float64{0, 0, 2, 3}) {
		t.Errorf("heat map %+v", h)
	}
}

// What was measured is not measured again; what was broken off, or a library that was not
// there, is.
func TestMatrix_resume(t *testing.T) {
	tables := Choice{Tests: []string{"mpi_lat"}, MTUs: []int{1500}, Sizes: []int{8, 64}}.Matrix([]int{0, 1}, false)
	var m Matrix
	var file bytes.Buffer
	all := map[string]float64{oursLibrary: 2, "MPICH": 4, "Open MPI": 8}
	for _, hosts := range []int{1, 2} {
		for _, size := range []int{8, 64} {
			if err := m.Keep(&file, matrixRow("mpi_lat", hosts, 1500, size, all)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var again Matrix
	lines := file.Bytes()
	cut := lines[:len(lines)-1] // the end of the last line is not there
	n, err := again.Read(cut)
	if err != nil || n >= len(cut) || cut[n-1] != '\n' {
		t.Fatalf("%d of %d bytes, %v", n, len(cut), err)
	}
	left, rows := again.Missing(tables, Peers())
	if rows != 1 || len(left) != 1 || !slices.Equal(left[0].Sizes, []int{64}) || left[0].Where.Hosts != 2 {
		t.Errorf("%d rows are left: %+v", rows, left)
	}
	if len(tables[0].Sizes) != 2 {
		t.Error("the tables were changed")
	}
	if _, rows := again.Missing(tables, Peers()[:1]); rows != 0 { // what lacks is not here to be measured
		t.Errorf("%d rows are left without Open MPI", rows)
	}
	// A row that is measured anew takes the place of the old one, libraries and all.
	if err := again.Keep(&file, matrixRow("mpi_lat", 2, 1500, 8, map[string]float64{oursLibrary: 3, "MPICH": 1})); err != nil {
		t.Fatal(err)
	}
	if r, of := again.share(newCell("mpi_lat", 2, 2, 1500, 8)); r != 3 || of != "MPICH" {
		t.Errorf("%v of %q, want 3 of MPICH", r, of)
	}
	for _, bad := range []string{"no JSON\n", `{"test":"mpi_lat"}` + "\n", `{"test":"unknown"}` + "\n"} {
		if _, err := new(Matrix).Read([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPace_left(t *testing.T) {
	p := &pace{began: 10, all: 8}
	if got := p.left(10); got != "; row 1 of 8" {
		t.Errorf("at first %q", got)
	}
	p.done = 2
	if got := p.left(p.began.Add(6 * mono.Second)); got != "; row 3 of 8, 18s left" {
		t.Errorf("after 6 s %q", got)
	}
	if at := p.share(p.began); at != 0 {
		t.Errorf("without a budget a row ends at %v", at)
	}
	p.budget = 12 * mono.Second
	if at, want := p.share(p.began.Add(6*mono.Second)), p.began.Add(7*mono.Second); at != want {
		t.Errorf("one of 6 rows that have 6 s ends at %v, want %v", at, want)
	}
	if got := p.left(p.began.Add(9 * mono.Second)); got != "; row 3 of 8, 3s left" {
		t.Errorf("with a budget of 12 s, after 9 s %q", got)
	}
	if got := (*pace)(nil).left(0); got != "" || (*pace)(nil).share(0) != 0 {
		t.Errorf("without a plan %q", got)
	}
}

// No row begins when the budget is spent, and what was measured is kept.
func TestMeasurement_budget(t *testing.T) {
	m := Measurement{Budget: time.Nanosecond, Program: []string{"/nonexistent"}}
	err := m.Measure([]Table{table("mpi_lat", 2, 1500)}, func(Table, int, []bench.Result) error { return errors.New("a row") })
	if err != nil {
		t.Errorf("a spent budget: %v", err)
	}
	var b strings.Builder
	if err := new(Matrix).Write(&b, false); err != nil || !strings.Contains(b.String(), "install MPICH") {
		t.Errorf("nothing measured: %q, %v", b.String(), err)
	}
}
