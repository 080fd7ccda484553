package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// chatter is a world in which tasks send to random others over a bad network,
// wait for random times, and spin. It returns the trace hash, and the log when
// log is not nil.
func chatter(t testing.TB, seed uint64, tasks, frames int, log *bytes.Buffer) uint64 {
	bad := Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.1, Corrupt: 0.02}
	c := Config{
		Seed: seed, Frames: 128, ArenaSize: 1 << 20,
		Up: LinkConfig{Faults: bad}, Down: LinkConfig{Faults: bad, Queue: 16 << 10},
	}
	if log != nil {
		c.Log = log
	}
	w := New(c)
	nodes := w.Nodes(tasks)
	w.At(mono.Time(300*mono.Microsecond), func() {
		w.Partition(mono.Time(400*mono.Microsecond), nodes[:tasks/2]...)
	})
	for i, n := range nodes {
		e := open(t, n)
		w.Go(n, fmt.Sprintf("task %d", i), func(task *Task) error {
			for k := range frames {
				e.send(nodes[task.Rand().IntN(tasks)], numbered(k, 4+task.Rand().IntN(5000)))
				e.poll()
				switch task.Rand().IntN(3) {
				case 0:
					task.Sleep(mono.Duration(task.Rand().IntN(20000)))
				case 1:
					task.Park(task.Now().Add(10*mono.Microsecond), 0)
				}
				e.poll()
			}
			e.await(task, len(e.got)+3, task.Now().Add(50*mono.Microsecond))
			if missing := e.port.Missing(); missing != 0 {
				return fmt.Errorf("%d buffers are missing", missing)
			}
			return nil
		})
	}
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return w.TraceHash()
}

func TestRun_sameSeedSameTrace(t *testing.T) {
	was := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
	seen := map[uint64]uint64{}
	for seed := range uint64(4) {
		want := chatter(t, seed, 80, 20, nil)
		if other, ok := seen[want]; ok {
			t.Errorf("seeds %d and %d have one trace", seed, other)
		}
		seen[want] = seed
		for _, procs := range []int{1, 2, 4, 8} {
			runtime.GOMAXPROCS(procs)
			if got := chatter(t, seed, 80, 20, nil); got != want {
				t.Errorf("seed %d on %d processors: trace %x, before %x", seed, procs, got, want)
			}
		}
		runtime.GOMAXPROCS(was)
	}
}

// The hash is of the same things that the log shows.
func TestRun_sameSeedSameLog(t *testing.T) {
	var one, two bytes.Buffer
	a, b := chatter(t, 5, 64, 5, &one), chatter(t, 5, 64, 5, &two)
	if !bytes.Equal(one.Bytes(), two.Bytes()) || a != b {
		t.Error("two runs of one seed have different logs")
	}
	for _, v := range []verb{traceSend, traceDeliver, traceLost, traceDup, traceDelayed, traceCorrupt, traceUnknown} {
		if !strings.Contains(one.String(), v.String()) {
			t.Errorf("nothing of kind %q happened: the test is too quiet", v)
		}
	}
}

func TestRun_worldsSideBySide(t *testing.T) {
	want := chatter(t, 11, 64, 5, nil)
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if got := chatter(t, 11, 64, 5, nil); got != want {
				t.Errorf("trace %x beside other worlds, %x alone", got, want)
			}
		})
	}
}

func TestRun_deadlock(t *testing.T) {
	w := New(Config{Seed: 99})
	n := w.Nodes(2)
	w.Go(n[0], "ends", func(task *Task) error { task.Sleep(mono.Second); return nil })
	w.Go(n[1], "waits", func(task *Task) error {
		task.Doing("MPI_Recv from 3")
		for {
			task.Park(mono.Never, 0)
		}
	})
	err := w.Run()
	if !errors.Is(err, ErrDeadlock) {
		t.Fatalf("Run = %v", err)
	}
	for _, want := range []string{"seed 99", "waits on node 1", "MPI_Recv from 3", "waits for a frame without a deadline"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "ends on node") {
		t.Errorf("the error names a task that has ended: %v", err)
	}
}

