package bench

import (
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Measurement says how sessions are measured.
type Measurement struct {
	// Rounds is how many bursts each size gets. Default 1, and 9 for several
	// sessions.
	Rounds int
	// Duration is how long each size of each session is measured, instead of
	// Rounds: as many bursts as it takes. Default: Rounds decides.
	Duration mono.Duration
	// Quick makes bursts whose length was not asked for eight times shorter.
	Quick bool
	// Progress is told what comes next. Default: nil.
	Progress func(what string)

	done string // how far it is, for Progress
}

// CheckPair reports whether two configurations can be compared: their results
// must have one unit and as many sizes. Its errors wrap ErrUsage.
func CheckPair(a, b Spec) error {
	x, _ := Find(a.Test)
	y, _ := Find(b.Test)
	if x.Kind.Latency() != y.Kind.Latency() {
		return usagef("--vs compares latency with latency and streams with streams, not %s with %s", a.Test, b.Test)
	}
	if n, m := len(a.Sizes), len(b.Sizes); n != m && n > 0 && m > 0 && !a.Clip && !b.Clip {
		return usagef("--vs needs as many sizes on both sides, not %d and %d: name them with --size", n, m)
	}
	return nil
}

// Measure measures all sizes of one session, or of several in turns, and hands
// each row to emit. Short bursts alternate on sessions that stay open, in the
// order A B, B A, A B, ..., so that a noisy machine disturbs all alike and none
// always comes first. All sessions need as many sizes, unless they chose those
// themselves: then the sizes that all have are measured.
func (m Measurement) Measure(sessions []*Session, emit func(Row) error) error {
	if len(sessions) == 2 {
		if err := CheckPair(sessions[0].Spec, sessions[1].Spec); err != nil {
			return err
		}
	}
	sizes, err := align(sessions)
	if err != nil {
		return err
	}
	for i := range sizes[0] {
		bursts := make([]Burst, len(sessions))
		for k, s := range sessions {
			bursts[k] = s.Spec.burst(s.Case.Kind, sizes[k][i], m.Quick)
		}
		m.done = fmt.Sprintf("size %d of %d", i+1, len(sizes[0]))
		row, err := m.row(sessions, bursts)
		if err != nil {
			return err
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

// Tabulate measures sizes one after the other, each on those sessions in turns
// that have it. The results of the others stay zero.
func (m Measurement) Tabulate(sessions []*Session, sizes []int, emit func(size int, r Row) error) error {
	for i, size := range sizes {
		var able []*Session
		var bursts []Burst
		for _, s := range sessions {
			if slices.Contains(s.Spec.Sizes, size) {
				able, bursts = append(able, s), append(bursts, s.Spec.burst(s.Case.Kind, size, m.Quick))
			}
		}
		m.done = fmt.Sprintf("size %d of %d", i+1, len(sizes))
		measured, err := m.row(able, bursts)
		if err != nil {
			return err
		}
		row := Row{Results: make([]Result, len(sessions))}
		for k, s := range sessions {
			if j := slices.Index(able, s); j >= 0 {
				row.Results[k] = measured.Results[j]
			}
		}
		if err := emit(size, row); err != nil {
			return err
		}
	}
	return nil
}

// align returns the sizes to measure of each session, as many of each.
func align(sessions []*Session) ([][]int, error) {
	sizes := make([][]int, len(sessions))
	same := true
	for k, s := range sessions {
		sizes[k] = s.Spec.Sizes
		same = same && len(sizes[k]) == len(sizes[0])
	}
	if same {
		return sizes, nil
	}
	common := slices.DeleteFunc(slices.Clone(sizes[0]), func(n int) bool {
		return slices.ContainsFunc(sizes, func(other []int) bool { return !slices.Contains(other, n) })
	})
	if len(common) == 0 {
		return nil, usagef("the configurations have no size in common: name them with --size")
	}
	for k := range sizes {
		sizes[k] = common
	}
	return sizes, nil
}

// row runs the bursts in turns, one per session and round.
func (m Measurement) row(sessions []*Session, bursts []Burst) (Row, error) {
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
	goal := m.goal(len(sessions), mono.Real{})
	for round := 0; goal.more(round); round++ {
		for turn := range sessions {
			k := turn
			if round%2 == 1 {
				k = len(sessions) - 1 - turn
			}
			s, b := sessions[k], bursts[k]
			if m.Progress != nil {
				m.Progress(fmt.Sprintf("%s over %s: %d bytes (%s), %s", s.Spec.Test, s.Carrier, b.Size, m.done, goal.text(round)))
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

// goal says when a size was measured for long enough.
type goal struct {
	rounds   int
	duration mono.Duration
	clock    mono.Clock
	began    mono.Time
}

func (m Measurement) goal(sessions int, clock mono.Clock) goal {
	g := goal{rounds: m.Rounds, duration: m.Duration * mono.Duration(sessions), clock: clock, began: clock.Now()}
	switch {
	case g.rounds > 0:
	case sessions > 1:
		g.rounds = 9
	default:
		g.rounds = 1
	}
	return g
}

// more reports whether one more round is due after so many.
func (g *goal) more(done int) bool {
	if g.duration > 0 {
		return done == 0 || g.clock.Now().Sub(g.began) < g.duration
	}
	return done < g.rounds
}

// text says how far it is, for people.
func (g *goal) text(done int) string {
	if g.duration > 0 {
		return fmt.Sprintf("%.0f of %.0f s", g.clock.Now().Sub(g.began).Seconds(), g.duration.Seconds())
	}
	return fmt.Sprintf("round %d of %d", done+1, g.rounds)
}
