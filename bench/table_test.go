package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestTable_columns(t *testing.T) {
	share := 0.5
	lat := Result{Size: 8, Iters: 100, Lat: &Latency{Min: 1, P50: 2, P99: 3, P999: 3.5, Max: 4, Avg: 2.5, Stdev: 0.5}, Lost: 7, Sent: &Sent{Whole: &share, Valid: &share}}
	stream := Result{Size: 8, Iters: 100, Gbit: 1, Msgs: 2, Lost: 7, Sent: &Sent{Gbit: 3, Msgs: 4, Whole: &share, Valid: &share}}
	for _, c := range []struct {
		spec Spec
		row  Result
		want string // the heads and the cells, blanks aside
	}{
		{Spec{Test: "send_lat", Transport: "rd"}, lat, "bytes iters min p50 avg stdev p99 p99.9 max 8 100 1.00 2.00 2.50 0.50 3.00 3.50 4.00"},
		{Spec{Test: "send_lat", Transport: "ud"}, lat, "bytes iters min p50 avg stdev p99 p99.9 max lost 8 100 1.00 2.00 2.50 0.50 3.00 3.50 4.00 7"},
		{Spec{Test: "write_bw", Transport: "rd"}, stream, "bytes iters Gbit/s messages/s lost 8 100 1.000 2 7"},
		{Spec{Test: "send_bw", Transport: "ud"}, stream, "bytes iters Gbit/s messages/s sent Gbit/s sent msg/s lost 8 100 1.000 2 3.000 4 7"},
		{Spec{Test: "send_bibw", Transport: "rd"}, stream, "bytes iters Gbit/s messages/s lost 8 100 1.000 2 7"},
		{
			Spec{Test: "write_record_lat", Transport: "ud"}, lat,
			"bytes iters min p50 avg stdev p99 p99.9 max lost whole % valid % 8 100 1.00 2.00 2.50 0.50 3.00 3.50 4.00 7 50.00 50.00",
		},
		{
			Spec{Test: "write_record_bw", Transport: "rd"}, stream,
			"bytes iters Gbit/s messages/s sent Gbit/s sent msg/s lost whole % valid % 8 100 1.000 2 3.000 4 7 50.00 50.00",
		},
	} {
		s := &Session{Spec: c.spec}
		s.Case, _ = Find(c.spec.Test)
		var b bytes.Buffer
		if err := writeColumns(&b, []*Session{s}); err != nil {
			t.Fatal(err)
		}
		if err := (Row{Results: []Result{c.row}}).WriteText(&b, []*Session{s}); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(b.String(), "\n")
		if got := strings.Join(strings.Fields(text), " "); got != c.want {
			t.Errorf("%s over %s:\n got %s\nwant %s", c.spec.Test, c.spec.Transport, got, c.want)
		}
		lines := strings.Split(text, "\n")
		if len(lines[0]) > 100 {
			t.Errorf("%s: %d columns do not fit a terminal of 100:\n%s", c.spec.Test, len(lines[0]), text)
		}
		if len(lines[0]) != len(lines[1]) {
			t.Errorf("%s: head and row do not end in one column:\n%s", c.spec.Test, text)
		}
	}
}

// Every number of a recorder leaves a blank before it in its column.
func TestMicroseconds(t *testing.T) {
	for us, want := range map[float64]string{
		0: "0.00", 12.345: "12.35", 999.99: "999.99", 1000: "1000.0", 9999.94: "9999.9", 10_000: "10000", math.MaxUint32 / 1000.0: "4294967",
	} {
		if got := microseconds(us); got != want || len(got) > 7 {
			t.Errorf("%v us are written %q, want %q", us, got, want)
		}
	}
}

func TestWriteHeader(t *testing.T) {
	s := &Session{Carrier: "verbs on x", Notes: []string{"a note"}, Place: "here", Spec: Spec{
		Test: "atomic_lat", Transport: "rd", Op: "swap", Loss: 0.01, Peers: 1, MTU: 9000,
	}}
	s.Case, _ = Find(s.Spec.Test)
	var b bytes.Buffer
	if err := WriteHeader(&b, []*Session{s}); err != nil {
		t.Fatal(err)
	}
	want := "# atomic_lat: verbs on x, swap, transport rd, 1 % loss, MTU 9000, here\n# a note\n# bytes per message; whole round trip in microseconds\n"
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
