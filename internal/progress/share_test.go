package progress

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// A goroutine that parks holds nothing: another one comes in, steps, and wakes it.
func TestShare_parkLetsOthersIn(t *testing.T) {
	for name, c := range map[string]PollerConfig{
		"blocks":   {NoSpin: true},
		"spins":    {Spin: time.Hour},
		"yields":   {Spin: time.Hour, Ranks: 1 << 20},
		"yieldsGo": {Spin: time.Hour, Ranks: 1 << 20, Goroutines: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPoller(mono.Real{}, c)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			e := New(mono.Real{}, p)
			var mu sync.Mutex
			shared, yieldNever := e.Share(&mu)
			if !shared || yieldNever && c.Ranks > 1 {
				t.Fatalf("shared %v, yieldNever %v", shared, yieldNever)
			}
			turns, done := 0, false
			var group sync.WaitGroup
			group.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				for !done {
					if e.Step() == 0 {
						e.Park()
					}
					turns++
				}
			})
			for enough := false; !enough; { // it comes back from Park 20 times
				mu.Lock()
				e.Step()
				enough = turns >= 20
				done = enough
				e.Wake()
				mu.Unlock()
			}
			group.Wait()
		})
	}
}

// What another goroutine watches during a Park ends that Park.
func TestShare_watchDuringPark(t *testing.T) {
	p, err := NewPoller(mono.Real{}, PollerConfig{NoSpin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var mu sync.Mutex
	p.Share(&mu)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	event.Bell(fd).Ring()
	var group sync.WaitGroup
	group.Go(func() {
		mu.Lock()
		defer mu.Unlock()
		for !p.watches(int32(fd)) {
			p.Park(mono.Never, 0)
		}
		p.Park(mono.Never, 0) // fd has input
	})
	time.Sleep(2 * time.Millisecond)
	mu.Lock()
	p.Watch(fd)
	mu.Unlock()
	group.Wait()
	p.Unwatch(fd)
}

func TestShare_parkerThatCannot(t *testing.T) {
	m := &manual{}
	if shared, _ := New(m, m).Share(&sync.Mutex{}); shared {
		t.Error("a parker that does not let others in is shared")
	}
}
