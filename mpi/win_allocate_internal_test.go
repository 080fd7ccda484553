package mpi

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Memory of ranks that may lie apart begins where its pages do, and side by side where it may not.
// There are locks and turns before it only if there can be some.
func TestLayoutOf(t *testing.T) {
	const huge = mem.HugePage
	members := []int32{0, 2, 3}
	sizes := []int{100, 5, 8192, 2*huge + 1} // of all ranks
	layout := func(members []int32, flags int64) layout {
		var all []int64
		for _, size := range sizes {
			all = append(all, int64(size), 1, flags)
		}
		return layoutOf(members, all)
	}
	l := layout(members, winApart)
	if l.control != 0 || l.parts[0].at != 0 || l.parts[1].at != layoutPage || l.parts[2].at != huge || l.size != 3*huge+layoutPage {
		t.Errorf("apart: %+v", l)
	}
	if l = layout(members, 0); l.parts[0].at != 0 || l.parts[1].at != 100 || l.parts[2].at != 100+8192 {
		t.Errorf("side by side: %+v", l)
	}
	if l = layout(members, winLocked); l.control == 0 || !l.locks || l.parts[0].at != layoutPage {
		t.Errorf("with locks: %+v", l)
	}
	locks := l.control
	if l = layout([]int32{0, 1, 2, 3}, 0); l.control == 0 || l.locks {
		t.Errorf("all on one host: %+v", l)
	}
	if l = layout([]int32{0, 1, 2, 3}, winLocked); l.control <= locks || !l.locks {
		t.Errorf("all on one host, with locks: %+v", l)
	}
}
