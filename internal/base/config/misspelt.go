package config

import (
	"fmt"
	"slices"
	"strings"
)

// prefix is what all variables begin with.
const prefix = "XWARP_"

// CheckNames returns an error for the first name of an environment that is not that of a
// variable, but nearly so. What else begins with XWARP_ may be another program's.
func CheckNames(environment []string) error {
	var known, offered []string
	for _, g := range Groups() {
		for _, v := range g.Vars {
			known = append(known, v.Name)
			if g.Users {
				offered = append(offered, v.Name)
			}
		}
	}
	for _, e := range environment {
		name, _, _ := strings.Cut(e, "=")
		upper := strings.ToUpper(name)
		if !strings.HasPrefix(upper, prefix) || strings.HasPrefix(name, testPrefix) || slices.Contains(known, name) {
			continue
		}
		nearest := slices.MinFunc(offered, func(a, b string) int { return distance(upper, a) - distance(upper, b) })
		if distance(upper, nearest) <= max(1, (len(nearest)-len(prefix))/3) {
			return fmt.Errorf("there is no variable %.64s: use %s, or a name of another beginning", name, nearest)
		}
	}
	return nil
}

// distance is how many letters are to be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			row[j+1] = min(above, row[j]) + 1
			if a[i] != b[j] {
				diagonal++
			}
			row[j+1] = min(row[j+1], diagonal)
			diagonal = above
		}
	}
	return row[len(b)]
}
