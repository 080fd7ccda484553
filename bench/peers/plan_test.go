package peers

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/mono"
)

func TestChoice_plan(t *testing.T) {
	cores := []int{0, 1, 2, 3}
	all := Choice{}.Plan(cores)
	tests := map[string]bool{}
	for _, x := range all {
		tests[x.Case.Name] = true
		if x.Case.Name == "" || len(x.Sizes) == 0 {
			t.Errorf("nothing to measure in %+v", x)
		}
		if x.Where.Crowded != (x.Where.Ranks > 4) {
			t.Errorf("%d ranks on 4 cores: %+v", x.Where.Ranks, x.Where)
		}
		if want := []int{0, 1, 0, 1, 2, 3, 2, 3}; x.Where.Ranks == 8 && x.Where.Hosts == 2 && !slices.Equal(x.Where.Cores, want) {
			t.Errorf("8 ranks of two hosts are on %v, want %v: hosts have processors of their own", x.Where.Cores, want)
		}
	}
	for _, c := range bench.Cases() {
		if c.OfMPI() && c.Kind != bench.Trials && !tests[c.Name] {
			t.Errorf("%s is not measured", c.Name)
		}
	}
	if w := all[0].Where; !slices.Equal(w.Cores, []int{0, 1}) {
		t.Errorf("two ranks are on %v, want the two first cores", w.Cores)
	}
	for _, g := range targets {
		if !slices.ContainsFunc(all, func(x Table) bool { return slices.Contains(x.Sizes, g.size) && g.concerns(x, g.size) }) {
			t.Errorf("nothing says whether %+v is met", g)
		}
	}
	some := Choice{Tests: []string{"mpi_bcast", "mpi_barrier"}, Ranks: []int{4}, Sizes: []int{5}, MTUs: []int{1500}}.Plan(cores)
	if len(some) != 2 || some[0].Where.MTU != 1500 || !slices.Equal(some[0].Sizes, []int{5}) || !slices.Equal(some[1].Sizes, []int{0}) {
		t.Errorf("a choice of two: %+v", some)
	}
}

func table(name string, hosts, mtu int) Table {
	t := Table{Where: Where{Hosts: hosts, Ranks: 2, MTU: mtu}}
	t.Case, _ = bench.Find(name)
	return t
}

func TestFrame(t *testing.T) {
	for _, c := range []struct {
		test      string
		mtu, size int
		want      int
	}{
		{"mpi_lat", 1500, 8, 64},
		{"mpi_lat", 1500, 100, 142},
		{"mpi_lat", 1500, 1472, 1514},
		{"mpi_lat", 1500, 1473, 0},
		{"mpi_bw", 9000, 8, 9014},
		{"mpi_rate", 9000, 8, 64},
	} {
		if got := frame(table(c.test, 2, c.mtu), c.size); got != c.want {
			t.Errorf("%s of %d bytes at MTU %d: frames of %d, want %d", c.test, c.size, c.mtu, got, c.want)
		}
	}
}

// A burst takes about as long as it should, however long a call takes.
func TestTable_burst(t *testing.T) {
	x := table("mpi_lat", 2, 9000)
	for _, c := range []struct {
		avg  float64
		want int
	}{{2.5, 8000}, {1e9, leastCalls}, {0.0001, mostCalls}} {
		o := x.burst(8, bench.Point{Lat: &bench.Latency{Avg: c.avg}}, 40*mono.Millisecond)
		if o.Iters != c.want || o.Warmup < 1 || o.Test != "lat" {
			t.Errorf("at %v us: %+v, want %d calls", c.avg, o, c.want)
		}
	}
	x = table("mpi_bw", 2, 9000)
	for rate, want := range map[float64]int{1: window, 16_000: 10 * window} {
		o := x.burst(8, bench.Point{Msgs: rate}, 40*mono.Millisecond)
		if o.Iters != want || o.Warmup%window != 0 || o.Warmup == 0 || o.Test != "stream" {
			t.Errorf("at %v messages/s: %+v, want %d messages", rate, o, want)
		}
	}
}

func results(library map[string]float64) (list []bench.Result) {
	for _, name := range []string{RawLibrary, oursLibrary, "MPICH", "Open MPI"} {
		x := bench.Result{Library: name}
		if v, ok := library[name]; ok {
			x.Rounds, x.Lat, x.Gbit, x.Msgs = 3, &bench.Latency{P50: v, Avg: v}, v, v
		}
		list = append(list, x)
	}
	return list
}

