package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PickCores returns the cores for the server and the client: the two highest
// ones, because the lowest ones serve most interrupts; the same one twice when
// there is only one.
func PickCores(allowed []int) []int {
	n := len(allowed)
	if n == 0 {
		return nil
	}
	return []int{allowed[max(n-2, 0)], allowed[n-1]}
}

// CheckCores reports whether cores is a choice that both ends can be pinned
// to. Its errors wrap ErrUsage.
func CheckCores(cores, allowed []int) error {
	if len(cores) > 2 {
		return usagef("%d cores given: there are two ends, so give the server's core and the client's, as in --cores 2,3", len(cores))
	}
	for _, c := range cores {
		if !slices.Contains(allowed, c) {
			return usagef("core %d is not among the cores that this process may use: %v", c, allowed)
		}
	}
	return nil
}

// PinThread pins the calling thread, which the goroutine must have locked.
func PinThread(core int) error {
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pinning to core %d: %w", core, err)
	}
	return nil
}

// JoinInts writes numbers, as of cores, with commas between them.
func JoinInts(list []int) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}
