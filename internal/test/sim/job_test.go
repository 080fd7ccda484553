package sim

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
)

var _ boot.Job = (*Rank)(nil)

func TestLaunch_exchangesKeys(t *testing.T) {
	w := New(Config{Seed: 5})
	n := w.Nodes(2)
	w.Launch([]*Node{n[0], n[1], n[0]}, func(task *Task, r *Rank) error {
		for round := range 20 {
			task.Sleep(mono.Duration(task.Rand().IntN(1000)))
			_ = r.Put("addr", fmt.Sprint(r.Rank(), round))
			if v, _ := r.Get(r.Rank(), "addr"); v == fmt.Sprint(r.Rank(), round) {
				return errors.New("a value is visible before the fence")
			}
			if err := r.Fence(); err != nil {
				return err
			}
			for peer := range r.Size() {
				if v, ok := r.Get(peer, "addr"); !ok || v != fmt.Sprint(peer, round) {
					return fmt.Errorf("round %d: rank %d sees %q of rank %d", round, r.Rank(), v, peer)
				}
			}
		}
		if _, ok := r.Get(3, "addr"); ok {
			return errors.New("rank 3 exists")
		}
		host, local := r.Host()
		if want := []([2]int){{0, 0}, {1, 0}, {0, 1}}[r.Rank()]; want != [2]int{host, local} {
			return fmt.Errorf("rank %d is on host %d, place %d", r.Rank(), host, local)
		}
		return r.Finalize()
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestLaunch_abort(t *testing.T) {
	w := New(Config{})
	w.Launch(w.Nodes(3), func(task *Task, r *Rank) error {
		if r.Rank() == 1 {
			r.Abort(17, "had enough")
			t.Error("Abort returned")
		}
		return r.Fence()
	})
	var a *AbortError
	if err := w.Run(); !errors.As(err, &a) || a.Rank != 1 || a.Code != 17 || a.Why != "had enough" {
		t.Errorf("Run = %v", err)
	}
}

func TestLaunch_missingRankIsADeadlock(t *testing.T) {
	w := New(Config{})
	w.Launch(w.Nodes(2), func(task *Task, r *Rank) error {
		if r.Rank() == 1 {
			return nil
		}
		return r.Fence()
	})
	if err := w.Run(); !errors.Is(err, ErrDeadlock) {
		t.Errorf("Run = %v", err)
	}
}
