package adapt

import (
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// interval lets a predictor of the default configuration see one, of which so many percent
// were in MPI, with operations that keep the ghost busy.
func interval(p *Predictor, now *mono.Time, percent int) { operations(p, now, percent, 1000) }

// operations is interval with operations for which the ghost needs so many ten-thousandths of it.
func operations(p *Predictor, now *mono.Time, percent, part int) {
	*now = now.Add(mono.Second)
	p.Spent(*now, mono.Duration(percent)*mono.Second/100, mono.Duration(part)*100*mono.Microsecond)
}

// Who is in MPI all the time, but starts few operations, waits for others, and needs their ghosts
// as they may need its own. Ranks that share a ghost keep it busy together.
func TestPredictor_operations(t *testing.T) {
	var now mono.Time
	p := New(Config{}, now)
	for i, c := range []struct {
		part int
		want State
	}{{0, On}, {49, On}, {51, Off}, {40, Off}, {24, On}, {40, On}, {60, Off}} {
		if operations(p, &now, 100, c.part); p.State() != c.want {
			t.Fatalf("interval %d: %d ten-thousandths: %v, want %v", i, c.part, p.State(), c.want)
		}
	}
	p = New(Config{Sharers: 4}, now)
	if operations(p, &now, 100, 14); p.State() != Off {
		t.Error("four ranks with a fourth of the work each leave it On")
	}
	if one, many := Work(8), Work(1<<20); one >= 2*mono.Microsecond || many < 100*one {
		t.Errorf("work for 8 bytes is %v, and for 1 MiB %v", one, many)
	}
}

// The two thresholds make a hysteresis: between them nothing changes.
func TestPredictor_hysteresis(t *testing.T) {
	var now mono.Time
	p := New(Config{}, now)
	for i, c := range []struct {
		percent int
		want    State
	}{{100, Off}, {87, Off}, {84, On}, {87, On}, {90, On}, {91, Off}, {85, Off}, {0, On}, {85, On}, {100, Off}} {
		if interval(p, &now, c.percent); p.State() != c.want {
			t.Fatalf("interval %d, %d %%: %v, want %v", i, c.percent, p.State(), c.want)
		}
	}
}

// What is shorter than an interval decides nothing, and calls that have begun before it do not
// count for more than all of it.
func TestPredictor_spans(t *testing.T) {
	var now mono.Time
	p := New(Config{}, now)
	for range 9 {
		now = now.Add(mono.Second / 10)
		if p.Spent(now, mono.Second/10, mono.Second); p.State() != On {
			t.Fatal("it has decided before the end of the interval")
		}
	}
	if p.Spent(now.Add(mono.Second/10), mono.Second/10, 0); p.State() != Off {
		t.Error("all of the time in MPI leaves it On")
	}
	p = New(Config{}, 0)
	p.Spent(mono.Time(mono.Second), 100*mono.Second, mono.Second)
	now = mono.Time(mono.Second)
	if interval(p, &now, 0); p.State() != On {
		t.Error("a long call counts twice")
	}
}

// Ranks that keep each other Off, for each spends its time waiting for the others, leave it by
// a probe; those that are Off for good ask ever less often.
func TestPredictor_probe(t *testing.T) {
	var now mono.Time
	ranks := []*Predictor{New(Config{}, now), New(Config{}, now)}
	const waits, computes = 95, 50 // percent of the time in MPI while both are Off, and with ghosts
	for _, p := range ranks {
		interval(p, &now, 100) // a phase of communication
	}
	intervals := 0
	for on := []bool{false, false}; !on[0] || !on[1] || ranks[0].State() != On; intervals++ {
		if intervals > 20 {
			t.Fatal("they stay Off")
		}
		for _, p := range ranks {
			percent := waits
			if on[0] {
				percent = computes
			}
			start := now
			interval(p, &start, percent)
		}
		now = now.Add(mono.Second)
		if Decide([]State{ranks[0].State(), ranks[1].State()}, on) {
			ranks[0].Probed(now)
			ranks[1].Probed(now)
		}
	}
	p, probes := New(Config{}, now), []int{}
	for i := range 200 {
		if interval(p, &now, 100); p.State() == Probe {
			if p.Probed(now); len(probes) < 5 {
				probes = append(probes, i)
			}
		}
	}
	if want := []int{8, 25, 58, 123, 188}; !slices.Equal(probes, want) {
		t.Errorf("probes in intervals %v, want %v", probes, want)
	}
}

// Ranks that meet in turn, as those of windows on overlapping communicators do, end a probe that one has asked
// for, though each meets others in the middle of it.
func TestPredictor_probesOfOverlappingWindows(t *testing.T) {
	for _, steps := range []int{1, 2, 3, 5} { // exchanges in an interval
		var now mono.Time
		c := Config{Interval: mono.Duration(steps) * mono.Second}
		ranks := []*Predictor{New(c, now), New(c, now), New(c, now)}
		var off [3]int
		const intervals = 200
		for i := range intervals * steps {
			before := now
			for _, p := range ranks {
				now = before
				interval(p, &now, 100)
			}
			pair, on := ranks[i%2:][:2], make([]bool, 2)
			if Decide([]State{pair[0].Says(), pair[1].Says()}, on) {
				pair[0].Probed(now)
				pair[1].Probed(now)
			}
			for k, p := range ranks {
				if p.State() == Off {
					off[k]++
				}
			}
		}
		for k, n := range off {
			if n*10 <= intervals*steps*9 {
				t.Errorf("%d exchanges in an interval: rank %d is Off in %d of %d", steps, k, n, intervals*steps)
			}
		}
	}
}

// One probe is one of all, and else each has what it wants.
func TestDecide(t *testing.T) {
	on := make([]bool, 3)
	if Decide([]State{On, Off, On}, on) || !slices.Equal(on, []bool{true, false, true}) {
		t.Errorf("%v", on)
	}
	if !Decide([]State{Off, Off, Probe}, on) || slices.Contains(on, false) {
		t.Errorf("with a probe %v", on)
	}
}
