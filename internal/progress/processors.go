package progress

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// OnlyProcessor returns which processor the calling thread is tied to, from 1 on, or 0: to several of them.
func OnlyProcessor() int64 {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() != 1 {
		return 0
	}
	for cpu := 0; ; cpu++ {
		if set.IsSet(cpu) {
			return int64(cpu) + 1
		}
	}
}

// DivideProcessors ties this process, which is the local-th rank of its host, to the first half of
// the processors that it may use, and returns what ties the calling thread to one of the second
// half.
func DivideProcessors(local int) (tie func() error, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	own, rest, err := halves(all, local)
	if err != nil {
		return nil, err
	}
	return func() error { return unix.SchedSetaffinity(0, own) }, confine(rest)
}

// halves divides processors: one of the second half for the progress thread of the local-th
// rank of a host, the first half for the rest of it.
func halves(all unix.CPUSet, local int) (own, rest *unix.CPUSet, err error) {
	own, rest = &unix.CPUSet{}, &unix.CPUSet{}
	n := all.Count()
	if n < 2 {
		return nil, nil, errors.New("the rank may run on one only (--bind-to core:2 gives it two, --bind-to none all)")
	}
	first := n / 2
	i, mine := 0, first+local%(n-first)
	for cpu := 0; i < n; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if i < first {
			rest.Set(cpu)
		}
		if i == mine {
			own.Set(cpu)
		}
		i++
	}
	return own, rest, nil
}

// confine ties all threads of this process to processors, and those that they will start.
func confine(to *unix.CPUSet) error {
	const threads = "/proc/self/task"
	entries, err := os.ReadDir(threads)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, to)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return err
		}
	}
	return nil
}
