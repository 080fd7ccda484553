package bench

import "fmt"

// Measurement says how sessions are measured.
type Measurement struct {
	// Rounds is how many bursts each size gets. Default 1, and 9 for several
	// sessions.
	Rounds int
	// Quick makes bursts whose length was not asked for eight times shorter.
	Quick bool
	// Progress is told what comes next. Default: nobody is.
	Progress func(what string)
}

// CheckPair reports whether two configurations can be compared: their results
// must have one unit and as many sizes. Its errors wrap ErrUsage.
func CheckPair(a, b Spec) error {
	x, _ := Find(a.Test)
	y, _ := Find(b.Test)
	if (x.Kind == PingPong) != (y.Kind == PingPong) {
		return usagef("--vs compares latency with latency and streams with streams, not %s with %s", a.Test, b.Test)
	}
	if n, m := len(a.Sizes), len(b.Sizes); n != m && n > 0 && m > 0 {
		return usagef("--vs needs as many sizes on both sides, not %d and %d: name them with --size", n, m)
	}
	return nil
}

// Measure measures all sizes of one session, or of several in turns, and hands
// each row to emit. Short bursts alternate on sessions that stay open, in the
// order A B, B A, A B, ..., so that a noisy machine disturbs all alike and none
// always comes first. All sessions need as many sizes.
func (m Measurement) Measure(sessions []*Session, emit func(Row) error) error {
	if len(sessions) == 2 {
		if err := CheckPair(sessions[0].Spec, sessions[1].Spec); err != nil {
			return err
		}
	}
	if m.Rounds == 0 {
		m.Rounds = 1
		if len(sessions) > 1 {
			m.Rounds = 9
		}
	}
	for i := range sessions[0].Spec.Sizes {
		row, err := m.row(sessions, i)
		if err != nil {
			return err
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

// row measures the i-th size of every session.
func (m Measurement) row(sessions []*Session, i int) (Row, error) {
	bursts := make([]Burst, len(sessions))
	for k, s := range sessions {
		bursts[k] = s.Spec.burst(s.Case.Kind, s.Spec.Sizes[i], m.Quick)
	}
	points, err := m.interleave(sessions, bursts)
	if err != nil {
		return Row{}, err
	}
	var row Row
	for k, s := range sessions {
		row.Results = append(row.Results, s.result(bursts[k], points[k]))
	}
	if len(sessions) == 2 {
		row.Ratio = compare(sessions[0].Case.Kind, points[0], points[1])
	}
	return row, nil
}

// interleave returns the points of each session, by round.
func (m Measurement) interleave(sessions []*Session, bursts []Burst) ([][]Point, error) {
	points := make([][]Point, len(sessions))
	for round := range m.Rounds {
		for turn := range sessions {
			k := turn
			if round%2 == 1 {
				k = len(sessions) - 1 - turn
			}
			s, b := sessions[k], bursts[k]
			if m.Progress != nil {
				m.Progress(fmt.Sprintf("%s over %s: %d bytes, round %d of %d", s.Spec.Test, s.Carrier, b.Size, round+1, m.Rounds))
			}
			p, err := s.Run(b)
			if err != nil {
				return nil, fmt.Errorf("%s over %s, %d bytes: %w", s.Spec.Test, s.Carrier, b.Size, err)
			}
			points[k] = append(points[k], p)
		}
	}
	return points, nil
}