func TestRun_timeLimit(t *testing.T) {
	for name, body := range map[string]func(*Task) error{
		"spins": func(task *Task) error {
			for {
				task.Now()
			}
		},
		"parks with a timer": func(task *Task) error {
			for {
				task.Park(task.Now().Add(mono.Microsecond), 0)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(Config{Limit: mono.Millisecond})
			w.Go(w.Node(), "busy", body)
			if err := w.Run(); !errors.Is(err, ErrTimeLimit) {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

func TestRun_panicNamesTaskAndSeed(t *testing.T) {
	w := New(Config{Seed: 42})
	cause := errors.New("broken")
	unwoundToo := false
	w.Go(w.Node(), "waiter", func(task *Task) error {
		defer func() { unwoundToo = true }()
		task.Park(mono.Never, 0)
		return nil
	})
	w.Go(w.Node(), "rank 7", func(task *Task) error {
		task.Sleep(mono.Millisecond)
		panic(cause)
	})
	err := w.Run()
	var p *PanicError
	if !errors.As(err, &p) || p.Task != "rank 7" || p.Seed != 42 || !errors.Is(err, cause) {
		t.Fatalf("Run = %v", err)
	}
	if !strings.Contains(string(p.Stack), "world_test.go") {
		t.Errorf("the stack does not show the task:\n%s", p.Stack)
	}
	if !unwoundToo {
		t.Error("the other task was not unwound")
	}
}

func TestRun_errorEndsWorld(t *testing.T) {
	w := New(Config{Seed: 1})
	cause := errors.New("no luck")
	w.Go(w.Node(), "rank 0", func(task *Task) error { task.Sleep(1); return cause })
	w.Go(w.Node(), "rank 1", func(task *Task) error {
		for {
			task.Now()
		}
	})
	if err := w.Run(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("Run = %v", err)
	}
}

// FailNow in a task leaves through runtime.Goexit: it must end the goroutine
// that called Run, and unwind the others.
func TestRun_goexit(t *testing.T) {
	unwoundToo, returned := false, false
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := New(Config{})
		w.Go(w.Node(), "waiter", func(task *Task) error {
			defer func() { unwoundToo = true }()
			task.Park(mono.Never, 0)
			return nil
		})
		w.Go(w.Node(), "fails", func(task *Task) error {
			task.Sleep(mono.Second)
			runtime.Goexit()
			return nil
		})
		_ = w.Run()
		returned = true
	}()
	<-done
	if !unwoundToo || returned {
		t.Errorf("other task unwound: %v; Run returned: %v", unwoundToo, returned)
	}
}

func TestNew_badConfig(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a TX ring shorter than a frame was accepted")
		}
	}()
	New(Config{TxDepth: 2})
}

// pingPong exchanges messages between two tasks and returns the world.
func pingPong(t testing.TB, messages int) *World {
	w := New(Config{Seed: 1})
	n := w.Nodes(2)
	for me := range 2 {
		e := open(t, n[me])
		w.Go(n[me], fmt.Sprintf("rank %d", me), func(task *Task) error {
			payload := make([]byte, 64)
			for i := range messages {
				if i%2 == me {
					binary.BigEndian.PutUint32(payload, uint32(i))
					e.send(n[1-me], payload)
					e.port.Flush()
					continue
				}
				e.got = e.got[:0]
				e.await(task, 1, mono.Never)
				if number(e.got[0]) != i {
					return fmt.Errorf("message %d came, expected %d", number(e.got[0]), i)
				}
			}
			return nil
		})
	}
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return w
}

func BenchmarkPingPong10000(b *testing.B) {
	for b.Loop() {
		pingPong(b, 10000)
	}
}

func BenchmarkSwitch(b *testing.B) {
	w := New(Config{Limit: mono.Duration(1 << 62)})
	for range 2 {
		w.Go(w.Node(), "spinner", func(task *Task) error {
			for range b.N {
				task.Now()
			}
			return nil
		})
	}
	b.ResetTimer()
	if err := w.Run(); err != nil {
		b.Fatal(err)
	}
}
