package bench

import (
	"runtime"
	"strings"
	"testing"
)

// What is allocated must not grow with the number of messages, on either end.
func TestAllocs_timedLoops(t *testing.T) {
	count := newAllocCounter(t)
	may := func(s Spec) bool { return !s.connects() || !s.onXDP() } // gVisor's TCP allocates for each segment
	chosen([]string{"udp", "tcp", "shm", "xdp"}, may, func(c Case, fabric, transport string, spec Spec) {
		t.Run(c.Name+"/"+fabric+"/"+transport, func(t *testing.T) {
			s := loopback(t)
			if fabric == "xdp" {
				s = hosts(t, 9000)
			}
			session := s.open(t, spec)
			few, many := count.in(t, session, 160), count.in(t, session, 960)
			for range 3 { // queues and tables grow to their size in the first ones
				if many > few+40 {
					many = min(many, count.in(t, session, 960))
				}
			}
			if many > few+40 {
				t.Errorf("%d allocations for 160 messages, %d for 960", few, many)
			}
		})
	})
}

// allocCounter counts allocations, and remembers of stacks whether they are ours.
type allocCounter struct{ ours map[[32]uintptr]bool }

// newAllocCounter has every allocation enter the profile until the test ends.
func newAllocCounter(t *testing.T) *allocCounter {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	t.Cleanup(func() { runtime.MemProfileRate = rate })
	return &allocCounter{map[[32]uintptr]bool{}}
}

// in returns how often code of ours allocates memory in a burst.
func (c *allocCounter) in(t *testing.T, s *Session, iters int) int64 {
	t.Helper()
	before := c.allocatedByUs()
	if _, err := s.Run(Burst{Size: s.Spec.Sizes[0], Iters: iters, Warmup: 0, Window: 16}); err != nil {
		t.Fatal(err)
	}
	n := c.allocatedByUs() - before
	if n == 0 {
		t.Error("nothing is counted, not even what both ends tell each other")
	}
	return n
}

// allocatedByUs counts the allocations of the profile, which has all of them while
// MemProfileRate is 1, but those of the runtime alone, of which a busy machine has more
// the longer a burst takes there.
func (c *allocCounter) allocatedByUs() (n int64) {
	runtime.GC() // the profile is that of the last but one
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1000)
	used, ok := runtime.MemProfile(records, true)
	for !ok {
		records = make([]runtime.MemProfileRecord, 2*used)
		used, ok = runtime.MemProfile(records, true)
	}
	for _, r := range records[:used] {
		ours, known := c.ours[r.Stack0]
		if !known {
			ours = isOurs(r.Stack())
			c.ours[r.Stack0] = ours
		}
		if ours {
			n += r.AllocObjects
		}
	}
	return n
}

// isOurs reports whether code of this module is on a stack, but for allocatedByUs and what
// looks at the network devices now and then.
func isOurs(stack []uintptr) (ours bool) {
	frames := runtime.CallersFrames(stack)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasSuffix(f.Function, ".allocatedByUs") || strings.Contains(f.Function, "/inet/route.") {
			return false
		}
		ours = ours || strings.HasPrefix(f.Function, "github.com/xwarp/xwarp/")
	}
	return ours
}
