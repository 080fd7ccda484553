package bench

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// WriteHeader writes what a person wants to know before the rows: what each
// configuration is, what was left out, and the heads of the columns.
func WriteHeader(w io.Writer, sessions []*Session) error {
	for i, s := range sessions {
		name := ""
		if len(sessions) > 1 {
			name = string(rune('A'+i)) + ": "
		}
		if _, err := fmt.Fprintf(w, "# %s%s\n", name, s.describe()); err != nil {
			return err
		}
		for _, note := range s.Notes {
			if _, err := fmt.Fprintf(w, "# %s%s\n", name, note); err != nil {
				return err
			}
		}
	}
	return writeColumns(w, sessions)
}

// describe says what the session measures.
func (s *Session) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", s.Spec.Test, s.Carrier)
	if s.Detail != "" {
		fmt.Fprintf(&b, " on %s", s.Detail)
	}
	if s.Spec.Op != "" {
		fmt.Fprintf(&b, ", %s", s.Spec.Op)
	}
	if s.Spec.Transport != "none" {
		fmt.Fprintf(&b, ", transport %s", s.Spec.Transport)
	}
	if text := connOptions(s.Spec.CRC, s.Spec.Markers); text != "" {
		fmt.Fprintf(&b, " with %s", text)
	}
	if s.Spec.Peers > 1 {
		fmt.Fprintf(&b, ", %d peers", s.Spec.Peers)
	}
	if s.Spec.Loss > 0 {
		fmt.Fprintf(&b, ", %g %% loss", s.Spec.Loss*100)
	}
	fmt.Fprintf(&b, ", MTU %d", s.Spec.MTU)
	if s.Place != "" {
		fmt.Fprintf(&b, ", %s", s.Place)
	}
	return b.String()
}

func writeColumns(w io.Writer, sessions []*Session) error {
	s := sessions[0]
	if len(sessions) == 2 {
		_, err := fmt.Fprintf(w, "# %s, medians of rounds in turns; low and high are single rounds\n%12s%12s%12s%12s%9s%9s%9s\n",
			s.Case.Kind.Unit(), "bytes A", "bytes B", "A", "B", "A/B", "low", "high")
		return err
	}
	what := "bytes per message"
	if s.Case.Family == Raw && s.Spec.onXDP() {
		what = "bytes per Ethernet frame"
	}
	if s.Case.Kind.Latency() || s.Case.Kind == Duplex {
		what += "; " + s.Case.Kind.Unit()
	}
	if _, err := fmt.Fprintf(w, "# %s\n", what); err != nil {
		return err
	}
	for _, c := range s.columns() {
		if _, err := fmt.Fprintf(w, "%*s", c.width, c.head); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// column is one column of the table of a session.
type column struct {
	head  string
	width int
	cell  func(Result) string
}

// columns returns the columns of a session's table: those of perftest and OSU,
// and what was lost where something can be. They are 100 characters at most.
func (s *Session) columns() []column {
	columns := []column{
		{"bytes", 9, func(r Result) string { return fmt.Sprint(r.Size) }},
		{"iters", 9, func(r Result) string { return fmt.Sprint(r.Iters) }},
	}
	if s.Case.Kind.Latency() {
		columns = append(columns, latencyColumns...)
	} else {
		columns = append(columns, streamColumns...)
	}
	if s.Spec.countsArrivals() && !s.Case.Kind.Latency() {
		columns = append(columns, sentColumns...)
	}
	if !s.Case.Kind.Latency() || s.Spec.Loss > 0 || s.Spec.Transport == "ud" {
		columns = append(columns, column{"lost", 9, func(r Result) string { return fmt.Sprint(r.Lost) }})
	}
	if s.Case.Family == Record {
		columns = append(columns, recordColumns...)
	}
	return columns
}

var latencyColumns = []column{
	{"min", 8, func(r Result) string { return microseconds(r.Lat.Min) }},
	{"p50", 8, func(r Result) string { return microseconds(r.Lat.P50) }},
	{"avg", 8, func(r Result) string { return microseconds(r.Lat.Avg) }},
	{"stdev", 8, func(r Result) string { return microseconds(r.Lat.Stdev) }},
	{"p99", 8, func(r Result) string { return microseconds(r.Lat.P99) }},
	{"p99.9", 8, func(r Result) string { return microseconds(r.Lat.P999) }},
	{"max", 8, func(r Result) string { return microseconds(r.Lat.Max) }},
}

// microseconds writes a time in at most seven characters: a Recorder knows none
// above 4294967.
func microseconds(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.2f", us)
	case us < 10_000:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

var streamColumns = []column{
	{"Gbit/s", 12, func(r Result) string { return fmt.Sprintf("%.3f", r.Gbit) }},
	{"messages/s", 14, func(r Result) string { return fmt.Sprintf("%.0f", r.Msgs) }},
}

var sentColumns = []column{
	{"sent Gbit/s", 13, func(r Result) string { return fmt.Sprintf("%.3f", r.Sent.Gbit) }},
	{"sent msg/s", 12, func(r Result) string { return fmt.Sprintf("%.0f", r.Sent.Msgs) }},
}

var recordColumns = []column{
	{"whole %", 8, func(r Result) string { return percent(r.Sent.Whole) }},
	{"valid %", 8, func(r Result) string { return percent(r.Sent.Valid) }},
}

func percent(share *float64) string { return fmt.Sprintf("%.2f", 100**share) }

// WriteText writes the row as a line of the table that WriteHeader began.
func (r Row) WriteText(w io.Writer, sessions []*Session) error {
	a := r.Results[0]
	if q := r.Ratio; q != nil {
		b := r.Results[1]
		_, err := fmt.Fprintf(w, "%12d%12d%12s%12s%9.3f%9.3f%9.3f\n", a.Size, b.Size, short(q.A), short(q.B), q.Ratio, q.Low, q.High)
		return errors.Join(err, a.Losses.warn(w), b.Losses.warn(w))
	}
	for _, c := range sessions[0].columns() {
		if _, err := fmt.Fprintf(w, "%*s", c.width, c.cell(a)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return errors.Join(err, a.Losses.warn(w))
}

// short writes v with about four digits.
func short(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
