package coll

// BcastBinomial sends down a binomial tree: the root to the rank half way
// round, then both to those half way to the next, and so on.
//
// Why: the fewest rounds, for messages whose latency is what counts.
// Cost: ceil(log2 p) (a + n b).
func BcastBinomial(t Transport, buf []byte, root int) error {
	p := t.Size()
	me := (t.Rank() - root + p) % p // the root is 0
	span := 1                       // the ranks me..me+span-1 hang below me
	for span < p && me&span == 0 {
		span *= 2
	}
	if me != 0 {
		if err := t.Recv(buf, (me-span+root)%p); err != nil {
			return err
		}
	}
	for span /= 2; span > 0; span /= 2 {
		if me+span < p {
			if err := t.Send(buf, (me+span+root)%p); err != nil {
				return err
			}
		}
	}
	return nil
}
