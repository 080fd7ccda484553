package mpi

import (
	"slices"
	"testing"
)

// crossing counts the neighbours in a grid that are on different hosts.
func crossing(dims, places, hosts []int) (n int) {
	at := make([]int, len(places))
	for rank, place := range places {
		at[place] = hosts[rank]
	}
	for place := range at {
		for i := range dims {
			c := coordsOf(dims, place)
			if c[i]++; c[i] < dims[i] && at[placeOf(dims, c)] != at[place] {
				n++
			}
		}
	}
	return n
}

// Each place is given once, and fewer neighbours are apart than without
// reordering when ranks are dealt out to the hosts in turns.
func TestTile_keepsNeighboursTogether(t *testing.T) {
	for _, c := range []struct {
		dims  []int
		hosts int
		want  int // neighbours apart
	}{
		{[]int{4, 4}, 4, 8},
		{[]int{4, 4}, 2, 4},
		{[]int{6, 4}, 4, 10},
		{[]int{4, 4, 4}, 8, 48},
		{[]int{8}, 2, 1},
	} {
		n := 1
		for _, d := range c.dims {
			n *= d
		}
		hosts, plain := make([]int, n), make([]int, n)
		for i := range hosts {
			hosts[i], plain[i] = i%c.hosts, i
		}
		places := tile(c.dims, hosts)
		once := slices.Clone(places)
		slices.Sort(once)
		if !slices.Equal(once, plain) {
			t.Fatalf("%v: places %v", c.dims, places)
		}
		if got, before := crossing(c.dims, places, hosts), crossing(c.dims, plain, hosts); got != c.want || got >= before {
			t.Errorf("%v on %d hosts: %d neighbours apart, want %d; %d without", c.dims, c.hosts, got, c.want, before)
		}
	}
}

// Unequal hosts get ranks that follow one another.
func TestTile_unequalHosts(t *testing.T) {
	places := tile([]int{5}, []int{1, 0, 1, 0, 0})
	if !slices.Equal(places, []int{3, 0, 4, 1, 2}) {
		t.Errorf("places %v", places)
	}
}
