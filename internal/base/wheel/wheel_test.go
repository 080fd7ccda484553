package wheel

import (
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// model is what a wheel is, written the slow way.
type model map[int32]mono.Time

func (m model) deadline() mono.Time {
	first := mono.Never
	for _, at := range m {
		first = min(first, at)
	}
	return first
}

func TestWheel_againstModel(t *testing.T) {
	const ids = 50
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := mono.Time(r.Int64N(1 << 40))
		var w Wheel
		w.Init(now)
		w.Grow(ids)
		m := model{}
		for step := range 3000 {
			id := int32(r.IntN(ids))
			at := now.Add(mono.Duration(r.Int64N(1 << r.IntN(45))))
			switch r.IntN(5) {
			case 0:
				w.Cancel(id)
				delete(m, id)
			case 1:
				w.Sooner(id, at)
				if have, ok := m[id]; !ok || at < have {
					m[id] = at
				}
			case 2:
				now = max(now, w.Deadline()-1)
				if now >= mono.Never-1 {
					now = at
				}
				fallthrough
			case 3:
				now = now.Add(mono.Duration(r.Int64N(1 << r.IntN(42))))
				expire(t, &w, m, now)
			default:
				w.Arm(id, at)
				m[id] = at
			}
			for id := range int32(ids) {
				want, ok := m[id]
				if !ok {
					want = mono.Never
				}
				if w.timers[id].at != want {
					t.Fatalf("seed %d, step %d: timer %d is armed for %d, want %d", seed, step, id, w.timers[id].at, want)
				}
			}
			if d := m.deadline(); w.Deadline() > d.Add(1<<tickShift) {
				t.Fatalf("seed %d, step %d: deadline %d is later than the first timer, %d", seed, step, w.Deadline(), d)
			}
		}
	}
}

// expire fires what is due and checks that it was, and that nothing is left
// that has been due for longer than a tick.
func expire(t *testing.T, w *Wheel, m model, now mono.Time) {
	t.Helper()
	for {
		id, ok := w.Expire(now)
		if !ok {
			break
		}
		if at, armed := m[id]; !armed || at > now {
			t.Fatalf("timer %d fired at %d; armed %v for %d", id, now, armed, at)
		}
		delete(m, id)
	}
	for id, at := range m {
		if at.Add(1<<tickShift) <= now {
			t.Fatalf("timer %d was due at %d and has not fired at %d", id, at, now)
		}
	}
}

func TestDeadline_none(t *testing.T) {
	var w Wheel
	w.Init(5)
	w.Grow(1)
	if w.Deadline() != mono.Never {
		t.Errorf("deadline of an empty wheel: %d", w.Deadline())
	}
	w.Arm(0, mono.Never)
	if _, ok := w.Expire(mono.Never - 1); ok || w.Deadline() != mono.Never {
		t.Error("a timer that was armed for never fired")
	}
}

func TestAllocs_wheel(t *testing.T) {
	var w Wheel
	w.Init(0)
	w.Grow(100)
	now := mono.Time(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 700
		w.Arm(int32(now%100), now+5000)
		w.Expire(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkSooner is what a message costs: its timers are armed already.
func BenchmarkSooner(b *testing.B) {
	var w Wheel
	w.Init(0)
	w.Grow(1)
	w.Arm(0, 1000)
	for i := range b.N {
		w.Sooner(0, mono.Time(2000+i))
	}
}

func BenchmarkArmExpire(b *testing.B) {
	var w Wheel
	w.Init(0)
	w.Grow(10000)
	now := mono.Time(0)
	for i := range b.N {
		now += 100
		w.Arm(int32(i%10000), now+500000)
		w.Expire(now)
	}
}
