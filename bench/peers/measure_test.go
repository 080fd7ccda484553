package peers

import (
	"slices"
	"testing"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// Libraries take turns, now the one first and now the other; what takes for ever
// is asked once.
func TestMeasurement_row(t *testing.T) {
	var turns []string
	library := func(name string, us float64) column {
		return column{library: name, run: func(_ Table, o Order) (bench.Point, error) {
			turns = append(turns, name)
			return bench.Point{Lat: &bench.Latency{P50: us, Avg: us}}, nil
		}}
	}
	columns := []column{library(oursLibrary, 4), library("MPICH", 8), library("Open MPI", 100_000)}
	results, err := Measurement{Rounds: 2}.row(table("mpi_bcast", 2, 9000), 8, columns)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Open MPI", "MPICH", oursLibrary, oursLibrary, "MPICH", "MPICH", oursLibrary}
	if !slices.Equal(turns, want) {
		t.Errorf("turns %q, want %q", turns, want)
	}
	for i, rounds := range []int{2, 2, 1} {
		if x := results[i]; x.Rounds != rounds || x.Library != columns[i].library || x.Iters == 0 || x.Lat == nil {
			t.Errorf("%s: %+v, want %d rounds", columns[i].library, x, rounds)
		}
	}
	if r := ratio(results, "MPICH", bench.Collective); r != 0.5 {
		t.Errorf("of MPICH %g, want 0.5", r)
	}
}

// A row that has had its share of the budget ends with the round.
func TestMeasurement_rowWithoutTime(t *testing.T) {
	m := Measurement{Rounds: 5, pace: &pace{began: mono.Real{}.Now(), budget: 1, all: 1}}
	turns := 0
	ours := column{library: oursLibrary, run: func(Table, Order) (bench.Point, error) {
		turns++
		return bench.Point{Lat: &bench.Latency{P50: 4, Avg: 4}}, nil
	}}
	results, err := m.row(table("mpi_lat", 2, 9000), 8, []column{ours})
	if err != nil || turns != 2 || results[0].Rounds != 1 {
		t.Errorf("%d turns, %+v, %v; want one to learn and one that counts", turns, results, err)
	}
}

// Raw frames have no message that is longer than they are.
func TestMeasurement_rowWithoutRaw(t *testing.T) {
	never := func(Table, Order) (bench.Point, error) {
		t.Error("raw was asked for a message that no frame carries")
		return bench.Point{}, nil
	}
	results, err := Measurement{Rounds: 1}.row(table("mpi_lat", 2, 1500), 4096, []column{{library: RawLibrary, run: never}})
	if err != nil || results[0].Rounds != 0 {
		t.Errorf("%+v, %v", results, err)
	}
}

// Messages go as often as in the OSU benchmarks before a burst of them counts, and frames of more than
// a page a thousand times.
func TestTable_cold(t *testing.T) {
	for _, x := range []struct {
		test                   string
		hosts, mtu, size, want int
	}{
		{"mpi_lat", 2, 9000, 8, 100}, {"mpi_lat", 2, 9000, 4096, 1000}, {"mpi_lat", 2, 9000, 64 << 10, 138}, {"mpi_lat", 2, 9000, 1 << 20, 10},
		{"mpi_lat", 2, 1500, 1 << 20, 10}, {"mpi_lat", 1, 9000, 4096, 100}, {"mpi_bw", 1, 9000, 8, 64}, {"mpi_bw", 2, 9000, 4096, 960}, {"mpi_overlap", 2, 9000, 4096, 0},
	} {
		if n := table(x.test, x.hosts, x.mtu).cold(x.size); n != x.want {
			t.Errorf("%s, %d bytes, MTU %d, %d hosts: %d messages, want %d", x.test, x.size, x.mtu, x.hosts, n, x.want)
		}
	}
}
