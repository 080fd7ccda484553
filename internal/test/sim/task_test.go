package sim

import (
	"errors"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
)

var (
	_ mono.Clock      = (*Task)(nil)
	_ mono.Clock      = (*World)(nil)
	_ progress.Parker = (*Task)(nil)
	_ progress.Waker  = (*Task)(nil)
)

// run runs one task in a world of its own.
func run(t *testing.T, c Config, body func(*Task) error) *World {
	t.Helper()
	w := New(c)
	w.Go(w.Node(), "task", body)
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTask_Now_costs(t *testing.T) {
	run(t, Config{StepCost: 7}, func(task *Task) error {
		before := task.Now()
		if d := task.Now().Sub(before); d != 7 {
			t.Errorf("reading the clock cost %v", d)
		}
		if d := task.World().Now().Sub(before); d != 14 {
			t.Errorf("the world's clock shows %v, not the task's", d)
		}
		return nil
	})
}

func TestTask_Sleep(t *testing.T) {
	run(t, Config{StepCost: 1}, func(task *Task) error {
		before := task.Now()
		task.Node().Wake() // must not end a Sleep
		task.Sleep(mono.Second)
		task.Sleep(-5)
		if d := task.Now().Sub(before); d != mono.Second+1 {
			t.Errorf("slept %v", d)
		}
		return nil
	})
}

func TestTask_Park_deadline(t *testing.T) {
	run(t, Config{StepCost: 1}, func(task *Task) error {
		start := task.Now()
		task.Park(start.Add(500), 0)
		task.Park(start.Add(100), 0) // has passed
		task.Park(start.Add(600), 0)
		if d := task.Now().Sub(start); d != 601 {
			t.Errorf("parked for %v", d)
		}
		return nil
	})
}

func TestTask_Wake(t *testing.T) {
	w := New(Config{})
	n := w.Node()
	var waiter *Task
	rounds := 0
	waiter = w.Go(n, "waiter", func(task *Task) error {
		for ; rounds < 100; rounds++ {
			task.Sleep(mono.Duration(task.Rand().IntN(300))) // so that Wake comes before and after Park
			task.Park(mono.Never, 0)
		}
		return nil
	})
	w.Go(n, "waker", func(task *Task) error {
		for seen := 0; rounds < 100; seen++ {
			waiter.Wake()
			for rounds == seen {
				task.Now()
			}
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// A timer that was armed for a later time must not wake the task early, nor
// keep a shorter one from doing so.
func TestTask_Park_manyDeadlines(t *testing.T) {
	w := New(Config{StepCost: 1})
	n := w.Node()
	for i := mono.Time(1); i <= 5; i++ {
		w.At(i*100, n.Wake)
	}
	var woke []mono.Time
	w.Go(n, "task", func(task *Task) error {
		for _, until := range []mono.Time{1000, 150, 2000, 250, 1000, 1000, 1000, 1000, 3000} {
			task.Park(until, 0)
			woke = append(woke, task.Now()-1)
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []mono.Time{100, 150, 200, 250, 300, 400, 500, 1000, 3000} {
		if woke[i] < want || woke[i] > want+1 {
			t.Errorf("wait %d ended at %d, not %d", i, woke[i], want)
		}
	}
}

func TestTask_parkingDoesNotFillTheHeap(t *testing.T) {
	w := New(Config{})
	n := w.Node()
	w.Go(n, "parks", func(task *Task) error {
		for range 10000 {
			task.Park(mono.Time(mono.Second), 0)
		}
		return nil
	})
	w.Go(n, "wakes", func(task *Task) error {
		for range 10000 {
			task.Now()
			n.Wake()
		}
		if len(w.events) > 10 {
			t.Errorf("%d events are scheduled for two tasks", len(w.events))
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// A frame that arrives between an empty Recv and Park must not be missed.
func TestTask_Park_seesWhatCameBefore(t *testing.T) {
	w := New(Config{})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	w.Go(n[0], "sender", func(*Task) error { a.send(n[1], numbered(1, 60)); a.port.Flush(); return nil })
	w.Go(n[1], "receiver", func(task *Task) error {
		b.poll()
		for task.Now() < mono.Time(mono.Millisecond) {
		}
		task.Park(mono.Never, 0)
		if b.poll() != 1 {
			return errors.New("woke without the frame")
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// echo is a source of a progress engine over a raw port.
type echo struct {
	*end
	frames int
}

func (e *echo) Poll(mono.Time, int) int { n := e.poll(); e.frames += n; return n }
func (e *echo) Deadline() mono.Time     { return mono.Never }

func TestTask_runsAnEngine(t *testing.T) {
	w := New(Config{})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	w.Go(n[0], "sender", func(task *Task) error {
		for i := range 100 {
			a.send(n[1], numbered(i, 60))
			a.poll()
			task.Sleep(mono.Duration(task.Rand().IntN(3000)))
		}
		return nil
	})
	w.Go(n[1], "receiver", func(task *Task) error {
		e := progress.New(task, task)
		s := &echo{end: b}
		e.Add(s)
		for s.frames < 100 {
			if e.Step() == 0 {
				e.Park()
			}
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestAllocs_Task(t *testing.T) {
	w := New(Config{})
	n := w.Nodes(2)
	w.Go(n[0], "other", func(task *Task) error {
		for range 3000 {
			task.Now()
		}
		return nil
	})
	w.Go(n[1], "measured", func(task *Task) error {
		for range 10 {
			task.Now()
		}
		if a := testing.AllocsPerRun(1000, func() { task.Now() }); a != 0 {
			t.Errorf("%v allocations per switch of tasks", a)
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}
