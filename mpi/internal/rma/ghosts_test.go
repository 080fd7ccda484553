package rma

import (
	"slices"
	"testing"
)

// Each rank has a ghost of its host, each ghost as many ranks as others or one more, and who
// a ghost speaks of is found again.
func TestNewGhosts(t *testing.T) {
	for _, c := range []struct {
		ranks, ghosts []int
		of            []int32
	}{
		{[]int{0, 0, 0}, []int{0}, []int32{3, 3, 3}},
		{[]int{0, 0, 0, 0, 0}, []int{0, 0}, []int32{5, 5, 5, 6, 6}},
		{[]int{0, 1, 0, 1}, []int{0, 0, 1, 1}, []int32{4, 6, 5, 7}},
		{[]int{7}, []int{7, 7}, []int32{1}},
	} {
		g := NewGhosts(c.ranks, c.ghosts)
		if !slices.Equal(g.Of, c.of) {
			t.Errorf("ranks on %v, ghosts on %v: %v, want %v", c.ranks, c.ghosts, g.Of, c.of)
		}
		for rank, ghost := range g.Of {
			if got := g.rank(ghost, g.Client[rank]); got != int32(rank) {
				t.Errorf("ranks on %v, ghosts on %v: client %d of ghost %d is rank %d, want %d", c.ranks, c.ghosts, g.Client[rank], ghost, got, rank)
			}
		}
		for _, wrong := range [][2]int32{{int32(len(c.ranks)) - 1, 1}, {g.Of[0], 0}, {g.Of[0], 9}, {1 << 20, 1}} {
			if got := g.rank(wrong[0], wrong[1]); got != -1 {
				t.Errorf("client %d of %d is rank %d", wrong[1], wrong[0], got)
			}
		}
	}
	if g := NewGhosts([]int{0, 0, 0, 0, 0}, []int{0, 0}); g.Sharers(0) != 3 || g.Sharers(4) != 2 {
		t.Errorf("ghosts serve %d and %d ranks, want 3 and 2", g.Sharers(0), g.Sharers(4))
	}
	if g := NewGhosts([]int{0, 1}, []int{0}); g.Sharers(0) != 0 || g != nil || g.rank(2, 1) != -1 {
		t.Error("a host without ghosts")
	}
}
