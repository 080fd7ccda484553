package coll

import "testing"

// What is sent on or reduced while more of it comes, long enough to be cut.
func TestLong_inSegments(t *testing.T) {
	place := placements[0]
	testBcast(t, func(s *Schedule, t Team, buf []byte, root int) { BcastMultiLeader(s, hosted(t, place), buf, root) }, 7, 4, 7*segmentLeast+5)
	// Many hosts: down a tree, and with more segments in a chain.
	for _, length := range []int{1000, 13 * segmentLeast} {
		testBcast(t, func(s *Schedule, t Team, buf []byte, root int) {
			BcastMultiLeader(s, hosted(t, func(r int) int { return r / 2 }), buf, root)
		}, 13, 3, length)
	}
	err := testAllgather(func(s *Schedule, t Team, mine []byte, blocks [][]byte) {
		AllgatherMultiLeader(s, hosted(t, place), mine, blocks)
	}, 5, 2*segmentLeast/3+1, false, false)
	if err != nil {
		t.Error(err)
	}
	for _, red := range reductions {
		for n := 2; n < 4; n++ {
			count := n * segmentLeast * 5 / 2 / red.elem
			testAllreduce(t, AllreduceLinear, red, n, count+n%2)   // in place
			testAllreduce(t, AllreduceLinear, red, n, count+n%2+1) // not
		}
	}
	testAllreduce(t, func(s *Schedule, t Team, in, v []byte) { AllreduceMultiLeader(s, hosted(t, place), in, v) }, reductions[0], 5, 2*segmentLeast)
}
