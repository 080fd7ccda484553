package bench

import (
	"bytes"
	"errors"
	"testing"
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
	row := Row{Results: []Result{
		{Lat: &Latency{P50: 1.5, P99: 9}, Gbit: 3, Iters: 100, Rounds: 2, Lost: 5}, {},
	}}
	for _, c := range []struct {
		kind     Kind
		markdown bool
		want     string
	}{
		{PingPong, false, `
Latency: half round trip in microseconds (median)
     bytes           one           two
         8          1.50             -

The same, 99th percentile
     bytes           one           two
         8          9.00             -
`},
		{PingPong, true, `
Latency: half round trip in microseconds (median)

| bytes | one | two |
|---:|---:|---:|
| 8 | 1.50 | - |

The same, 99th percentile

| bytes | one | two |
|---:|---:|---:|
| 8 | 9.00 | - |
`},
		{Bandwidth, false, `
Bandwidth in Gbit/s, windows of 64 messages
     bytes           one           two
         8          3.00             -
    lost %          2.50             -
`},
	} {
		var b bytes.Buffer
		table := Table{W: &b, Kind: c.kind, Markdown: c.markdown, Contenders: []Contender{{Name: "one"}, {Name: "two"}}}
		if err := errors.Join(table.Head(), table.Row(8, row), table.Foot()); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
		}
	}
}
