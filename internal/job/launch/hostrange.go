package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// splitHosts cuts a list at its commas, but for those in brackets.
func splitHosts(list string) []string {
	var entries []string
	depth, begin := 0, 0
	for i, r := range list {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			entries = append(entries, list[begin:i])
			begin = i + 1
		}
	}
	return append(entries, list[begin:])
}

// expandNames returns the names that n[01-03,7] stands for, as Slurm writes lists of
// hosts (SLURM_JOB_NODELIST): n01, n02, n03 and n7. There may be several brackets.
func expandNames(name string) ([]string, error) {
	before, rest, found := strings.Cut(name, "[")
	if !found {
		return []string{name}, nil
	}
	ranges, after, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fmt.Errorf("%.64q: a bracket is not closed", name)
	}
	tails, err := expandNames(after)
	if err != nil {
		return nil, err
	}
	var names []string
	for part := range strings.SplitSeq(ranges, ",") {
		numbers, err := expandRange(part)
		if err != nil {
			return nil, fmt.Errorf("%.64q: %w", name, err)
		}
		if len(names)+len(numbers)*len(tails) > MaxRanks {
			return nil, fmt.Errorf("%.64q are more than %d hosts", name, MaxRanks)
		}
		for _, number := range numbers {
			for _, tail := range tails {
				names = append(names, before+number+tail)
			}
		}
	}
	return names, nil
}

// expandRange returns the numbers of 08-11, as wide as the first one.
func expandRange(part string) ([]string, error) {
	low, high, isRange := strings.Cut(part, "-")
	if !isRange {
		high = low
	}
	from, err1 := strconv.ParseUint(low, 10, 31)
	to, err2 := strconv.ParseUint(high, 10, 31)
	if err1 != nil || err2 != nil || to < from || to-from >= MaxRanks || len(low) > 16 {
		return nil, fmt.Errorf("%.64q: want numbers as in [1-4,7] or [01-16]", part)
	}
	var numbers []string
	for n := from; n <= to; n++ {
		numbers = append(numbers, fmt.Sprintf("%0*d", len(low), n))
	}
	return numbers, nil
}
