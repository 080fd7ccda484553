package coll

import (
	"slices"
	"testing"
)

func TestNewHosts_nothingToGain(t *testing.T) {
	if NewHosts([]int{4, 4, 4}) != nil || NewHosts([]int{1, 2, 3}) != nil || NewHosts([]int{1, 2, 1}) == nil {
		t.Error("hosts count when there are several, and one has several ranks")
	}
}

// On the root's host the rails begin with the root, elsewhere with the first rank.
func TestHosts_rails(t *testing.T) {
	h := NewHosts([]int{0, 0, 0, 1, 1, 2, 2, 2})
	const root = 1
	for me, want := range [][]int32{{}, {1, 3, 5}, {2, 4, 6}, {1, 3, 5}, {2, 4, 6}, {1, 3, 5}, {2, 4, 6}, {}} {
		local, rail, n := h.rails(&Schedule{}, Team{Me: me, Size: 8, Hosts: h}, root)
		if n != 2 || local.rank(local.Me) != int32(me) {
			t.Errorf("rank %d: %d rails, is %d of %v", me, n, local.Me, local.Ranks)
		}
		if host := []int{0, 0, 0, 1, 1, 2, 2, 2}[me]; rail.Me != host {
			t.Errorf("rank %d: at place %d of its rail, want %d", me, rail.Me, host)
		}
		if on := local.Me < n; on != (len(want) > 0) || on && !slices.Equal(rail.Ranks, want) {
			t.Errorf("rank %d: rail %v, want %v", me, rail.Ranks, want)
		}
	}
}
