package coll

// BarrierDissemination (Hensgen, Finkel, Manber 1988): in round k each rank
// sends to the rank 2^k above it and receives from the one 2^k below.
//
// Why: no root, any number of ranks, and fewer rounds are not possible.
// Cost: ceil(log2 p) a.
func BarrierDissemination(s *Schedule, t Team) {
	for d := 1; d < t.Size; d *= 2 {
		s.swap(t, t.off(t.Me+d), nil, t.off(t.Me-d), nil)
	}
}