func TestReport(t *testing.T) {
	for markdown, want := range map[bool]string{
		false: `
mpi_lat, 2 ranks on 2 hosts, MTU 9000: half round trip in microseconds
     bytes        raw      xwarp      MPICH   Open MPI       /raw     /MPICH  /Open MPI
         8       2.00       3.00       6.00       1500       1.50       0.50       0.00
     16384          -       3.00       6.00          -          -       0.50          -
`,
		true: `
mpi_lat, 2 ranks on 2 hosts, MTU 9000: half round trip in microseconds

| bytes | raw | xwarp | MPICH | Open MPI | /raw | /MPICH | /Open MPI |
|---:|---:|---:|---:|---:|---:|---:|---:|
| 8 | 2.00 | 3.00 | 6.00 | 1500 | 1.50 | 0.50 | 0.00 |
| 16384 | - | 3.00 | 6.00 | - | - | 0.50 | - |
`,
	} {
		var b bytes.Buffer
		r := Report{W: &b, Markdown: markdown}
		x := table("mpi_lat", 2, 9000)
		for size, v := range map[int]map[string]float64{8: {RawLibrary: 2, oursLibrary: 3, "MPICH": 6, "Open MPI": 1500}} {
			if err := r.Row(x, size, results(v)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Row(x, 16384, results(map[string]float64{oursLibrary: 3, "MPICH": 6})); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("got %s\nwant %s", b.String(), want)
		}
	}
}

func TestVerdict(t *testing.T) {
	var v Verdict
	v.Row(table("mpi_lat", 2, 9000), 8, results(map[string]float64{RawLibrary: 2, oursLibrary: 2.5, "MPICH": 6}))
	v.Row(table("mpi_bw", 2, 9000), 1<<20, results(map[string]float64{oursLibrary: 20, "MPICH": 20, "Open MPI": 19}))
	coll := table("mpi_bcast", 2, 9000)
	for size, mine := range []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3} {
		v.Row(coll, size, results(map[string]float64{oursLibrary: mine, "MPICH": 2}))
	}
	var b bytes.Buffer
	if err := v.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"MISSED  mpi_lat 8 bytes, MTU 9000: 1.25 of raw, wanted at most 1.2\n",
		"met     mpi_lat 8 bytes, MTU 9000: 0.42 of MPICH, wanted at most 0.45\n",
		"MISSED  mpi_bw 1048576 bytes, MTU 9000: 1.00 of MPICH, wanted above 1\n",
		"met     mpi_bw 1048576 bytes, MTU 9000: 1.05 of Open MPI, wanted above 1\n",
		"met     collectives: faster than MPICH in 10 of 11 cells, wanted more than 0.9 of them; not: bcast 10 on 2 (1.50)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestChoice_algorithms(t *testing.T) {
	tables := Choice{Ranks: []int{2, 4}, Tests: []string{"mpi_bcast", "mpi_allgather"}, Sizes: []int{8, 64, 512, 4096}}.Algorithms([]int{0, 1})
	var keys []string
	for _, x := range tables {
		keys = append(keys, x.key())
	}
	// On two hosts, then on one; two ranks are alone on each.
	want := []string{"bcast", "allgather", "bcast", "allgather", "bcast.hosts", "allgather.hosts", "bcast", "allgather"}
	if !slices.Equal(keys, want) {
		t.Fatalf("tables %v, want %v", keys, want)
	}
	rows := tables[5].rows([]string{"doubling", "doubling", "multileader", "ring"})
	if want := []string{"allgather.hosts:256:4=doubling", "allgather.hosts:2048:4=multileader", "allgather.hosts:0:4=ring"}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
}

func TestWinner_staysUnlessClearly(t *testing.T) {
	took := func(us ...float64) (list []bench.Result) {
		for i, name := range []string{"chain", "multileader"} {
			list = append(list, bench.Result{Library: name, Rounds: 1, Lat: &bench.Latency{Avg: us[i]}})
		}
		return list
	}
	for _, c := range []struct {
		a, b   float64
		before []string
		want   string
	}{
		{10, 9.8, nil, "multileader"}, {10, 9.8, []string{"chain"}, "chain"}, {10, 9, []string{"chain"}, "multileader"}, {9.8, 10, []string{"multileader"}, "multileader"},
	} {
		if got := winner(took(c.a, c.b), bench.Collective, c.before); got != c.want {
			t.Errorf("%v and %v us after %v: %s, want %s", c.a, c.b, c.before, got, c.want)
		}
	}
}

// Bandwidth has no best burst: its rounds stay as they are.
func TestLowest(t *testing.T) {
	lat := func(us float64) bench.Point { return bench.Point{Lat: &bench.Latency{P50: us}} }
	if got := lowest([]bench.Point{lat(3), lat(1), lat(2)}); len(got) != 1 || got[0].Lat.P50 != 1 {
		t.Errorf("the lowest of 3, 1 and 2 is %+v", got)
	}
	if got := lowest([]bench.Point{{Gbit: 1}, {Gbit: 2}}); len(got) != 2 {
		t.Errorf("of two bandwidths %+v are left", got)
	}
	if got := lowest(nil); len(got) != 0 {
		t.Errorf("of nothing %+v are left", got)
	}
}
