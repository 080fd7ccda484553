package progress

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/mono"
)

// ticket is a command that notes its turn.
type ticket struct {
	log    *[]*ticket
	poster int
	number int
	at     mono.Time
}

func (t *ticket) Execute(now mono.Time) {
	t.at = now
	*t.log = append(*t.log, t)
}

func TestPost_executesInTheNextStep(t *testing.T) {
	m := &manual{now: 99}
	e := New(m, m)
	var log []*ticket
	for i := range 3 {
		if err := e.Post(&ticket{log: &log, number: i}); err != nil {
			t.Fatal(err)
		}
	}
	if m.woken != 3 || len(log) != 0 {
		t.Fatalf("woken %d times, %d executed before any step", m.woken, len(log))
	}
	if n := e.Step(); n != 3 {
		t.Errorf("Step = %d", n)
	}
	for i, c := range log {
		if c.number != i || c.at != 99 {
			t.Errorf("command %d ran as number %d at %d", c.number, i, c.at)
		}
	}
	if n := e.Step(); n != 0 {
		t.Errorf("an empty Step = %d", n)
	}
}

func TestPost_full(t *testing.T) {
	m := &manual{}
	e := New(m, m)
	var log []*ticket
	posted := 0
	for e.Post(&ticket{log: &log}) == nil {
		posted++
	}
	if posted != commandRoom {
		t.Errorf("%d commands fit", posted)
	}
	if err := e.Post(&ticket{log: &log}); !errors.Is(err, ErrBusy) {
		t.Errorf("Post into a full ring: %v", err)
	}
	if n := e.Step(); n != Budget {
		t.Errorf("one step executed %d commands, its budget is %d", n, Budget)
	}
	for e.Step() > 0 {
	}
	if len(log) != posted {
		t.Errorf("%d of %d commands were executed", len(log), posted)
	}
}

// Many goroutines post; the owner parks in a real poller and must miss none.
func TestPost_wakesTheOwner(t *testing.T) {
	const posters, each = 4, 500
	p := newPoller(t, PollerConfig{NoSpin: true})
	e := New(mono.Real{}, p)
	var log []*ticket
	var posting sync.WaitGroup
	for i := range posters {
		posting.Go(func() {
			for k := range each {
				c := &ticket{log: &log, poster: i, number: k}
				for e.Post(c) != nil {
					runtime.Gosched()
				}
			}
		})
	}
	for len(log) < posters*each {
		if e.Step() == 0 {
			e.Park()
		}
	}
	posting.Wait()
	next := make([]int, posters)
	for _, c := range log {
		if c.number != next[c.poster] {
			t.Fatalf("poster %d: command %d came when %d was due", c.poster, c.number, next[c.poster])
		}
		next[c.poster]++
	}
}

func TestAllocs_Post(t *testing.T) {
	m := &manual{}
	e := New(m, m)
	log := make([]*ticket, 0, 1000)
	c := &ticket{log: &log}
	if n := testing.AllocsPerRun(100, func() {
		if e.Post(c) != nil || e.Step() != 1 {
			t.Fatal("the command was not executed")
		}
	}); n != 0 {
		t.Errorf("%v allocations per command", n)
	}
}
