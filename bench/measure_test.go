package bench

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// handClock is a clock that is set by hand.
type handClock mono.Time

func (c *handClock) Now() mono.Time { return mono.Time(*c) }

func TestGoal_rounds(t *testing.T) {
	for _, c := range []struct{ asked, sessions, want int }{{0, 1, 1}, {0, 2, 9}, {3, 1, 3}, {3, 5, 3}} {
		g := Measurement{Rounds: c.asked}.goal(c.sessions, new(handClock))
		done := 0
		for g.more(done) {
			done++
		}
		if done != c.want {
			t.Errorf("%d asked for, %d sessions: %d rounds, want %d", c.asked, c.sessions, done, c.want)
		}
	}
}

// Each of two sessions is measured for the time, and at least once.
func TestGoal_duration(t *testing.T) {
	clock := new(handClock)
	g := Measurement{Duration: 5 * mono.Second}.goal(2, clock)
	done := 0
	for ; g.more(done); done++ {
		*clock += handClock(3 * mono.Second)
	}
	if done != 4 || g.text(done) != "12 of 10 s" {
		t.Errorf("%d rounds of 3 s in 10 s (%s), want 4", done, g.text(done))
	}
	g = Measurement{Duration: 1}.goal(1, clock)
	*clock += 10
	if !g.more(0) || g.more(1) {
		t.Error("want one round, however long it takes")
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
