package progress

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The threads of a host's ranks have the second half of the processors, one each while there
// are as many, and the ranks the first.
func TestHalves(t *testing.T) {
	set := func(cpus ...int) (s unix.CPUSet) {
		for _, c := range cpus {
			s.Set(c)
		}
		return s
	}
	for _, c := range []struct {
		all, own, rest unix.CPUSet
		local          int
	}{
		{set(0, 1), set(1), set(0), 0}, {set(0, 1), set(1), set(0), 3},
		{set(4, 6, 7), set(6), set(4), 0}, {set(4, 6, 7), set(7), set(4), 1}, {set(4, 6, 7), set(6), set(4), 2},
		{set(0, 1, 2, 63), set(63), set(0, 1), 1},
	} {
		if own, rest, err := halves(c.all, c.local); err != nil || *own != c.own || *rest != c.rest {
			t.Errorf("rank %d of %v: %v and %v, %v", c.local, c.all, own, rest, err)
		}
	}
	if _, _, err := halves(set(5), 0); err == nil {
		t.Error("one processor is divided")
	}
}

// A thread that may run on one processor says which one.
func TestOnlyProcessor(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() > 1 && OnlyProcessor() != 0 {
		t.Errorf("%d of several", OnlyProcessor())
	}
	for cpu := range 64 {
		if !all.IsSet(cpu) {
			continue
		}
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Fatal(err)
		}
		if got := OnlyProcessor(); got != int64(cpu)+1 {
			t.Errorf("%d, want %d", got, cpu+1)
		}
	}
}
