package sim

import (
	"bytes"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// burst sends count numbered frames from one node to another, gap apart, and
// returns what arrives within a virtual second.
func burst(t *testing.T, c Config, count, size int, gap mono.Duration, change func(from, to *Node)) (*Node, *Node, [][]byte) {
	t.Helper()
	w := New(c)
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	if change != nil {
		change(n[0], n[1])
	}
	w.Go(n[0], "sender", func(task *Task) error {
		for i := 0; i < count; i++ {
			for !a.send(n[1], numbered(i, size)) {
				a.port.Flush()
				task.Sleep(mono.Microsecond)
			}
			a.port.Flush()
			task.Sleep(gap)
		}
		return nil
	})
	w.Go(n[1], "receiver", func(task *Task) error {
		b.await(task, 2*count, mono.Time(mono.Second))
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return n[0], n[1], b.got
}

func order(got [][]byte) []int {
	numbers := make([]int, len(got))
	for i, p := range got {
		numbers[i] = number(p)
	}
	return numbers
}

func near(t *testing.T, what string, got uint64, trials int, p float64) {
	t.Helper()
	want := float64(trials) * p
	if slack := want / 3; float64(got) < want-slack || float64(got) > want+slack {
		t.Errorf("%s: %d of %d, expected about %.0f", what, got, trials, want)
	}
}

func TestLink_quiet(t *testing.T) {
	_, _, got := burst(t, Config{Seed: 7}, 1000, 60, 0, nil)
	for i, n := range order(got) {
		if n != i {
			t.Fatalf("frame %d came at position %d without any fault", n, i)
		}
	}
	if len(got) != 1000 {
		t.Errorf("%d of 1000 frames arrived", len(got))
	}
}

func TestLink_loss(t *testing.T) {
	from, _, got := burst(t, Config{Seed: 7, Up: LinkConfig{Faults: Faults{Loss: 0.2}}}, 2000, 60, 0, nil)
	near(t, "lost", from.Up.Stats().Lost, 2000, 0.2)
	if uint64(len(got))+from.Up.Stats().Lost != 2000 {
		t.Errorf("%d arrived and %d were lost of 2000", len(got), from.Up.Stats().Lost)
	}
	if !slices.IsSorted(order(got)) {
		t.Error("loss changed the order")
	}
}

func TestLink_dup(t *testing.T) {
	_, to, got := burst(t, Config{Seed: 8, Down: LinkConfig{Faults: Faults{Dup: 0.2}}}, 2000, 60, 0, nil)
	near(t, "doubled", to.Down.Stats().Dup, 2000, 0.2)
	if len(got) != 2000+int(to.Down.Stats().Dup) || !slices.IsSorted(order(got)) {
		t.Errorf("%d frames arrived, %d doubled", len(got), to.Down.Stats().Dup)
	}
}

func TestLink_reorder(t *testing.T) {
	_, to, got := burst(t, Config{Seed: 9, Down: LinkConfig{Faults: Faults{Reorder: 0.1}}}, 2000, 60, 0, nil)
	near(t, "delayed", to.Down.Stats().Reordered, 2000, 0.1)
	numbers := order(got)
	if slices.IsSorted(numbers) {
		t.Error("nothing was overtaken")
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != i {
			t.Fatalf("frame %d is missing or doubled", i)
		}
	}
}

func TestLink_corrupt(t *testing.T) {
	_, to, got := burst(t, Config{Seed: 10, Down: LinkConfig{Faults: Faults{Corrupt: 0.2}}}, 2000, 200, 0, nil)
	near(t, "corrupted", to.Down.Stats().Corrupted, 2000, 0.2)
	wrong := 2000 - len(got) // a flip in the destination address
	for _, p := range got {
		if i := number(p); !bytes.Equal(p, numbered(i, 200)) {
			wrong++
		}
	}
	near(t, "wrong payloads", uint64(wrong), 2000, 0.2)
}

func TestLink_bandwidth(t *testing.T) {
	w := New(Config{Seed: 1, Up: LinkConfig{BitsPerSecond: 1e9, Delay: 10 * mono.Microsecond}})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	w.Go(n[0], "sender", func(*Task) error {
		for i := range 10 {
			a.send(n[1], numbered(i, 1500))
		}
		a.port.Flush()
		return nil
	})
	var done mono.Time
	w.Go(n[1], "receiver", func(task *Task) error {
		b.await(task, 10, mono.Never)
		done = task.Now()
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	// 10 frames of 1500+14+24 bytes at 1 Gbit/s, the delay, and one more
	// frame at 10 Gbit/s plus 500 ns on the way down.
	want := mono.Time(10*1538*8 + 10000 + 1538*8/10 + 500)
	if done < want || done > want+1000 {
		t.Errorf("ten frames took %d ns, expected %d", done, want)
	}
}

// Eight senders towards one receiver fill its queue in the switch, and what
// arrives is limited by its downlink.
func TestLink_incast(t *testing.T) {
	w := New(Config{Seed: 2, Frames: 4096, RxDepth: 2048, Down: LinkConfig{Queue: 20000}})
	n := w.Nodes(9)
	sink := open(t, n[8])
	for i := range 8 {
		e := open(t, n[i])
		w.Go(n[i], "sender", func(*Task) error {
			for k := range 20 {
				e.send(n[8], numbered(k, 1500))
			}
			e.port.Flush()
			return nil
		})
	}
	w.Go(n[8], "sink", func(task *Task) error {
		sink.await(task, 160, mono.Time(10*mono.Millisecond))
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	s := n[8].Down.Stats()
	if s.QueueFull == 0 || int(s.QueueFull)+len(sink.got) != 160 {
		t.Errorf("%d of 160 frames arrived, %d dropped by the queue", len(sink.got), s.QueueFull)
	}
	if s.QueueMax > 20000 || s.QueueMax < 18000 {
		t.Errorf("the queue of 20000 bytes held %d", s.QueueMax)
	}
}

func TestLink_cutAndHeal(t *testing.T) {
	heal := mono.Time(50 * mono.Microsecond)
	for name, cut := range map[string]func(from, to *Node){
		"up":        func(from, _ *Node) { from.Up.CutUntil = heal },
		"down":      func(_, to *Node) { to.Down.CutUntil = heal },
		"partition": func(from, _ *Node) { from.world.Partition(heal, from) },
		"script":    func(from, _ *Node) { from.Up.Loss = 1; from.world.At(heal, func() { from.Up.Loss = 0 }) },
	} {
		t.Run(name, func(t *testing.T) {
			_, _, got := burst(t, Config{Seed: 3}, 100, 60, mono.Microsecond, cut)
			if n := len(got); n < 45 || n > 55 {
				t.Errorf("%d of 100 frames arrived, half the time was cut", n)
			}
		})
	}
}

// A link of a smaller MTU on the way loses what is too large for it, and says
// nothing.
func TestLink_mtu(t *testing.T) {
	small := func(_, to *Node) { to.Down.MTU = 1500 }
	_, to, got := burst(t, Config{Seed: 7}, 10, 1500, 0, small)
	if s := to.Down.Stats(); len(got) != 10 || s.TooLarge != 0 {
		t.Errorf("1500 bytes: %d of 10 arrive, %d were too large", len(got), s.TooLarge)
	}
	from, to, got := burst(t, Config{Seed: 7}, 10, 1501, 0, small)
	if s := to.Down.Stats(); len(got) != 0 || s.TooLarge != 10 || from.Up.Stats().TooLarge != 0 {
		t.Errorf("1501 bytes: %d of 10 arrive, %d were too large", len(got), s.TooLarge)
	}
}
