package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xwarp/xwarp/bench/plot"
)

// ReadResults reads what WriteJSON has written. Ratios, which have no size,
// are left out.
func ReadResults(r io.Reader) ([]Result, error) {
	var results []Result
	for d := json.NewDecoder(r); ; {
		var x Result
		err := d.Decode(&x)
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not the --json output of xperf: %w", err)
		}
		if x.Test == "" {
			continue
		}
		if _, ok := Find(x.Test); !ok {
			return nil, fmt.Errorf("not the --json output of xperf: there is no test %q", x.Test)
		}
		results = append(results, x)
	}
}

// Charts draws results over their sizes: a chart for each kind of number, with
// a series for each configuration in the order in which they come.
func Charts(results []Result) []plot.Chart {
	names := seriesNames(results)
	var charts []plot.Chart
	const bytes = "bytes per message"
	for _, want := range []struct{ title, x, unit string }{
		{"Latency", bytes, "microseconds (median)"}, {"Bandwidth", bytes, "Gbit/s"}, {"Bandwidth both ways", bytes, "Gbit/s"},
		{"Message rate", bytes, "messages/s"}, {"Collectives", bytes, "microseconds (mean)"},
		{"Overlap", "microseconds that the target computes", "microseconds of the origin (median)"},
		{"Experiments", "operations, bytes or elements", "microseconds (median)"},
	} {
		chart := plot.Chart{Title: want.title, X: want.x, Y: want.unit}
		index := map[string]int{}
		for i, r := range results {
			c, _ := Find(r.Test)
			if kinds[c.Kind].chart != want.title {
				continue
			}
			k, ok := index[names[i]]
			if !ok {
				k = len(chart.Series)
				index[names[i]] = k
				chart.Series = append(chart.Series, plot.Series{Name: names[i]})
			}
			at := plot.Point{X: float64(r.Size), Y: r.Value(c.Kind)}
			switch c.Kind {
			case Computing:
				at.X = float64(r.Compute)
			case Trials:
				at.X = float64(r.N)
			}
			chart.Series[k].Points = append(chart.Series[k].Points, at)
		}
		if len(chart.Series) > 0 {
			charts = append(charts, chart)
		}
	}
	return charts
}

// seriesNames names the configuration of each result by its test, and by
// whatever else is not the same in all.
func seriesNames(results []Result) []string {
	fields := []func(Result) string{
		func(r Result) string { return r.Library },
		func(r Result) string { return r.Transport },
		func(r Result) string { return r.Fabric },
		func(r Result) string { return r.Op },
		func(r Result) string { return fmt.Sprintf("%d ghosts", r.Ghosts) },
		func(r Result) string { return r.Progress },
		func(r Result) string { return fmt.Sprintf("%d ranks", r.Ranks) },
		func(r Result) string { return fmt.Sprintf("%d hosts", r.Hosts) },
		func(r Result) string { return fmt.Sprintf("MTU %d", r.MTU) },
		func(r Result) string { return connOptions(r.CRC, r.Markers) },
		func(r Result) string { return peersText(max(r.Peers, 1)) },
		func(r Result) string { return fmt.Sprintf("%g %% loss", 100*r.Loss) },
	}
	parts := make([][]string, len(results))
	for i, r := range results {
		parts[i] = []string{r.Test}
	}
	for _, field := range fields {
		differs := false
		for _, r := range results {
			differs = differs || field(r) != field(results[0])
		}
		for i, r := range results {
			if text := field(r); differs && text != "" && text != "none" {
				parts[i] = append(parts[i], text)
			}
		}
	}
	names := make([]string, len(results))
	for i := range parts {
		names[i] = strings.Join(parts[i], " ")
	}
	return names
}

// connOptions names what was asked for of connections.
func connOptions(crc, markers bool) string {
	switch {
	case crc && markers:
		return "CRC and markers"
	case crc:
		return "CRC"
	case markers:
		return "markers"
	}
	return ""
}

func peersText(n int) string {
	if n == 1 {
		return "1 peer"
	}
	return fmt.Sprintf("%d peers", n)
}
