package mpi

import (
	"slices"
	"testing"
)

// The lowest contexts that are free are taken, or those behind the first skip ones, around the end.
func TestContextSet_choose(t *testing.T) {
	some := contextSet{1: 1<<3 | 1<<5, 4: 1 << 63, contextWords - 1: 1 << 1}
	all := []uint32{67, 69, 319, 64*(contextWords-1) + 1}
	for skip := range 9 {
		for n := range 6 {
			want := append(slices.Clone(all[skip%4:]), all[:skip%4]...)[:min(n, 4)]
			if got := some.choose(n, skip); !slices.Equal(got, want) {
				t.Errorf("%d behind %d: %v, want %v", n, skip, got, want)
			}
		}
	}
	if got := new(contextSet).choose(1, 3); len(got) != 0 {
		t.Errorf("%v of none", got)
	}
}
