package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Result is one measurement: a test with one size. It is one line of JSON;
// quantities have the unit in their name.
type Result struct {
	Test      string   `json:"test"`
	Transport string   `json:"transport"` // "rd", "ud", "rc", or "none" for raw tests
	Fabric    string   `json:"fabric"`    // as it was asked for: "xdp", "udp", ...
	MTU       int      `json:"mtu"`       // bytes
	Size      int      `json:"size"`      // bytes per message; per Ethernet frame in raw tests on xdp
	Iters     int      `json:"iters"`     // messages (round trips) per round that count
	Lat       *Latency `json:"lat_us"`    // half round trips; null for streams
	Gbit      float64  `json:"gbit_s"`    // 10^9 bits per second, one way
	Msgs      float64  `json:"msg_s"`     // messages per second, one way
	Carrier   string   `json:"carrier"`   // what it came to: "xdp/generic/copy", "kernel UDP", ...
	Lost      int      `json:"lost"`      // frames that did not arrive, in all rounds
	Rounds    int      `json:"rounds"`
}

// Ratio compares two results that were measured in turns.
type Ratio struct {
	Metric string  `json:"metric"` // "lat_us.p50", "gbit_s" or "msg_s"
	A      float64 `json:"a"`      // medians over the rounds
	B      float64 `json:"b"`
	Ratio  float64 `json:"ratio"` // A / B
	Low    float64 `json:"low"`   // smallest and largest ratio of one round
	High   float64 `json:"high"`

	ARounds []float64 `json:"a_rounds"` // by round, to see what the medians hide
	BRounds []float64 `json:"b_rounds"`
}

// Row is what was measured for one size: a result per configuration, and with
// two configurations their ratio.
type Row struct {
	Results []Result
	Ratio   *Ratio
}

// result makes a result of the points of all rounds.
func (s *Session) result(b Burst, rounds []Point) Result {
	p := merge(rounds)
	return Result{
		Test: s.Spec.Test, Transport: s.Spec.Transport, Fabric: s.Spec.Fabric, MTU: s.Spec.MTU,
		Size: b.Size, Iters: b.Iters, Lat: p.Lat, Gbit: p.Gbit, Msgs: p.Msgs,
		Carrier: s.Carrier, Lost: p.Lost, Rounds: len(rounds),
	}
}

// metric returns the number that tests of a kind are judged by.
func (k Kind) metric(p Point) float64 {
	switch {
	case k == PingPong && p.Lat != nil:
		return p.Lat.P50
	case k == Bandwidth:
		return p.Gbit
	}
	return p.Msgs
}

func (k Kind) metricName() string {
	return [...]string{PingPong: "lat_us.p50", Bandwidth: "gbit_s", Rate: "msg_s"}[k]
}

// compare returns the ratio of two configurations that were measured in turns.
func compare(kind Kind, a, b []Point) *Ratio {
	var as, bs, ratios []float64
	for i := range a {
		x, y := kind.metric(a[i]), kind.metric(b[i])
		as, bs = append(as, x), append(bs, y)
		if y > 0 {
			ratios = append(ratios, x/y)
		}
	}
	r := &Ratio{Metric: kind.metricName(), ARounds: slices.Clone(as), BRounds: slices.Clone(bs)}
	r.A, r.B = median(as), median(bs)
	if len(ratios) > 0 && r.B > 0 {
		r.Ratio, r.Low, r.High = r.A/r.B, slices.Min(ratios), slices.Max(ratios)
	}
	return r
}

// WriteJSON writes the row as lines of JSON: one per result, and one for the
// ratio.
func (r Row) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, result := range r.Results {
		if err := enc.Encode(result); err != nil {
			return err
		}
	}
	if r.Ratio == nil {
		return nil
	}
	return enc.Encode(r.Ratio)
}

// WriteHeader writes what a person wants to know before the rows.
func WriteHeader(w io.Writer, sessions []*Session, place string) error {
	for i, s := range sessions {
		name := ""
		if len(sessions) > 1 {
			name = string(rune('A'+i)) + ": "
		}
		protocol := ""
		if s.Spec.Transport != "none" {
			protocol = ", transport " + s.Spec.Transport
		}
		if s.Spec.Loss > 0 {
			protocol += fmt.Sprintf(", %g %% loss", s.Spec.Loss*100)
		}
		if _, err := fmt.Fprintf(w, "# %s%s: %s%s, MTU %d, %s\n", name, s.Spec.Test, s.Carrier, protocol, s.Spec.MTU, place); err != nil {
			return err
		}
	}
	return writeColumns(w, sessions)
}

func writeColumns(w io.Writer, sessions []*Session) error {
	c := sessions[0].Case
	unit := "message"
	if c.Family == Raw && sessions[0].Spec.onXDP() {
		unit = "Ethernet frame"
	}
	switch {
	case len(sessions) == 2:
		_, err := fmt.Fprintf(w, "# %s, medians of rounds in turns; low and high are single rounds\n%12s%12s%12s%12s%9s%9s%9s\n",
			c.Kind.unit(), "bytes A", "bytes B", "A", "B", "A/B", "low", "high")
		return err
	case c.Kind == PingPong:
		_, err := fmt.Fprintf(w, "# bytes per %s; half round trip in microseconds\n%12s%12s%10s%10s%10s%10s\n",
			unit, "bytes", "iters", "min", "p50", "p99", "max")
		return err
	}
	_, err := fmt.Fprintf(w, "# bytes per %s\n%12s%12s%12s%14s%10s\n", unit, "bytes", "iters", "Gbit/s", "messages/s", "lost")
	return err
}

func (k Kind) unit() string {
	return [...]string{PingPong: "half round trip in microseconds (p50)", Bandwidth: "Gbit/s", Rate: "messages/s"}[k]
}

// WriteText writes the row as a line of the table that WriteHeader began.
func (r Row) WriteText(w io.Writer) error {
	a := r.Results[0]
	if q := r.Ratio; q != nil {
		_, err := fmt.Fprintf(w, "%12d%12d%12s%12s%9.3f%9.3f%9.3f\n", a.Size, r.Results[1].Size,
			short(q.A), short(q.B), q.Ratio, q.Low, q.High)
		return err
	}
	if a.Lat != nil {
		_, err := fmt.Fprintf(w, "%12d%12d%10.2f%10.2f%10.2f%10.2f\n", a.Size, a.Iters, a.Lat.Min, a.Lat.P50, a.Lat.P99, a.Lat.Max)
		return err
	}
	_, err := fmt.Fprintf(w, "%12d%12d%12.3f%14.0f%10d\n", a.Size, a.Iters, a.Gbit, a.Msgs, a.Lost)
	return err
}

// short writes v with about four digits.
func short(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
