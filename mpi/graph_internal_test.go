package mpi

import (
	"slices"
	"testing"
)

// Ranks change places only where fewer edges lead from one host to another then.
func TestSettleNodes(t *testing.T) {
	ring := func(n int) [][]int {
		all := make([][]int, n)
		for i := range all {
			all[i] = []int{(i + n - 1) % n, (i + 1) % n}
		}
		return all
	}
	for _, c := range []struct {
		name  string
		near  [][]int
		hosts []int
		want  []int // nil: each rank is the node of its number
	}{
		{"one host", [][]int{{3}, {2}, {1}, {0}}, []int{0, 0, 0, 0}, nil},
		{"no edges", make([][]int, 4), []int{0, 1, 0, 1}, nil},
		{"as good", ring(4), []int{0, 0, 1, 1}, nil},
		{"pairs apart", [][]int{{2}, {3}, {0}, {1}}, []int{0, 0, 1, 1}, []int{0, 2, 1, 3}},
		{"a path, hosts in turns", [][]int{{1}, {0, 2}, {1, 3}, {2, 4}, {3}}, []int{0, 1, 0, 1, 0}, []int{0, 3, 1, 4, 2}},
		{"a path along the hosts", [][]int{{2}, {4, 3}, {0, 4}, {1}, {2, 1}}, []int{0, 1, 0, 1, 0}, nil},
		{"edges of one end", [][]int{{2}, {3}, nil, nil}, []int{0, 0, 1, 1}, []int{0, 2, 1, 3}},
	} {
		got := settleNodes(len(c.near), func(node int) []int { return c.near[node] }, c.hosts)
		if !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
