package bench

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestComparisons(t *testing.T) {
	for _, withXDP := range []bool{true, false} {
		all, err := Comparisons(withXDP)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			found, err := FindComparison(c.Name, withXDP)
			if err != nil || len(found.Contenders) != len(c.Contenders) || len(c.Contenders) == 0 {
				t.Errorf("%s: %v, %+v", c.Name, err, found)
			}
			for _, x := range c.Contenders {
				for _, spec := range []Spec{x.Latency, x.Bandwidth} {
					if spec.onXDP() && !withXDP {
						t.Errorf("%s, %s: AF_XDP without root", c.Name, x.Name)
					}
					if err := errors.Join(spec.Check(), spec.Complete(9000)); err != nil {
						t.Errorf("%s, %s: %v", c.Name, x.Name, err)
					}
				}
			}
		}
	}
	if _, err := FindComparison("nonsense", true); !errors.Is(err, ErrUsage) {
		t.Errorf("got %v", err)
	}
}

func TestTable(t *testing.T) {
	columns := []Contender{{Name: "one"}, {Name: "two"}}
	row := Row{Results: []Result{{Lat: &Latency{P50: 1.5}, Rounds: 1}, {}}}
	for _, c := range []struct {
		markdown bool
		want     string
	}{
		{false, "\nLatency: half round trip in microseconds (median)\n" +
			"     bytes           one           two\n         8          1.50             -\n"},
		{true, "\nLatency: half round trip in microseconds (median)\n\n" +
			"| bytes | one | two |\n|---:|---:|---:|\n| 8 | 1.50 | - |\n"},
	} {
		var b bytes.Buffer
		table := Table{W: &b, Markdown: c.markdown}
		if err := errors.Join(table.Head(PingPong, columns), table.Row(PingPong, 8, row)); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
		}
	}
}

// Sizes that only some can send: everyone who can is measured.
func TestMeasurement_tabulate(t *testing.T) {
	site := loopback(t)
	spec := brief("raw_lat", "udp", 1, 8, 64)
	spec.Clip = true
	a, b := site.open(t, spec), site.open(t, brief("raw_lat", "tcp", 1, 8))
	var got []string
	err := Measurement{}.Tabulate([]*Session{a, b}, []int{1, 8, 64}, func(size int, r Row) error {
		line := ""
		for _, x := range r.Results {
			line += map[bool]string{true: "x", false: "-"}[x.Rounds > 0 && x.Size == size]
		}
		got = append(got, line)
		return nil
	})
	if want := []string{"-x", "xx", "x-"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// Lists of sizes that the program chose are cut to what both can send.
func TestMeasure_commonSizes(t *testing.T) {
	site := loopback(t)
	all := brief("raw_lat", "udp")
	all.All = true
	a, b := site.open(t, all), site.open(t, brief("raw_lat", "tcp", 1, 8, 64))
	var sizes []int
	err := Measurement{Rounds: 1}.Measure([]*Session{a, b}, func(r Row) error {
		sizes = append(sizes, r.Results[0].Size, r.Results[1].Size)
		return nil
	})
	if want := []int{8, 8, 64, 64}; err != nil || !slices.Equal(sizes, want) {
		t.Errorf("got %v, %v; want %v", sizes, err, want)
	}
	c := site.open(t, brief("raw_lat", "tcp", 1, 2))
	err = Measurement{Rounds: 1}.Measure([]*Session{a, c}, func(Row) error { return nil })
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "no size in common") {
		t.Errorf("got %v", err)
	}
}

func TestMeasurement_duration(t *testing.T) {
	s := loopback(t).open(t, brief("raw_lat", "tcp", 8))
	var last string
	m := Measurement{Duration: 50 * time.Millisecond, Progress: func(what string) { last = what }}
	err := m.Measure([]*Session{s}, func(r Row) error {
		if n := r.Results[0].Rounds; n < 2 {
			t.Errorf("%d rounds of 100 round trips in 50 ms", n)
		}
		return nil
	})
	if err != nil || !strings.HasSuffix(last, "(size 1 of 1), 0 of 0 s") {
		t.Errorf("%v; the last that was said is %q", err, last)
	}
}
