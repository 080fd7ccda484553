package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestReadResults(t *testing.T) {
	rows := []Row{{
		Results: []Result{{Test: "send_bw", Size: 8, Gbit: 2}, {}, {Test: "write_bw", Size: 8, Gbit: 3, Rounds: 1}},
		Ratio:   &Ratio{Metric: "gbit_s", A: 2, B: 3},
	}}
	rows[0].Results[0].Rounds = 1
	var b bytes.Buffer
	for _, r := range rows {
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadResults(&b)
	if err != nil || len(got) != 2 || got[0].Test != "send_bw" || got[1].Gbit != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"x", `{"test":"lat"}`, `[1]`, `{"test":7}`, `{"test":"send_lat"`} {
		if _, err := ReadResults(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "not the --json output") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func FuzzReadResults(f *testing.F) {
	f.Add(`{"test":"send_lat","size":8,"lat_us":{"p50":2}}` + "\n" + `{"metric":"gbit_s"}`)
	f.Add(`{"test":"raw_bw","size":-1,"gbit_s":1e300}`)
	f.Fuzz(func(t *testing.T, text string) {
		results, err := ReadResults(strings.NewReader(text))
		if err == nil {
			_ = Charts(results) // must not panic
		}
	})
}

func TestCharts(t *testing.T) {
	lat := func(us float64) *Latency { return &Latency{P50: us} }
	charts := Charts([]Result{
		{Test: "send_lat", Transport: "rd", Fabric: "xdp", MTU: 9000, Size: 8, Lat: lat(2)},
		{Test: "send_lat", Transport: "ud", Fabric: "xdp", MTU: 9000, Size: 8, Lat: lat(1)},
		{Test: "send_lat", Transport: "rd", Fabric: "xdp", MTU: 9000, Size: 16, Lat: lat(3)},
		{Test: "raw_bw", Transport: "none", Fabric: "xdp", MTU: 9000, Size: 16, Gbit: 4},
		{Test: "send_rate", Transport: "rd", Fabric: "xdp", MTU: 9000, Size: 8, Msgs: 5, Peers: 8},
	})
	var got []string
	for _, c := range charts {
		for _, s := range c.Series {
			got = append(got, fmt.Sprintf("%s, %s: %s %v", c.Title, c.Y, s.Name, s.Points))
		}
	}
	want := []string{
		"Latency, microseconds (median): send_lat rd 1 peer [{8 2} {16 3}]",
		"Latency, microseconds (median): send_lat ud 1 peer [{8 1}]",
		"Bandwidth, Gbit/s: raw_bw 1 peer [{16 4}]",
		"Message rate, messages/s: send_rate rd 8 peers [{8 5}]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if charts := Charts(nil); charts != nil {
		t.Errorf("of nothing: %v", charts)
	}
}
