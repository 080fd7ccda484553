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

// On the root's host the parts begin with the root, elsewhere with the first rank.
func TestHosts_multiLeader(t *testing.T) {
	h := NewHosts([]int{0, 0, 0, 1, 1, 2, 2, 2})
	const root = 1
	for me, want := range [][]int32{{}, {1, 3, 5}, {2, 4, 6}, {1, 3, 5}, {2, 4, 6}, {1, 3, 5}, {2, 4, 6}, {}} {
		local, leaders, n := h.leaders(&Schedule{}, Team{Me: me, Size: 8, Hosts: h}, root)
		if n != 2 || local.rank(local.Me) != int32(me) {
			t.Errorf("rank %d: %d parts, is %d of %v", me, n, local.Me, local.Ranks)
		}
		if host := []int{0, 0, 0, 1, 1, 2, 2, 2}[me]; leaders.Me != host {
			t.Errorf("rank %d: at place %d of its leaders, want %d", me, leaders.Me, host)
		}
		if on := local.Me < n; on != (len(want) > 0) || on && !slices.Equal(leaders.Ranks, want) {
			t.Errorf("rank %d: leaders %v, want %v", me, leaders.Ranks, want)
		}
	}
}
