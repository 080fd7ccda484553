package coll

// Barrier by dissemination (Hensgen, Finkel, Manber 1988): in round k each
// rank sends to the rank 2^k above it and receives from the one 2^k below.
//
// Why: no root, any number of ranks, and fewer rounds are not possible.
// Cost: ceil(log2 p) a.
func Barrier(t Transport) error {
	p, me := t.Size(), t.Rank()
	for d := 1; d < p; d *= 2 {
		if err := t.Sendrecv(nil, (me+d)%p, nil, (me-d+p)%p); err != nil {
			return err
		}
	}
	return nil
}
